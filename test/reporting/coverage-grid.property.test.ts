import fc from "fast-check";
import { expect, test } from "vitest";
import { type ColumnLength, unitMsOf } from "../../src/core/domain/coverage/coverage-columns.ts";
import {
  type ColumnState,
  columnStates,
  partsFor,
  STATUSES,
  unitsOf,
} from "../../src/core/domain/coverage/coverage-grid.ts";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import type { Interval } from "../../src/core/domain/time/window.ts";
import { registerWorkspaces } from "../../src/core/store/access/workspaces.ts";
import { ensureScopes } from "../../src/core/store/catalog/scopes.ts";
import {
  type CoverageCell,
  type SourceCoverage,
  sourceCoverage,
} from "../../src/features/coverage/coverage-cells.store.ts";
import { daysByStride } from "../../src/features/coverage/coverage-lines.store.ts";
import { createSource, type StoreBundle, setupStore } from "../integration/store/setup.ts";
import { now } from "../support/clock.ts";
import { seed, times } from "../support/drawn.ts";
import { state, WORKSPACES, write } from "./coverage-states.ts";

const SEED = seed();
const RUNS = times(3);

interface ViewRow {
  readonly key: string;
  readonly date: string;
  readonly status: string;
  readonly is_reconciled: boolean;
  readonly is_matched: boolean;
}

interface ShownDay {
  readonly status: string;
  readonly reconciled: boolean;
  readonly matched: boolean;
}

const keyOf = ({ workspaceId, groupBy }: CoverageCell, at: number) =>
  `${workspaceId} ${groupBy} ${new Date(at).toISOString()}`;

function gridStates(
  coverage: SourceCoverage,
  { length, columns }: { length: ColumnLength; columns: readonly Interval[] },
): Map<string, ColumnState> {
  return new Map(
    partsFor(coverage.cells, length, coverage.now).flatMap(({ cell, parts }) =>
      columnStates([parts], columns, unitMsOf(length)).flatMap((state, n): [string, ColumnState][] =>
        state.status === undefined ? [] : [[keyOf(cell, (columns[n] as Interval).start), state]],
      ),
    ),
  );
}

async function viewDays({ reader }: StoreBundle, stride: string): Promise<Map<string, ShownDay>> {
  const { rows } = await reader.query<ViewRow>(
    `SELECT workspace_id || ' ' || group_by AS key, usage_date AS date, status, is_reconciled, totals_matched_at IS NOT NULL AS is_matched
     FROM reporting_detail.usage_coverage_daily WHERE stride = $1`,
    [stride],
  );
  return new Map(
    rows.map(({ key, date, status, is_reconciled, is_matched }) => [
      `${key} ${date}T00:00:00.000Z`,
      { status, reconciled: is_reconciled, matched: is_matched },
    ]),
  );
}

const columnsOf = (from: number, to: number, size: number) =>
  Array.from({ length: (to - from) / size }, (_, n) => ({
    start: from + n * size,
    end: from + (n + 1) * size,
  }));

function countMonths(days: ReadonlyMap<string, ShownDay>, today: string) {
  const months = new Map<string, Record<string, number>>();
  for (const [key, { status, reconciled, matched }] of days) {
    const [workspace, groupBy, at] = key.split(" ") as [string, string, string];
    const month = `${workspace} ${groupBy} ${at.slice(0, 7)}-01T00:00:00.000Z`;
    const counts = months.get(month) ?? { reconciled: 0, matched: 0, ok: 0 };
    const kind = status === "ok" || status === "empty" ? "final" : status;
    if (kind !== "missing" || !at.startsWith(today)) counts[kind] = (counts[kind] ?? 0) + 1;
    counts.reconciled = (counts.reconciled as number) + Number(reconciled);
    counts.matched = (counts.matched as number) + Number(matched);
    if (status === "ok") counts.ok = (counts.ok as number) + 1;
    months.set(month, counts);
  }
  return months;
}

async function viewTotals({ reader }: StoreBundle) {
  const { rows } = await reader.query(`
    SELECT stride, (count(*) FILTER (WHERE status IN ('ok', 'empty')))::integer AS final,
           (count(*) FILTER (WHERE status = 'provisional'))::integer AS provisional,
           (count(*) FILTER (WHERE status = 'missing'))::integer AS missing,
           (count(*) FILTER (WHERE status = 'failed'))::integer AS failed,
           (count(*) FILTER (WHERE status = 'unverified'))::integer AS unverified
    FROM (
      SELECT stride, CASE WHEN usage_date < (now() AT TIME ZONE 'UTC')::date THEN status END AS status
      FROM reporting_detail.usage_coverage_daily
    ) d
    GROUP BY stride ORDER BY stride`);
  return rows;
}

interface Tables {
  readonly coverage: readonly { scope_id: number; start: number; stop: number; final: boolean }[];
  readonly failures: readonly { scope_id: number; start: number; stop: number; state: string }[];
  readonly records: readonly { scope_id: number; at: number }[];
  readonly cells: readonly { key: string; day_id: number; hour_id: number }[];
  readonly facts: readonly string[];
  readonly dataStart: number;
  readonly hourlyHours: number;
}

async function readTables({ reader }: StoreBundle): Promise<Tables> {
  const ms = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8`;
  const { rows } = await reader.query<Tables>(`
    SELECT ${ms("s.data_start")} AS "dataStart", s.hourly_hours AS "hourlyHours",
           array(SELECT fact FROM usage.source_fact) AS facts,
           (SELECT json_agg(c) FROM (
             SELECT scope_id, ${ms("period_start")} AS start, ${ms("period_end")} AS stop, final FROM usage.coverage
           ) c) AS coverage,
           (SELECT coalesce(json_agg(c), '[]') FROM (
             SELECT scope_id, ${ms("period_start")} AS start, ${ms("period_end")} AS stop, state FROM usage.failure
           ) c) AS failures,
           (SELECT json_agg(c) FROM (
             SELECT scope_id, ${ms("bucket_start")} AS at FROM usage.dated_record JOIN usage.series USING (series_id) WHERE traces > 0
             UNION ALL
             SELECT scope_id, ${ms("bucket_start")} FROM usage.hourly_record JOIN usage.series USING (series_id) WHERE traces > 0
           ) c) AS records,
           (SELECT json_agg(c) FROM (
             SELECT e.external_id || ' ' || d.group_by AS key, d.scope_id AS day_id, h.scope_id AS hour_id
             FROM usage.trace_scope d
             JOIN usage.trace_scope h ON h.workspace_id = d.workspace_id AND h.group_by = d.group_by AND h.stride = 'hour'
             JOIN usage.entity e ON e.entity_id = d.workspace_id
             WHERE d.stride = 'day'
           ) c) AS cells
    FROM usage.source s`);
  return rows[0] as Tables;
}

const hoursOf = (day: number) => Array.from({ length: 24 }, (_, hour) => day + hour * HOUR_MS);

function byRules(tables: Tables, now: number): Map<string, string> {
  const at = <T extends { scope_id: number; start: number; stop: number }>(
    list: readonly T[],
    scope: number,
    bucket: number,
  ) => list.find((one) => one.scope_id === scope && one.start <= bucket && bucket < one.stop);
  const traced = new Set(tables.records.map((one) => `${one.scope_id} ${one.at}`));
  const has = (scope: number, bucket: number) => traced.has(`${scope} ${bucket}`);
  const statusOf = (
    given: { isLoaded: boolean; isFinal: boolean; failure: string | undefined; hasTraces: boolean },
    stride: string,
  ) => {
    if (!given.isLoaded && tables.facts.includes(`no_${stride}`)) return "not_available";
    if (given.failure !== undefined) return given.failure;
    if (!given.isLoaded) return "missing";
    if (!given.isFinal) return "provisional";
    return given.hasTraces ? "ok" : "empty";
  };
  const hourOf = (scope: number, bucket: number) => {
    const own = at(tables.coverage, scope, bucket);
    const kept = Math.max(tables.dataStart, floorToGrid(now - tables.hourlyHours * HOUR_MS, DAY_MS));
    if (bucket > now || (bucket < kept && own === undefined)) return undefined;
    const failure = at(tables.failures, scope, bucket)?.state;
    const given = {
      isLoaded: own !== undefined,
      isFinal: own?.final === true,
      failure,
      hasTraces: has(scope, bucket),
    };
    return statusOf(given, "hour");
  };
  const dayOf = (day: number, own: number, hours: number) => {
    const loaded = at(tables.coverage, own, day);
    const failure = at(tables.failures, own, day)?.state;
    const parts = hoursOf(day).map((hour) => at(tables.coverage, hours, hour));
    const isOfHours =
      loaded === undefined && failure !== "unverified" && parts.every((one) => one !== undefined);
    const isFinal = isOfHours ? parts.every((one) => one?.final) : loaded?.final === true;
    const hasTraces = isOfHours ? hoursOf(day).some((hour) => has(hours, hour)) : has(own, day);
    return statusOf({ isLoaded: loaded !== undefined || isOfHours, isFinal, failure, hasTraces }, "day");
  };
  const found = new Map<string, string>();
  for (const { key, day_id, hour_id } of tables.cells) {
    for (let day = tables.dataStart - 20 * DAY_MS; day <= now; day += DAY_MS) {
      const date = new Date(day).toISOString();
      if (day >= tables.dataStart) found.set(`day ${key} ${date}`, dayOf(day, day_id, hour_id));
      const hours = hoursOf(day).flatMap((hour) => hourOf(hour_id, hour) ?? []);
      const first = ["not_available", "failed", "missing", "unverified", "provisional", "ok", "empty"].find(
        (status) => hours.includes(status),
      );
      if (first !== undefined) found.set(`hour ${key} ${date}`, first);
    }
  }
  return found;
}

async function check(bundle: StoreBundle, about: string): Promise<void> {
  const shown = ["day", "hour"].map(async (stride) =>
    [...(await viewDays(bundle, stride))].map(([key, { status }]) => [`${stride} ${key}`, status]),
  );
  expect(Object.fromEntries((await Promise.all(shown)).flat()), `${about}: rules`).toEqual(
    Object.fromEntries(byRules(await readTables(bundle), now())),
  );
  expect(await daysByStride(bundle.store.db, "default"), `${about}: totals`).toEqual(
    await viewTotals(bundle),
  );
  for (const stride of ["day", "hour"] as const) {
    const coverage = (await sourceCoverage(bundle.store.db, { source: "default", stride })) as SourceCoverage;
    const today = floorToGrid(coverage.now, DAY_MS);
    const days = {
      length: "day" as const,
      columns: columnsOf(today - 100 * DAY_MS, today + 3 * DAY_MS, DAY_MS),
    };
    const view = await viewDays(bundle, stride);
    const grid = [...gridStates(coverage, days)].map(([key, { status, count }]): [string, ShownDay] => [
      key,
      { status: status as string, reconciled: count.reconciled === 1, matched: count.matched === 1 },
    ]);
    expect(Object.fromEntries(grid), `${about}: days by ${stride}`).toEqual(Object.fromEntries(view));

    const months = [0, 1, 2, 3, 4].map((n) => {
      const date = new Date(today);
      const start = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - 3 + n);
      return { start, end: Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - 2 + n) };
    });
    const counted = gridStates(coverage, { length: "month", columns: months });
    const expected = countMonths(view, new Date(today).toISOString().slice(0, 10));
    for (const [key, { ok, ...counts }] of expected) {
      const state = counted.get(key);
      const first = STATUSES.find((one) => (one === "empty" ? counts.final : counts[one])) as
        | string
        | undefined;
      expect(state?.status, `${about}: ${key} by ${stride}`).toBe(
        first === "empty" && (ok as number) > 0 ? "ok" : first,
      );
      if (state === undefined) continue;
      const shown = Object.entries(state.count).filter(([name, n]) => n > 0 || name in counts);
      expect(Object.fromEntries(shown), `${about}: ${key} by ${stride}`).toEqual(counts);
    }
    expect([...counted].filter(([key, { count }]) => unitsOf(count) > 0 && !expected.has(key))).toEqual([]);
  }
  const end = floorToGrid(now(), DAY_MS) + DAY_MS;
  const coverage = (await sourceCoverage(bundle.store.db, {
    source: "default",
    stride: "hour",
    tracedIn: { start: end - 8 * DAY_MS, end },
  })) as SourceCoverage;
  const hours = gridStates(coverage, { length: "hour", columns: columnsOf(end - 8 * DAY_MS, end, HOUR_MS) });
  const { rows } = await bundle.reader.query<{ key: string; at: Date; status: string }>(
    `SELECT workspace_id || ' ' || group_by AS key, at,
            usage.status_at(at, final, not_available, failed, missing, unverified) AS status
     FROM usage.hour_cell CROSS JOIN LATERAL usage.hours_of(shown) at WHERE at >= $1`,
    [new Date(end - 8 * DAY_MS)],
  );
  const shownHours = [...hours].map(([key, { status }]) => [key, status === "empty" ? "ok" : status]);
  expect(Object.fromEntries(shownHours), `${about}: hours`).toEqual(
    Object.fromEntries(rows.map(({ key, at, status }) => [`${key} ${at.toISOString()}`, status])),
  );
}

test(`the grid is the view, day by day, by month and by hour (seed ${SEED}, ${RUNS} states)`, async () => {
  const bundle = await setupStore();
  for (const [n, given] of fc.sample(state, { seed: SEED, numRuns: RUNS }).entries()) {
    await write(bundle, given);
    await check(bundle, `state ${n}`);
  }
});

test("a workspace that was never planned is missing on each of its days, also where no sync would plan it", async () => {
  const bundle = await setupStore();
  const dataStart = floorToGrid(now(), DAY_MS) - 3 * DAY_MS;
  const sourceId = await createSource(bundle, { workspaceIds: [], dataStart });
  await registerWorkspaces(bundle.store.db, { sourceId, workspaceIds: WORKSPACES });
  await ensureScopes(bundle.store.db, { sourceId, groupings: [], strides: [] });
  const columns = columnsOf(dataStart, dataStart + 4 * DAY_MS, DAY_MS);
  const coverage = async () =>
    (await sourceCoverage(bundle.store.db, { source: "default", stride: "day" })) as SourceCoverage;
  const states = gridStates(await coverage(), { length: "day", columns });
  expect([...states.values()].map(({ status }) => status)).toEqual(Array(2 * 4 * 4).fill("missing"));
  await bundle.reader.query("UPDATE usage.workspace SET unlisted_since = now()");
  expect(new Set((await coverage()).cells.map(({ access }) => access))).toEqual(new Set(["unlisted"]));
  expect(await sourceCoverage(bundle.store.db, { source: "none", stride: "day" })).toBeUndefined();
});

test("a source that begins today has days of each stride, none of which has ended", async () => {
  const bundle = await setupStore();
  const dataStart = floorToGrid(now(), DAY_MS);
  await createSource(bundle, { workspaceIds: WORKSPACES, dataStart });
  const none = { final: 0, provisional: 0, missing: 0, failed: 0, unverified: 0 };
  const expected = [
    { stride: "day", ...none },
    { stride: "hour", ...none },
  ];
  expect(await daysByStride(bundle.store.db, "default")).toEqual(expected);
  expect(await viewTotals(bundle)).toEqual(expected);
  expect(await daysByStride(bundle.store.db, "none")).toEqual([]);
});
