import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { DAY_MS, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import { dice } from "../../src/features/standin/engine/random.ts";
import { dimensionsOf, workspaceId } from "./shapes.ts";

export interface Shape {
  readonly workspaces: number;
  readonly active: number;
  /** Epoch milliseconds: the first traces. */
  readonly from: number;
  readonly seed: number;
}

export const QUARTER_MS = 15 * 60_000;
const ENTITIES = 3;
const STEEPNESS = 1.2;
const LATE_SHARE = 0.02;
const LATE_HOURS = 48;
const MOVED_SHARE = 0.01;

export async function startPlatform({ workspaces, active, from, seed }: Shape) {
  const ids = Array.from({ length: workspaces }, (_, n) => workspaceId(n));
  const places = new Map(ids.map((id, n) => [id, n]));
  const sizes = ids.map((_, n) => (n + 1) ** -STEEPNESS);
  const chances = chancesOf(sizes, active);
  const counts = ids.map(() => new Map<number, number[]>());
  const random = dice(seed).next;
  const requests = new Map<string, number>();
  let until = from;

  const add = (place: number, at: number, entity: number, traces: number) => {
    const hour = at - (at % HOUR_MS);
    const of = counts[place]?.get(hour) ?? new Array<number>(ENTITIES).fill(0);
    of[entity] = (of[entity] ?? 0) + traces;
    counts[place]?.set(hour, of);
  };
  /** What arrives until an instant, whole quarters of an hour. */
  const pass = (to: number) => {
    for (; until + QUARTER_MS <= to; until += QUARTER_MS) {
      for (const [place, chance] of chances.entries()) {
        if (random() >= chance) continue;
        const isLate = random() < LATE_SHARE;
        const at = isLate ? Math.max(from, until - Math.floor(random() * LATE_HOURS) * HOUR_MS) : until;
        const entity = Math.floor(random() * ENTITIES);
        add(place, at, entity, 1 + Math.floor(2000 * (sizes[place] ?? 0)));
        if (random() < MOVED_SHARE) {
          add(place, at, entity, -1);
          add(place, at, (entity + 1) % ENTITIES, 1);
        }
      }
    }
  };
  const tracesIn = (place: number, start: number, end: number) => {
    const sum = new Array<number>(ENTITIES).fill(0);
    for (let hour = start; hour < end; hour += HOUR_MS) {
      for (const [entity, traces] of (counts[place]?.get(hour) ?? []).entries())
        sum[entity] = (sum[entity] ?? 0) + traces;
    }
    return sum;
  };
  const usage = (query: URLSearchParams): object => {
    const [start, end] = [Date.parse(query.get("start_time") ?? ""), Date.parse(query.get("end_time") ?? "")];
    const isHours = end - start < DAY_MS;
    const size = isHours ? HOUR_MS : DAY_MS;
    const groupBy = query.get("group_by") ?? "workspace";
    requests.set(groupBy, (requests.get(groupBy) ?? 0) + 1);
    const records: object[] = [];
    for (let at = start; at < Math.min(end, until); at += size) {
      const bucket = new Date(at).toISOString();
      for (const id of query.getAll("workspace_ids")) {
        const place = places.get(id) ?? 0;
        const found = tracesIn(place, at, Math.min(at + size, end));
        const shown = groupBy === "workspace" ? [found.reduce((all, one) => all + one, 0)] : found;
        for (const [entity, traces] of shown.entries()) {
          const dimensions = dimensionsOf(groupBy, place * ENTITIES + entity, { id, place });
          if (traces !== 0) records.push({ time_bucket: bucket, dimensions, traces });
        }
      }
    }
    return { stride: { days: isHours ? 0 : 1, hours: isHours ? 1 : 0 }, usage: records };
  };
  const responseTo = (pathname: string, query: URLSearchParams): unknown => {
    if (pathname === "/api/v1/workspaces")
      return ids.map((id, n) => ({ id, display_name: `Workspace ${n}` }));
    if (pathname === "/api/v1/orgs/current") return { id: workspaceId(workspaces), display_name: "Company" };
    return pathname.endsWith("/granular-usage") ? usage(query) : undefined;
  };
  const server = createServer(({ url, headers }: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(url ?? "/", "http://localhost");
    const isOfOne = pathname.endsWith("/workspaces/current/stats");
    const body = isOfOne ? { tenant_id: headers["x-tenant-id"] } : responseTo(pathname, searchParams);
    response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(body ?? { detail: "Not Found" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pass,
    add,
    requests,
    total: () =>
      counts.reduce(
        (all, hours) => all + [...hours.values()].flat().reduce((sum, traces) => sum + traces, 0),
        0,
      ),
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

/** Each is active with a chance in proportion to its size, 1 at most, so that the mean is as asked. */
function chancesOf(sizes: readonly number[], mean: number): number[] {
  let [low, high] = [0, 1e9];
  const at = (factor: number) => sizes.map((size) => Math.min(1, factor * size));
  for (let step = 0; step < 100; step++) {
    const middle = (low + high) / 2;
    const reached = at(middle).reduce((sum, one) => sum + one, 0) / sizes.length;
    [low, high] = reached < mean ? [middle, high] : [low, middle];
  }
  return at(high);
}
