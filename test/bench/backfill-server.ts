import type { IncomingMessage, ServerResponse } from "node:http";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { GROUPINGS, type GroupBy } from "../../src/core/domain/usage/record.ts";
import { type Company, TRACES_A_DAY } from "./company.ts";
import { serveAs, takeTask } from "./harness.ts";
import { dayOf, dimensionsOf, WINDOW_DAYS, workspaceId } from "./shapes.ts";

/** A platform of daily usage by all dimensions. It prepares its responses before the first request. */

/** The task of this process. */
export type Served = Company;

const company = await takeTask<Served>();
const ids = Array.from({ length: company.workspaces }, (_, n) => workspaceId(n));
const ready = new Map(
  GROUPINGS.flatMap((groupBy) =>
    ids.flatMap((id, place) =>
      Array.from({ length: company.windows }, (_, window) => [
        `${groupBy} ${id} ${dayOf(window * WINDOW_DAYS)}`,
        Buffer.from(recordsIn(company, groupBy, { id, place }, window)),
      ]),
    ),
  ) as [string, Buffer][],
);
const listing = JSON.stringify(ids.map((id, n) => ({ id, display_name: `Workspace ${n}` })));
const organization = JSON.stringify({ id: workspaceId(company.workspaces), display_name: "Company" });
serveAs(({ url }: IncomingMessage, response: ServerResponse) => {
  const { pathname, searchParams } = new URL(url ?? "/", "http://localhost");
  if (pathname === "/api/v1/workspaces") return send(response, [Buffer.from(listing)]);
  if (pathname === "/api/v1/orgs/current") return send(response, [Buffer.from(organization)]);
  if (!pathname.endsWith("/granular-usage") || searchParams.has("kind") || searchParams.has("trace_tier"))
    return void response.writeHead(404, { "content-type": "application/json" }).end("{}");
  const start = Date.parse(searchParams.get("start_time") ?? "");
  const end = Date.parse(searchParams.get("end_time") ?? "");
  const requested = searchParams.getAll("workspace_ids").map((id) => ({ id, place: ids.indexOf(id) }));
  const groupBy = (searchParams.get("group_by") ?? "workspace") as GroupBy;
  const found = requested.map(
    ({ id, place }) =>
      ready.get(`${groupBy} ${id} ${start}`) ??
      // The proof of access requests other ranges.
      Buffer.from(recordOf(groupBy, { n: place, workspace: { id, place }, start, traces: 1 })),
  );
  const days = (end - start) / DAY_MS > WINDOW_DAYS ? 30 : 1;
  return send(response, [
    Buffer.from(`{"stride":{"days":${days},"hours":0},"usage":[`),
    ...found.flatMap((records, i) => (i === 0 ? [records] : [Buffer.from(","), records])),
    Buffer.from("]}"),
  ]);
});

function send(response: ServerResponse, pieces: readonly Buffer[]): void {
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": pieces.reduce((sum, piece) => sum + piece.length, 0),
  });
  for (const piece of pieces) response.write(piece);
  response.end();
}

/** By time, then by id, as a query over time gives them. */
function recordsIn(
  { users, projects, keys }: Company,
  groupBy: GroupBy,
  workspace: { id: string; place: number },
  window: number,
): string {
  const ofDimension = { workspace: 1, user: users, project: projects, api_key: keys }[groupBy];
  const records: string[] = [];
  for (let day = window * WINDOW_DAYS; day < (window + 1) * WINDOW_DAYS; day++) {
    for (let i = 0; i < ofDimension; i++) {
      const share = Math.floor(TRACES_A_DAY / ofDimension);
      // Each id has another count on another day.
      const moved = ofDimension === 1 ? 0 : ((day * 7919) % share) * (i === 0 ? 1 : i === 1 ? -1 : 0);
      const traces = share + moved + (i === 0 ? TRACES_A_DAY - share * ofDimension : 0);
      const n = workspace.place * ofDimension + i;
      records.push(recordOf(groupBy, { n, workspace, start: dayOf(day), traces }));
    }
  }
  return records.join(",");
}

function recordOf(
  groupBy: GroupBy,
  of: { n: number; workspace: { id: string; place: number }; start: number; traces: number },
): string {
  const bucket = new Date(of.start).toISOString().replace(".000Z", "Z");
  const dimensions = JSON.stringify(dimensionsOf(groupBy, of.n, of.workspace));
  return `{"time_bucket":"${bucket}","dimensions":${dimensions},"traces":${of.traces}}`;
}
