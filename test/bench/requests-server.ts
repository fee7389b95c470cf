import type { IncomingMessage, ServerResponse } from "node:http";
import { DAY_MS, HOUR_MS } from "../../src/domain/time/stride.ts";
import { serveAs, takeTask } from "./harness.ts";
import { workspaceId } from "./shapes.ts";

/**
 * A platform whose workspaces have one project, user and key each, so that all dimensions add up. It counts what it is asked, and some
 * workspaces get traces in the hour under way whenever it is told so.
 */

export interface Company {
  readonly workspaces: number;
  /** The first ones: the others never have traces. */
  readonly used: number;
}

const { workspaces, used } = await takeTask<Company>();
const startedAt = Date.now();
const ids = Array.from({ length: workspaces }, (_, n) => workspaceId(n));
const places = new Map(ids.map((id, n) => [id, n]));
/** New traces of a workspace, by hour. */
const added = new Map<number, Map<number, number>>();
let requests: Record<string, number> = {};
let first = Number.POSITIVE_INFINITY;

serveAs((request, response) => serve(request, response));

function serve(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const body = answerTo(pathname, searchParams);
  response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(body ?? { detail: "Not Found" }));
}

function answerTo(pathname: string, query: URLSearchParams): unknown {
  if (pathname === "/bench/change") return change(Number(query.get("workspaces")));
  if (pathname === "/bench/requests") {
    const sent = requests;
    requests = {};
    return sent;
  }
  if (pathname === "/bench/traces")
    return ids.reduce((sum, _, place) => sum + tracesIn(place, first, Date.now()), 0);
  if (pathname === "/api/v1/workspaces") return ids.map((id, n) => ({ id, display_name: `Workspace ${n}` }));
  if (pathname === "/api/v1/orgs/current") return { id: workspaceId(workspaces), display_name: "Company" };
  if (pathname.endsWith("/granular-usage")) return usage(query);
  return undefined;
}

/** Of those that have traces, the last ones get one more in this hour. */
function change(many: number): number {
  const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  for (let place = used - many; place < used; place++) {
    const hours = added.get(place) ?? new Map<number, number>();
    hours.set(hour, (hours.get(hour) ?? 0) + 1);
    added.set(place, hours);
  }
  return many;
}

/** One an hour and more, until the benchmark began; then what was added. */
function tracesIn(place: number, start: number, end: number): number {
  if (place >= used) return 0;
  const old = Math.max(0, Math.min(end, Math.floor(startedAt / HOUR_MS) * HOUR_MS) - start) / HOUR_MS;
  let sum = old * ((place % 5) + 1);
  for (const [hour, traces] of added.get(place) ?? []) if (hour >= start && hour < end) sum += traces;
  return sum;
}

function usage(query: URLSearchParams): object {
  const [start, end] = [Date.parse(query.get("start_time") ?? ""), Date.parse(query.get("end_time") ?? "")];
  const isHours = end - start < DAY_MS;
  const size = isHours ? HOUR_MS : DAY_MS;
  const groupBy = query.get("group_by") ?? "workspace";
  requests[groupBy] = (requests[groupBy] ?? 0) + 1;
  if (!isHours) first = Math.min(first, start);
  const records: object[] = [];
  for (let at = start; at < end; at += size) {
    for (const id of query.getAll("workspace_ids")) {
      const place = places.get(id) ?? 0;
      const traces = tracesIn(place, at, at + size);
      if (traces > 0)
        records.push({
          time_bucket: new Date(at).toISOString(),
          dimensions: dimensions(groupBy, place, id),
          traces,
        });
    }
  }
  return { stride: { days: isHours ? 0 : 1, hours: isHours ? 1 : 0 }, usage: records };
}

function dimensions(groupBy: string, place: number, id: string): object {
  if (groupBy === "workspace") return { workspace_id: id, workspace_name: `Workspace ${place}` };
  if (groupBy === "project")
    return {
      project_id: `00000000-0000-4000-9000-${String(place).padStart(12, "0")}`,
      project_name: `Project ${place}`,
    };
  if (groupBy === "user")
    return {
      user_id: `00000000-0000-4000-8000-${String(place).padStart(12, "0")}`,
      user_email: `user.${place}@example.com`,
    };
  return { api_key_short_key: `lsv2_${place}` };
}
