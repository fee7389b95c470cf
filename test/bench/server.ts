import { createReadStream, statSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { serveAs, takeTask } from "./harness.ts";
import { exportOf } from "./reconcile-data.ts";
import { activeDays, dayOf, type Shape, tracesOf, userId, WINDOW_DAYS, workspaceId } from "./shapes.ts";

export interface ServerTask {
  readonly shape: Shape;
  readonly more?: number;
  readonly exports?: { readonly file: string | undefined };
}

const { shape, more = 0, exports } = await takeTask<ServerTask>();

const ready = new Map<string, Buffer[]>();
const ids = Array.from({ length: shape.workspaces }, (_, i) => workspaceId(i));
for (const [workspace, id] of ids.entries()) {
  if (exports === undefined) {
    for (let from = 0; from < shape.days; from += WINDOW_DAYS)
      ready.set(`${id} ${dayOf(from)}`, usageResponse(workspace, from));
  } else if (exports.file === undefined) {
    ready.set(`${id} ${dayOf(0)}`, [Buffer.from([...exportOf(shape, workspace)].join(""))]);
  }
}
const listing = Buffer.from(JSON.stringify(ids.map((id, i) => ({ id, display_name: `Workspace ${i}` }))));
const type = exports === undefined ? "application/json" : "text/csv";

serveAs(serve);

function serve(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  if (pathname === "/api/v1/workspaces") return void send(response, [listing], "application/json");
  const requested = searchParams.getAll("workspace_ids");
  if (pathname.endsWith("/granular-usage") && searchParams.get("group_by") === "workspace")
    return void send(response, [accessTo(requested)], type);
  const isWanted = pathname.endsWith(exports === undefined ? "/granular-usage" : "/granular-usage/export");
  const start = Date.parse(searchParams.get("start_time") ?? "");
  const found = ready.get(`${requested[0]} ${start}`);
  if (isWanted && found !== undefined) return void send(response, found, type);
  if (!isWanted || exports?.file === undefined) return void response.writeHead(404).end();
  response.writeHead(200, { "content-type": type, "content-length": statSync(exports.file).size });
  pipeline(createReadStream(exports.file, { highWaterMark: 65_536 }), response, () => {});
}

function accessTo(workspaces: readonly string[]): Buffer {
  const usage = workspaces.map((id) => ({
    time_bucket: new Date(dayOf(0)).toISOString(),
    dimensions: { workspace_id: id },
    traces: 1,
  }));
  return Buffer.from(JSON.stringify({ stride: { days: 30, hours: 0 }, usage }));
}

function send(response: ServerResponse, pieces: readonly Buffer[], contentType: string): void {
  response.writeHead(200, {
    "content-type": contentType,
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

function usageResponse(workspace: number, from: number): Buffer[] {
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
