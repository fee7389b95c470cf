import fc from "fast-check";
import { expect, test } from "vitest";
import type { ColumnLength } from "../../src/domain/planning/coverage-columns.ts";
import { STATUSES, unitsOf } from "../../src/domain/planning/coverage-grid.ts";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../src/domain/time/stride.ts";
import type { Interval } from "../../src/domain/time/window.ts";
import { ensureScopes } from "../../src/store/catalog/scopes.ts";
import { registerWorkspaces } from "../../src/store/catalog/workspaces.ts";
import {
  type CoverageCell,
  type SourceCoverage,
  sourceCoverage,
} from "../../src/store/report/coverage-cells.ts";
import {
  type ColumnState,
  cellParts,
  columnStates,
  partsFor,
} from "../../src/store/report/coverage-table.ts";
import { openDays } from "../../src/store/report/open-days.ts";
import { enterSource, type StoreBundle, setupStore } from "../integration/store/setup.ts";

/**
 * The grid of the operator's page, from intervals, against `reporting.usage_coverage_daily`, day by day: random states of the
 * tables, with loaded, final, failed, unverified, compared and differing time that overlaps in every way.
 */

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const RUNS = Number(process.env.MODEL_RUNS ?? 3);
const DAYS = 45;
const WORKSPACES = ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"];

/** Neighbouring stretches of time, each with one of the given values or with none. */
const stretches = <T>(...values: readonly T[]) =>
  fc.array(
    fc.tuple(
      fc.integer({ min: 1, max: 12 }),
      fc.constantFrom<(T | undefined)[]>(undefined, ...values, ...values),
    ),
    { minLength: 8, maxLength: 14 },
  );
const bucket = [fc.nat({ max: 60 }), fc.nat({ max: 23 })] as const;
const scopeState = fc.record({
  coverage: stretches("final", "final", "final", "provisional"),
  failures: fc.oneof(fc.constant([]), stretches("failed", "unverified", undefined, undefined)),
  reconciled: stretches("reconciled"),
  matched: stretches("matched"),
  differences: fc.array(fc.tuple(...bucket, fc.constantFrom("open", "closed")), {
    minLength: 4,
    maxLength: 8,
  }),
  totals: fc.array(fc.tuple(fc.nat({ max: 40 }), fc.integer({ min: 1, max: 4 })), { maxLength: 2 }),
  records: fc.array(fc.tuple(...bucket, fc.nat({ max: 2 })), { minLength: 4, maxLength: 20 }),
});
type ScopeState = typeof scopeState extends fc.Arbitrary<infer T> ? T : never;
const state = fc.record({
  days: fc.array(scopeState, { minLength: 4, maxLength: 4 }),
  hours: fc.array(scopeState, { minLength: 4, maxLength: 4 }),
  facts: fc.subarray(["no_day", "no_hour"]),
  hourlyDays: fc.constantFrom(1, 8, 60),
});
type State = typeof state extends fc.Arbitrary<infer T> ? T : never;

/** Begins ten days before the data start, and may end after today. */
async function write(bundle: StoreBundle, given: State): Promise<void> {
  const dataStart = floorToGrid(Date.now(), DAY_MS) - DAYS * DAY_MS;
  const sourceId = await enterSource(bundle, { workspaceIds: WORKSPACES, dataStart });
  const { reader } = bundle;
  await reader.query("UPDATE usage.source SET hourly_hours = $1", [given.hourlyDays * 24]);
  await reader.query(
    `INSERT INTO usage.entity (source_id, dimension, external_id) SELECT $1, 'user', 'u' || n FROM generate_series(1, 2) n`,
    [sourceId],
  );
  const { rows } = await reader.query<{ scope_id: number; stride: "day" | "hour"; series: number[] }>(`
    WITH s AS (
      INSERT INTO usage.series (scope_id, entity_id)
      SELECT c.scope_id, e.entity_id FROM usage.scope c, usage.entity e
      WHERE c.stride IN ('day', 'hour') AND c.group_by IN ('workspace', 'user') AND e.dimension = 'user' RETURNING *
    )
    SELECT scope_id, stride, array_agg(series_id) AS series FROM s JOIN usage.scope USING (scope_id) GROUP BY 1, 2 ORDER BY 2, 1`);
  const scopes = rows.map(({ scope_id, stride, series }, n) =>
    rowsOf(
      { scopeId: scope_id, stride, series, dataStart },
      given[stride === "day" ? "days" : "hours"][n % 4] as ScopeState,
    ),
  );
  const facts = given.facts.map((fact) => ({ source_id: sourceId, fact, evidence: "test" }));
  // Coverage last: with it, the months of records are counted.
  for (const table of TABLES) {
    const entered = table === "source_fact" ? facts : scopes.flatMap((one) => one[table] ?? []);
    if (entered.length === 0) continue;
    const columns = Object.keys(entered[0] as object).join();
    await reader.query(
      `INSERT INTO usage.${table} (${columns}) SELECT ${columns} FROM jsonb_populate_recordset(null::usage.${table}, $1)
       ON CONFLICT DO NOTHING`,
      [JSON.stringify(entered)],
    );
  }
}

const TABLES = [
  ...(["source_fact", "dated_record", "hourly_record", "failure", "reconciled", "matched_total"] as const),
  ...(["reconciliation_difference", "control_difference", "coverage"] as const),
];

function rowsOf(
  {
    scopeId: scope_id,
    stride,
    series,
    dataStart,
  }: { scopeId: number; stride: "day" | "hour"; series: number[]; dataStart: number },
  given: ScopeState,
): Partial<Record<(typeof TABLES)[number], object[]>> {
  const isDay = stride === "day";
  // Hours in stretches of five, so that they cut days.
  const unit = isDay ? DAY_MS : 5 * HOUR_MS;
  const first = dataStart + (isDay ? -10 : 30) * DAY_MS;
  const time = (ms: number) => new Date(ms).toISOString();
  const part = (start: number, end: number) => ({
    scope_id,
    period_start: time(start),
    period_end: time(end),
  });
  const placed = <T>(parts: readonly (readonly [number, T | undefined])[]) => {
    let end = first;
    return parts.flatMap(([length, value]) => {
      const start = end;
      end += length * unit;
      return value === undefined ? [] : [{ start, end, value, ...part(start, end) }];
    });
  };
  const bucketOf = (day: number, hour: number) => first + day * DAY_MS + (isDay ? 0 : hour * HOUR_MS);
  const loaded = placed(given.coverage);
  const now = time(Date.now());
  const fetched = { fetch_number: 1, fetched_at: now };
  const records = given.records.flatMap(([day, hour, traces]) => {
    const at = bucketOf(day, hour);
    const length = isDay ? DAY_MS : HOUR_MS;
    if (!loaded.some(({ start, end }) => start <= at && at + length <= end)) return [];
    return [{ series_id: series[hour % 2], bucket_start: isDay ? time(at).slice(0, 10) : time(at), traces }];
  });
  const strip = ({ start: _, end: __, value: ___, ...row }: ReturnType<typeof placed>[number]) => row;
  return {
    [isDay ? "dated_record" : "hourly_record"]: records,
    coverage: loaded.map((one) => ({
      ...strip(one),
      settled: one.value === "final" && one.end <= Date.now(),
      ...fetched,
    })),
    failure: placed(given.failures).map((one) => ({
      ...{ ...strip(one), state: one.value, code: "network", message: "cut", attempts: 1 },
      ...{ fetch_number: 1, failed_at: now, retry_at: now },
    })),
    reconciled: placed(given.reconciled).map((one) => ({
      ...strip(one),
      fetch_number: 1,
      reconciled_at: now,
    })),
    matched_total: !isDay
      ? []
      : placed(given.matched).map((one) => ({
          ...{ ...strip(one), fetch_number: 1, matched_at: now },
          ...{ total_start: one.period_start, total_end: one.period_end },
        })),
    reconciliation_difference: given.differences.map(([day, hour, how]) => ({
      ...{ scope_id, external_id: "u1", bucket_start: time(bucketOf(day, hour)), kind: "traces_differ" },
      ...{ stored_traces: 1, export_traces: 2, state: how, ...fetched, found_at: now },
      closed_at: how === "closed" ? now : null,
    })),
    control_difference: !isDay
      ? []
      : given.totals.map(([day, length]) => ({
          ...{
            ...part(first + day * DAY_MS, first + (day + length) * DAY_MS),
            kind: "stride_total",
            external_id: "",
          },
          ...{ state: "platform_disagrees", fetch_number: 1, found_at: now },
        })),
  };
}

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

/** The grid's states by cell and column; columns in which nothing is expected are left out. */
async function gridStates(
  { store }: StoreBundle,
  coverage: SourceCoverage,
  { length, columns }: { length: ColumnLength; columns: readonly Interval[] },
): Promise<Map<string, ColumnState>> {
  const cells = partsFor(coverage, cellParts(coverage, coverage.cells), length);
  const states = await columnStates(store.db, { coverage, length, columns, cells });
  return new Map(
    states.flatMap((row, n) =>
      row.flatMap((state, column): [string, ColumnState][] =>
        state.status === undefined
          ? []
          : [[keyOf((cells[n] as { cell: CoverageCell }).cell, (columns[column] as Interval).start), state]],
      ),
    ),
  );
}

async function viewDays({ reader }: StoreBundle, stride: string): Promise<Map<string, ShownDay>> {
  const { rows } = await reader.query<ViewRow>(
    `SELECT workspace_id || ' ' || group_by AS key, usage_date AS date, status, is_reconciled, totals_matched_at IS NOT NULL AS is_matched
     FROM reporting.usage_coverage_daily WHERE stride = $1`,
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

/** What the view says of a month: how many days have which status, with ok and empty as one, and whether one has traces. */
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

/** What the view says of the ended days of each stride, all cells together. */
async function viewTotals({ reader }: StoreBundle) {
  const { rows } = await reader.query(`
    SELECT stride, (count(*) FILTER (WHERE status IN ('ok', 'empty')))::integer AS final,
           (count(*) FILTER (WHERE status = 'provisional'))::integer AS provisional,
           (count(*) FILTER (WHERE status = 'missing'))::integer AS missing,
           (count(*) FILTER (WHERE status = 'failed'))::integer AS failed,
           (count(*) FILTER (WHERE status = 'unverified'))::integer AS unverified
    FROM (
      SELECT stride, CASE WHEN usage_date < (now() AT TIME ZONE 'UTC')::date THEN status END AS status
      FROM reporting.usage_coverage_daily
    ) d
    GROUP BY stride ORDER BY stride`);
  return rows;
}

async function check(bundle: StoreBundle, about: string): Promise<void> {
  expect(await openDays(bundle.store.db, "default"), `${about}: totals`).toEqual(await viewTotals(bundle));
  for (const stride of ["day", "hour"] as const) {
    const coverage = (await sourceCoverage(bundle.store.db, { source: "default", stride })) as SourceCoverage;
    const today = floorToGrid(coverage.now, DAY_MS);
    const days = {
      length: "day" as const,
      columns: columnsOf(today - 100 * DAY_MS, today + 3 * DAY_MS, DAY_MS),
    };
    const view = await viewDays(bundle, stride);
    const grid = [...(await gridStates(bundle, coverage, days))].map(
      ([key, { status, count }]): [string, ShownDay] => [
        key,
        { status: status as string, reconciled: count.reconciled === 1, matched: count.matched === 1 },
      ],
    );
    expect(Object.fromEntries(grid), `${about}: days by ${stride}`).toEqual(Object.fromEntries(view));

    const months = [0, 1, 2, 3, 4].map((n) => {
      const date = new Date(today);
      const start = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - 3 + n);
      return { start, end: Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - 2 + n) };
    });
    const counted = await gridStates(bundle, coverage, { length: "month", columns: months });
    const expected = countMonths(view, new Date(today).toISOString().slice(0, 10));
    for (const [key, { ok, ...counts }] of expected) {
      const state = counted.get(key);
      const shown = Object.fromEntries(
        Object.entries(state?.count ?? { reconciled: 0, matched: 0 }).filter(
          ([name, n]) => n > 0 || name in counts,
        ),
      );
      expect(shown, `${about}: ${key} by ${stride}`).toEqual(counts);
      const first = STATUSES.find((one) => (one === "empty" ? counts.final : counts[one])) as
        | string
        | undefined;
      expect(state?.status, `${about}: ${key} by ${stride}`).toBe(
        first === "empty" && (ok as number) > 0 ? "ok" : first,
      );
    }
    expect([...counted].filter(([key, { count }]) => unitsOf(count) > 0 && !expected.has(key))).toEqual([]);
  }
  const coverage = (await sourceCoverage(bundle.store.db, {
    source: "default",
    stride: "hour",
  })) as SourceCoverage;
  const end = floorToGrid(coverage.now, DAY_MS) + DAY_MS;
  const hours = await gridStates(bundle, coverage, {
    length: "hour",
    columns: columnsOf(end - 8 * DAY_MS, end, HOUR_MS),
  });
  const { rows } = await bundle.reader.query<{ key: string; at: Date; status: string }>(
    `SELECT workspace_id || ' ' || group_by AS key, usage_hour AS at, status FROM usage.hour_state WHERE usage_hour >= $1`,
    [new Date(end - 8 * DAY_MS)],
  );
  const shown = [...hours].map(([key, { status }]) => [key, status === "empty" ? "ok" : status]);
  expect(Object.fromEntries(shown), `${about}: hours`).toEqual(
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

test("a workspace that was never planned is missing on each of its days, and gone if no sync would plan it", async () => {
  const bundle = await setupStore();
  const dataStart = floorToGrid(Date.now(), DAY_MS) - 3 * DAY_MS;
  const sourceId = await enterSource(bundle, { workspaceIds: [], dataStart });
  await registerWorkspaces(bundle.store.db, { sourceId, workspaceIds: WORKSPACES });
  await ensureScopes(bundle.store.db, { sourceId, groupings: [], strides: [] });
  const columns = columnsOf(dataStart, dataStart + 4 * DAY_MS, DAY_MS);
  const coverage = async () =>
    (await sourceCoverage(bundle.store.db, { source: "default", stride: "day" })) as SourceCoverage;
  const states = await gridStates(bundle, await coverage(), { length: "day", columns });
  expect([...states.values()].map(({ status }) => status)).toEqual(Array(2 * 4 * 4).fill("missing"));
  await bundle.reader.query("UPDATE usage.workspace SET unlisted_since = now()");
  expect((await coverage()).cells).toEqual([]);
  expect(await sourceCoverage(bundle.store.db, { source: "none", stride: "day" })).toBeUndefined();
});

test("a source that begins today has days of each stride, none of which has ended", async () => {
  const bundle = await setupStore();
  const dataStart = floorToGrid(Date.now(), DAY_MS);
  await enterSource(bundle, { workspaceIds: WORKSPACES, dataStart });
  const none = { final: 0, provisional: 0, missing: 0, failed: 0, unverified: 0 };
  const expected = [
    { stride: "day", ...none },
    { stride: "hour", ...none },
  ];
  expect(await openDays(bundle.store.db, "default")).toEqual(expected);
  expect(await viewTotals(bundle)).toEqual(expected);
  expect(await openDays(bundle.store.db, "none")).toEqual([]);
});
