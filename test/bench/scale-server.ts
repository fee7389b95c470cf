import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { DAY_MS, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import { serveAs, takeTask } from "./harness.ts";
import { dimensionsOf, workspaceId } from "./shapes.ts";

/**
 * The platform of a large customer, in a process of its own. It responds every window with made-up counts, each after its
 * latency. It keeps nothing, so three years of it cost no memory.
 */

export interface Customer {
  readonly workspaces: number;
  readonly users: number;
  readonly latencyMs: number;
}

const customer = await takeTask<Customer>();

const ids = Array.from({ length: customer.workspaces }, (_, i) => workspaceId(i));
const places = new Map(ids.map((id, i) => [id, i]));
const perWorkspace = {
  workspace: 1,
  project: 5,
  user: Math.ceil(customer.users / customer.workspaces),
  api_key: 3,
} as const;
const listing = JSON.stringify(ids.map((id, i) => ({ id, display_name: `Workspace ${i}` })));
const organization = JSON.stringify({ id: workspaceId(customer.workspaces), display_name: "Large customer" });

serveAs((request, response) => void serve(request, response));

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  await pause(customer.latencyMs);
  if (pathname === "/api/v1/workspaces") return send(response, listing);
  if (pathname === "/api/v1/orgs/current") return send(response, organization);
  if (pathname.endsWith("/granular-usage")) return send(response, usage(searchParams));
  response.writeHead(404, { "content-type": "application/json" }).end('{"detail":"Not Found"}');
}

function send(response: ServerResponse, body: string): void {
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
}

function usage(query: URLSearchParams): string {
  const start = Date.parse(query.get("start_time") ?? "");
  const end = Date.parse(query.get("end_time") ?? "");
  const isHours = end - start < DAY_MS;
  const size = isHours ? HOUR_MS : DAY_MS;
  const groupBy = (query.get("group_by") ?? "workspace") as keyof typeof perWorkspace;
  const requested = query.getAll("workspace_ids").map((id) => places.get(id) ?? -1);
  const records: string[] = [];
  for (let at = start; at < end; at += size) {
    const bucket = new Date(at).toISOString();
    for (const place of requested) addBucket(records, { groupBy, place, bucket, at: at / size, isHours });
  }
  return `{"stride":{"days":${isHours ? 0 : 1},"hours":${isHours ? 1 : 0}},"usage":[${records.join(",")}]}`;
}

function addBucket(
  records: string[],
  of: { groupBy: keyof typeof perWorkspace; place: number; bucket: string; at: number; isHours: boolean },
): void {
  const { groupBy, place, bucket, at, isHours } = of;
  for (let i = 0; i < perWorkspace[groupBy]; i++) {
    if (groupBy === "user" && (i + at) % (isHours ? 60 : 5) !== 0) continue;
    const traces = ((place * 7919 + i * 104_729 + at) % 499) + 1;
    const workspace = { id: ids[place] ?? "", place };
    const dimensions = dimensionsOf(groupBy, place * perWorkspace[groupBy] + i, workspace);
    records.push(`{"time_bucket":"${bucket}","dimensions":${JSON.stringify(dimensions)},"traces":${traces}}`);
  }
}
