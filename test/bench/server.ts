import type { IncomingMessage, ServerResponse } from "node:http";
import { serveAs, takeTask } from "./harness.ts";
import { activeDays, dayOf, type Shape, tracesOf, userId, WINDOW_DAYS, workspaceId } from "./shapes.ts";

/**
 * A platform whose answers lie ready before the first request, in a process of its own: what it takes from the two
 * cores while it serves is writing to sockets.
 */

export interface ServerTask {
  readonly shape: Shape;
  /** Added to each count. */
  readonly more?: number;
}

const { shape, more = 0 } = await takeTask<ServerTask>();

const usage = new Map<string, Buffer[]>();
for (let workspace = 0; workspace < shape.workspaces; workspace++) {
  for (let from = 0; from < shape.days; from += WINDOW_DAYS) {
    usage.set(`${workspaceId(workspace)} ${dayOf(from)}`, usageAnswer(workspace, from));
  }
}
const listing = [
  Buffer.from(
    JSON.stringify(
      Array.from({ length: shape.workspaces }, (_, i) => ({
        id: workspaceId(i),
        display_name: `Workspace ${i}`,
      })),
    ),
  ),
];

serveAs(serve);

function serve(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const start = Date.parse(searchParams.get("start_time") ?? "");
  const found = usage.get(`${searchParams.get("workspace_ids")} ${start}`);
  if (pathname === "/api/v1/workspaces") send(response, listing);
  else if (pathname.endsWith("/granular-usage") && found !== undefined) send(response, found);
  else response.writeHead(404).end();
}

function send(response: ServerResponse, pieces: readonly Buffer[]): void {
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": pieces.reduce((sum, piece) => sum + piece.length, 0),
  });
  writeFrom(response, pieces, 0);
}

/** With the reader's pace: what is sent at once would wait in this process's memory. */
function writeFrom(response: ServerResponse, pieces: readonly Buffer[], first: number): void {
  for (let i = first; i < pieces.length; i++) {
    if (response.write(pieces[i])) continue;
    response.once("drain", () => writeFrom(response, pieces, i + 1));
    return;
  }
  response.end();
}

/** One piece a day: by time, then by user, as a query over time gives them. */
function usageAnswer(workspace: number, from: number): Buffer[] {
  const first = workspace * shape.usersPerWorkspace;
  const users = Array.from({ length: shape.usersPerWorkspace }, (_, i) => first + i);
  const dimensions = users.map((user) =>
    JSON.stringify({ user_id: userId(user), user_email: `user.${user}@example.com` }),
  );
  const days = activeDays(shape, from, from + WINDOW_DAYS).map((day) => {
    const bucket = new Date(dayOf(day)).toISOString().replace(".000Z", "Z");
    return users.map(
      (user, i) =>
        `{"time_bucket":"${bucket}","dimensions":${dimensions[i]},"traces":${tracesOf(user, day) + more}}`,
    );
  });
  return [
    Buffer.from('{"stride":{"days":1,"hours":0},"usage":['),
    ...days.map((records, i) => Buffer.from((i === 0 ? "" : ",") + records.join(","))),
    Buffer.from("]}"),
  ];
}
