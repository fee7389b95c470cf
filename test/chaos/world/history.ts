import { appendFileSync } from "node:fs";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import type { Standin } from "../../../src/features/standin/server.ts";
import { inLedger } from "../../support/tables.ts";
import type { World } from "./world.ts";

/** What the platform could respond and what Postgres showed, in order, and a checker of both. */

export type Event =
  | { readonly at: number; readonly kind: "answerable"; readonly key: string; readonly traces: number }
  | {
      readonly at: number;
      readonly kind: "shown";
      readonly key: string;
      readonly traces: number | null;
      readonly fetchNumber: number | null;
      readonly fetchedAt: number | null;
    }
  | {
      readonly at: number;
      readonly kind: "fault";
      readonly name: string;
      readonly phase: "begins" | "ends" | "missed";
    }
  | {
      readonly at: number;
      readonly kind: "command";
      readonly args: string;
      readonly code: number | null;
      readonly wrong: string | null;
    };

const SLACK_MS = 50;

/**
 * What no history may hold:
 * - a figure that no whole response had between the request for it and now ("nothing shown that was never answered");
 * - a figure without the coverage that says where it is from;
 * - a figure of a response that was asked for before the one that was shown ("the newest whole response wins");
 * - a command that said more than the tables held.
 */
export function violationsOf(events: readonly Event[]): string[] {
  const versions = new Map<string, { from: number; traces: number }[]>();
  const newest = new Map<string, number>();
  const found: string[] = [];
  for (const event of events) {
    if (event.kind === "answerable") {
      const known = versions.get(event.key) ?? [{ from: Number.NEGATIVE_INFINITY, traces: 0 }];
      known.push({ from: event.at, traces: event.traces });
      versions.set(event.key, known);
    }
    if (event.kind === "command" && event.wrong !== null) found.push(`${event.args}: ${event.wrong}`);
    if (event.kind !== "shown") continue;
    const { at, key, traces, fetchNumber, fetchedAt } = event;
    const told = `${new Date(at).toISOString()} ${key}: ${traces} of fetch ${fetchNumber}`;
    if (fetchNumber === null || fetchedAt === null) {
      if (traces !== null) found.push(`${told}, without coverage`);
      continue;
    }
    const before = newest.get(key) ?? 0;
    if (fetchNumber < before) found.push(`${told} after fetch ${before}`);
    newest.set(key, Math.max(before, fetchNumber));
    const known = versions.get(key) ?? [];
    const wasAnswerable = known.some(
      (version, i) =>
        version.traces === (traces ?? 0) &&
        version.from <= at + SLACK_MS &&
        (known[i + 1]?.from ?? Number.POSITIVE_INFINITY) >= fetchedAt - SLACK_MS,
    );
    if (!wasAnswerable && !(known.length === 0 && (traces ?? 0) === 0)) {
      const requested = new Date(fetchedAt).toISOString();
      found.push(
        `${told}, asked at ${requested}; the platform had ${known.map(({ traces }) => traces).join(", ")}`,
      );
    }
  }
  return found;
}

interface Shown {
  readonly traces: number | null;
  readonly fetchNumber: number | null;
  readonly fetchedAt: number | null;
}

export interface Recorder {
  readonly events: Event[];
  note(event: Event): void;
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 700;

export function record(world: World, file?: string): Recorder {
  const events: Event[] = [];
  const responded = new Map<string, number>();
  const shown = new Map<string, Shown>();
  let isOver = false;
  const note = (event: Event) => {
    events.push(event);
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(event)}\n`);
  };
  const answerable = () => {
    const figures = figuresOf(world.truth, world);
    const at = world.now();
    for (const [key, traces] of figures) {
      if (responded.get(key) === traces) continue;
      responded.set(key, traces);
      note({ at, kind: "answerable", key, traces });
    }
  };
  const look = async () => {
    const snapshot = await snapshotOf(world);
    if (snapshot === undefined) return;
    for (const key of new Set([...snapshot.figures.keys(), ...responded.keys()])) {
      const now = snapshot.figures.get(key) ?? snapshot.zero(key);
      const before = shown.get(key);
      shown.set(key, now);
      // A newer response with the same figure is no news, if the figure can be the platform's.
      const hasResponse = (now.traces ?? 0) === (responded.get(key) ?? 0);
      const isNewer = before !== undefined && now.fetchNumber !== before.fetchNumber;
      const isNews = before === undefined || before.traces !== now.traces || (isNewer && !hasResponse);
      const isOlder = before !== undefined && (now.fetchNumber ?? 0) < (before.fetchNumber ?? 0);
      if (isOlder) note({ at: snapshot.at, kind: "shown", key, ...before });
      else if (!isNews) continue;
      note({ at: snapshot.at, kind: "shown", key, ...now });
    }
  };
  answerable();
  world.onChange = answerable;
  const looking = (async () => {
    while (!isOver) {
      // Postgres may be away; then nothing is shown.
      await look().catch(() => {});
      await new Promise((passed) => setTimeout(passed, LOOK_EVERY_MS));
    }
  })();
  return {
    events,
    note,
    stop: async () => {
      isOver = true;
      await looking;
      await look();
    },
  };
}

const RECENT_DAYS = 3;

function figuresOf(standin: Standin, { range, workspaceIds }: World) {
  const start = Math.floor(range.end / DAY_MS) * DAY_MS - RECENT_DAYS * DAY_MS;
  const days = { start, end: Math.ceil(range.end / DAY_MS) * DAY_MS };
  return new Map([
    ...inLedger(standin, { stride: "hour", range: { start, end: range.end }, workspaceIds }),
    ...inLedger(standin, { stride: "day", range: days, workspaceIds }),
  ]);
}

async function snapshotOf(world: World) {
  const start = Math.floor(world.range.end / DAY_MS) * DAY_MS - RECENT_DAYS * DAY_MS;
  const [row] = await world.sql<{ at: number; records: Stored[] | null; coverage: Covered[] | null }>(
    `SELECT extract(epoch FROM clock_timestamp()) * 1000 AS at,
       (SELECT json_agg(json_build_array(c.group_by, c.stride, extract(epoch FROM r.bucket_start) * 1000, w.external_id, e.external_id, r.traces))
        FROM (
          SELECT series_id, bucket_start, traces FROM usage.hourly_record
          UNION ALL SELECT series_id, bucket_start::timestamp AT TIME ZONE 'UTC', traces FROM usage.dated_record
        ) r
        JOIN usage.series s USING (series_id) JOIN usage.trace_scope c USING (scope_id)
        JOIN usage.entity w ON w.entity_id = c.workspace_id JOIN usage.entity e ON e.entity_id = s.entity_id
        WHERE r.bucket_start >= $1 AND c.stride IN ('hour', 'day') AND r.traces > 0) AS records,
       (SELECT json_agg(json_build_array(c.group_by, c.stride, w.external_id, extract(epoch FROM v.period_start) * 1000,
          extract(epoch FROM v.period_end) * 1000, v.fetch_number, extract(epoch FROM v.fetched_at) * 1000))
        FROM usage.coverage v JOIN usage.trace_scope c USING (scope_id) JOIN usage.entity w ON w.entity_id = c.workspace_id
        WHERE v.period_end > $1 AND c.stride IN ('hour', 'day')) AS coverage`,
    [new Date(start).toISOString()],
  );
  if (row === undefined) return undefined;
  const scopes = new Map<string, Covered[]>();
  for (const one of row.coverage ?? []) {
    const scope = `${one[0]} ${one[1]} ${one[2]}`;
    scopes.set(scope, [...(scopes.get(scope) ?? []), one]);
  }
  const covering = (groupBy: string, stride: string, workspace: string, at: number) => {
    const found = scopes
      .get(`${groupBy} ${stride} ${workspace}`)
      ?.find(([, , , from, to]) => from <= at && at < to);
    return { fetchNumber: found?.[5] ?? null, fetchedAt: found?.[6] ?? null };
  };
  const figures = new Map<string, Shown>(
    (row.records ?? []).map(([groupBy, stride, at, workspace, id, traces]) => [
      `${groupBy} ${stride} ${new Date(at).toISOString()} ${workspace} ${id}`,
      { traces, ...covering(groupBy, stride, workspace, at) },
    ]),
  );
  const zero = (key: string): Shown => {
    const [groupBy = "", stride = "", bucket = "", workspace = ""] = key.split(" ");
    const covered = covering(groupBy, stride, workspace, Date.parse(bucket));
    return { traces: covered.fetchNumber === null ? null : 0, ...covered };
  };
  return { at: Number(row.at), figures, zero };
}

type Stored = [groupBy: string, stride: string, at: number, workspace: string, id: string, traces: number];
type Covered = [
  groupBy: string,
  stride: string,
  workspace: string,
  from: number,
  to: number,
  fetchNumber: number,
  fetchedAt: number,
];
