import fc from "fast-check";
import type pg from "pg";
import { expect, test } from "vitest";
import { addDays, type Days, monthStart } from "../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import type { GroupBy } from "../../src/core/domain/usage/record.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { DIMENSIONS } from "../../src/core/store/db/dimensions.ts";
import { loadedDays, loadedHours } from "../../src/core/store/figures/loaded.ts";
import type { Per, UsageOf } from "../../src/core/store/figures/records.ts";
import { type UsageSum, usageSums } from "../../src/core/store/figures/sums.ts";
import { bucketsOfIds, bucketTotals } from "../../src/features/figures/buckets.store.ts";
import { clearUsage } from "../support/any-charges.ts";
import { DAYS, dayOf } from "../support/charges.ts";
import { seed, times } from "../support/drawn.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { hoursBy, inSchema, monthsBy } from "../support/views.ts";

const SPLIT: Days = { from: dayOf(15), to: dayOf(DAYS) };
const EARLIER = [
  [20, 0],
  [55, 0],
  [31, 17],
] as const;

const IDS = ["", "a", "b", "c", "d", "e", "(none)"];
const TOP = 3;

interface Given {
  readonly days: readonly Readonly<Record<number, readonly number[]>>[];
  readonly leftOut: readonly number[];
  readonly byHours: readonly number[];
  readonly otherHours: readonly number[];
  readonly final: boolean;
  readonly areHoursFinal: boolean;
}

const place = fc.integer({ min: 0, max: DAYS - 1 });
const given: fc.Arbitrary<Given> = fc.record({
  days: fc.array(
    fc.dictionary(
      place.map(String),
      fc.array(fc.integer({ min: 0, max: 10 ** 9 }), { minLength: IDS.length, maxLength: IDS.length }),
      { maxKeys: 10 },
    ),
    { minLength: 2, maxLength: 2 },
  ),
  leftOut: fc.uniqueArray(place, { maxLength: 6 }),
  byHours: fc.uniqueArray(place, { maxLength: 3 }),
  otherHours: fc.uniqueArray(place, { maxLength: 2 }),
  final: fc.boolean(),
  areHoursFinal: fc.boolean(),
});
const WHOLE: Given = {
  days: [{}, { 3: IDS.map((_, i) => i), 40: IDS.map(() => 7) }],
  leftOut: [],
  byHours: [9],
  otherHours: [40],
  final: true,
  areHoursFinal: false,
};
const EMPTY_DAYS: Given = { ...WHOLE, days: [{}, {}], otherHours: [], final: false, areHoursFinal: true };
const WHOLE_MONTHS: readonly (readonly ["workspace" | "project", Given])[] = [
  ["workspace", WHOLE],
  ["project", { ...WHOLE, areHoursFinal: true }],
  ["project", EMPTY_DAYS],
];
const range: fc.Arbitrary<Days> = fc
  .oneof(
    fc.tuple(fc.integer({ min: -3, max: DAYS }), fc.integer({ min: 1, max: DAYS })),
    fc.constantFrom(
      [0, 31] as const,
      [31, 30] as const,
      [0, 61] as const,
      [0, 40] as const,
      [20, 41] as const,
    ),
  )
  .map(([at, length]) => ({ from: dayOf(at), to: dayOf(at + length) }));

test("usage by id, by bucket and what is loaded are those of the views, for any range, gaps and days that are made of hours", async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  const SEED = seed();
  await fc.assert(
    fc.asyncProperty(
      given,
      fc.array(range, { minLength: 3, maxLength: 3 }),
      fc.constantFrom<GroupBy>("workspace", "project", "user"),
      async (usage, ranges, by) => {
        await clearUsage(client);
        await client.query(
          "DELETE FROM usage.hourly_record; DELETE FROM usage.monthly_total; DELETE FROM usage.became_final",
        );
        await create(bench, by, usage);
        await compareMonths(client, by);
        await compareStatuses(client, by);
        for (const one of [...ranges, SPLIT]) {
          for (const workspaceId of [null, await entityOf(client, WORKSPACES[1])]) {
            const of: UsageOf = {
              sourceId: bench.sourceId,
              source: "default",
              by,
              workspaceId,
              byHours: true,
            };
            for (const per of ["day", "month", "hour"] as const)
              await compare(bench.store, client, { of, per, range: one });
            await compareLoaded(bench.store, client, of, one);
          }
        }
      },
    ),
    {
      seed: SEED,
      numRuns: times(2) + WHOLE_MONTHS.length,
      examples: WHOLE_MONTHS.map(([by, one]): [Given, Days[], GroupBy] => [one, [], by]),
    },
  );
});

async function entityOf(client: pg.Client, id: string): Promise<number> {
  const { rows } = await client.query(
    "SELECT entity_id FROM usage.entity WHERE external_id = $1 AND dimension = 'workspace'",
    [id],
  );
  return Number(rows[0]?.entity_id);
}

async function create(
  { store, sourceId }: { store: Store; sourceId: number },
  groupBy: GroupBy,
  { days, leftOut, byHours, otherHours, final, areHoursFinal }: Given,
): Promise<void> {
  for (const [nth, workspaceId] of WORKSPACES.entries()) {
    const ids = groupBy === "workspace" ? [workspaceId] : IDS;
    const load = (
      from: string,
      to: string,
      stride: "day" | "hour",
      rows: (readonly [string, string, number])[],
    ) =>
      loadRows(store, {
        sourceId,
        groupBy,
        workspaceId,
        rows,
        window: windowOf(stride, from, to),
        settleAfterMs: (stride === "day" ? final : areHoursFinal) ? 0 : 40_000 * DAY_MS,
      });
    const holes = [...leftOut, ...byHours].sort((a, b) => a - b);
    let start = 0;
    for (const end of [...holes.flatMap((at) => [at, at + 1]), 31, DAYS].sort((a, b) => a - b)) {
      const rows = Object.entries(days[nth] ?? {}).flatMap(([at, traces]) =>
        Number(at) >= start && Number(at) < end
          ? ids.map((id, i) => [dayOf(Number(at)), id, traces[i] ?? 0] as const)
          : [],
      );
      if (start < end && !holes.includes(start)) await load(dayOf(start), dayOf(end), "day", rows);
      start = end;
    }
    if (nth === 0) continue;
    for (const at of [...byHours, ...otherHours].filter((one) => !leftOut.includes(one))) {
      const rows = ids.map((id, i) => [`${dayOf(at)}T0${i}:00:00Z`, id, i * 1000 + at] as const);
      await load(`${dayOf(at)}T00:00Z`, `${dayOf(at)}T23:00Z`, "hour", rows);
      await load(`${dayOf(at)}T23:00Z`, `${addDays(dayOf(at), 1)}T00:00Z`, "hour", []);
    }
  }
}

async function compare(
  store: Store,
  client: pg.Client,
  { of, per, range }: { of: UsageOf; per: Per; range: Days },
): Promise<void> {
  const view = per === "hour" ? hoursBy(of.by) : inSchema(`fct_usage_${of.by}_daily`);
  const time = per === "hour" ? "usage_hour" : "usage_date";
  const read = ({ from, to }: Days) =>
    client.query<{ bucket: string; id: string; traces: string }>(
      `SELECT ${per === "hour" ? `to_char(${time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')` : `${time}::text`} AS bucket,
            ${DIMENSIONS[of.by].id} AS id, traces
     FROM ${view}
     WHERE ${time} >= $1::date AND ${time} < $2::date AND traces > 0
       AND ($3::integer IS NULL OR workspace_id = (SELECT external_id FROM usage.entity WHERE entity_id = $3))`,
      [from, to, of.workspaceId],
    );
  const { rows } = await read(range);
  const what = JSON.stringify({ ...of, per, ...range });
  const requested = { ...range, per };
  let sums: UsageSum[] = [];
  for (const [days, apart] of EARLIER) {
    const end = addDays(range.from, -apart);
    const before = { from: addDays(end, -days), to: end };
    const known = used(sums);
    sums = await usageSums(store.db, of, {
      range: requested,
      before,
      top: TOP,
      masked: false,
      sort: "amount",
    });
    const early = sums.map(({ tracesBefore: traces }) => ({ traces }));
    expect(sum(early), `${what}: ${days} days, ${apart} before`).toBe(sum((await read(before)).rows));
    if (known.length > 0) expect(used(sums), what).toEqual(known);
  }
  const expected = [...Map.groupBy(rows, ({ id }) => id)].map(([id, of]) => ({ id, traces: sum(of) }));
  const ranked = expected
    .filter(({ id }) => id !== "(none)")
    .sort((a, b) => b.traces - a.traces || (a.id < b.id ? -1 : 1));
  const shown = sums
    .filter(({ kind, traces }) => kind === "id" && traces > 0)
    .map(({ id, traces }) => ({ id, traces }));
  expect(shown, what).toEqual(ranked.slice(0, TOP));
  expect(sums.find(({ kind }) => kind === "none")?.traces ?? 0, what).toBe(
    expected.find(({ id }) => id === "(none)")?.traces ?? 0,
  );
  expect(sums.find(({ kind }) => kind === "rest")?.traces ?? 0, what).toBe(sum(ranked.slice(TOP)));
  expect(sum(sums), `${what}: total`).toBe(sum(rows));

  if (of.by !== "workspace") {
    const listed = { range: requested, top: TOP, masked: false, sort: "amount" } as const;
    const found = await usageSums(store.db, of, {
      ...listed,
      before: { from: range.from, to: range.from },
      find: "C",
    });
    expect(
      used(found.filter(({ kind }) => kind === "id")).map(({ id, traces }) => ({ id, traces })),
      what,
    ).toEqual(ranked.filter(({ id }) => id.includes("c")));
    expect(sum(found), `${what}: total where an id is looked for`).toBe(sum(rows));
  }

  const before = { from: addDays(range.from, -EARLIER[0][0]), to: range.from };
  const earlier = Map.groupBy((await read(before)).rows, ({ id }) => id);
  const grown = await usageSums(store.db, of, {
    range: requested,
    before,
    top: TOP,
    masked: false,
    sort: "growth",
  });
  const growth = ({ id, traces }: { id: string; traces: number }) => traces - sum(earlier.get(id) ?? []);
  const idle = [...earlier.keys()]
    .filter((id) => id !== "(none)" && !expected.some((one) => one.id === id))
    .map((id) => ({ id, traces: 0 }));
  const byGrowth = [...ranked, ...idle].sort((a, b) => growth(b) - growth(a) || (a.id < b.id ? -1 : 1));
  expect(
    grown.filter(({ kind, traces }) => kind === "id" && traces > 0).map(({ id }) => id),
    `${what}: by growth`,
  ).toEqual(byGrowth.slice(0, TOP).flatMap(({ id, traces }) => (traces > 0 ? [id] : [])));
  expect(sum(grown), `${what}: total by growth`).toBe(sum(rows));

  const keys = sums.flatMap(({ key }) => (key === null ? [] : [key]));
  const named = await bucketsOfIds(store.db, of, { range: requested, keys });
  const totals = await bucketTotals(store.db, of, requested);
  const bucketOf = (bucket: string) => (per === "month" ? monthStart(bucket) : bucket);
  const cellsOf = (all: readonly { bucket: string; traces: number | string }[]) =>
    [...Map.groupBy(all, ({ bucket }) => bucketOf(bucket))]
      .map(([bucket, of]) => `${bucket} ${sum(of)}`)
      .sort();
  expect(cellsOf(totals.filter(({ traces }) => traces > 0)), what).toEqual(cellsOf(rows));
  for (const { key, id } of sums) {
    if (key === null) continue;
    const own = named.filter((one) => one.key === key && one.traces > 0);
    expect(cellsOf(own), what).toEqual(cellsOf(rows.filter((row) => row.id === id)));
  }
}

async function compareMonths(client: pg.Client, by: GroupBy): Promise<void> {
  const id = by === "workspace" ? "NULL::text" : DIMENSIONS[by].id;
  const { rows } = await client.query(`
    WITH daily AS (
      SELECT date_trunc('month', usage_date)::date AS month, workspace_id, ${id} AS id, traces
      FROM ${inSchema(`fct_usage_${by}_daily`)} WHERE usage_date < '${dayOf(DAYS)}'
    ), whole AS (
      -- Days without usage have no row by id, and hold a month open as others do.
      SELECT date_trunc('month', usage_date)::date AS month, workspace_id,
             bool_and(status IN ('ok', 'empty', 'provisional')) AS is_complete,
             bool_and(status IN ('ok', 'empty')) AS is_final
      FROM reporting_detail.usage_coverage_daily
      WHERE group_by = '${by}' AND stride = 'day' AND usage_date < '${dayOf(DAYS)}'
      GROUP BY 1, 2
    ), expected AS (
      SELECT month, workspace_id, c.id, CASE WHEN w.is_complete THEN sum(traces) END AS traces, w.is_complete, w.is_final
      FROM daily d JOIN whole w USING (month, workspace_id)
      CROSS JOIN LATERAL (SELECT CASE WHEN w.is_complete THEN d.id END AS id) c GROUP BY 1, 2, 3, 5, 6
    ), shown AS (
      SELECT month_start, workspace_id, ${id}, traces, is_complete, is_final
      FROM ${monthsBy(by)} WHERE month_start < '${dayOf(DAYS)}'
    )
    (TABLE expected EXCEPT ALL TABLE shown) UNION ALL (TABLE shown EXCEPT ALL TABLE expected)`);
  expect(rows, `months by ${by}`).toEqual([]);
}

/** Nothing has failed here, so the figure of a day says its status. */
async function compareStatuses(client: pg.Client, by: GroupBy): Promise<void> {
  const { rows } = await client.query(`
    SELECT usage_date, traces, is_final, coverage_status
    FROM ${inSchema(`fct_usage_${by}_daily`)}
    WHERE usage_date < '${dayOf(DAYS)}' AND coverage_status <> CASE
      WHEN traces IS NULL THEN 'missing' WHEN NOT is_final THEN 'provisional' WHEN traces = 0 THEN 'empty' ELSE 'ok'
    END`);
  expect(rows, `statuses by ${by}`).toEqual([]);
}

async function compareLoaded(store: Store, client: pg.Client, of: UsageOf, range: Days): Promise<void> {
  for (const [view, time, stepMs, loaded] of [
    [inSchema(`fct_usage_${of.by}_daily`), "usage_date", DAY_MS, loadedDays],
    [hoursBy(of.by), "usage_hour", DAY_MS / 24, loadedHours],
  ] as const) {
    const { rows } = await client.query<{ at: string; workspace: string; loaded: string; final: string }>(
      `SELECT extract(epoch FROM ${time})::bigint * 1000 AS at, workspace_id AS workspace,
              bool_and(traces IS NOT NULL)::text AS loaded, bool_and(is_final)::text AS final
       FROM ${view} WHERE ${time} >= $1::date AND ${time} < $2::date GROUP BY 1, 2`,
      [range.from, range.to],
    );
    const parts = await loaded(store.db, of, range);
    expect(parts.length).toBe(of.workspaceId === null ? WORKSPACES.length : 1);
    for (const { at, workspace, loaded, final } of rows) {
      const part = parts.find(({ workspaceId }) => workspaceId === workspace);
      if (part === undefined) continue;
      const isIn = (intervals: readonly { start: number; end: number }[]) =>
        String(intervals.some(({ start, end }) => start <= Number(at) && Number(at) + stepMs <= end));
      const what = `${view} ${of.by} ${workspace} ${new Date(Number(at)).toISOString()}`;
      expect([what, isIn(part.loaded), isIn(part.final)]).toEqual([what, loaded, final]);
    }
  }
}

function used(sums: readonly UsageSum[]) {
  return sums
    .filter(({ traces }) => traces > 0)
    .map(({ kind, id, ids, traces }) => ({ kind, id, ids, traces }));
}

function sum(lines: readonly { traces: string | number }[]): number {
  return lines.reduce((all, { traces }) => all + Number(traces), 0);
}
