import fc from "fast-check";
import { expect, test } from "vitest";
import type { ColumnLength } from "../../src/domain/coverage/coverage-columns.ts";
import { STATUSES, unitsOf } from "../../src/domain/coverage/coverage-grid.ts";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../src/domain/time/stride.ts";
import type { Interval } from "../../src/domain/time/window.ts";
import { ensureScopes } from "../../src/store/catalog/scopes.ts";
import { registerWorkspaces } from "../../src/store/catalog/workspaces.ts";
import {
  type CoverageCell,
  type SourceCoverage,
  sourceCoverage,
} from "../../src/store/coverage/coverage-cells.ts";
import {
  type ColumnState,
  cellParts,
  columnStates,
  partsFor,
} from "../../src/store/coverage/coverage-table.ts";
import { openDays } from "../../src/store/coverage/open-days.ts";
import { enterSource, type StoreBundle, setupStore } from "../integration/store/setup.ts";
import { state, WORKSPACES, write } from "./coverage-states.ts";

/**
 * The grid of the operator's page, from intervals, against `reporting.usage_coverage_daily`, day by day: random states of the
 * tables, with loaded, final, failed, unverified, compared and differing time that overlaps in every way.
 */

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const RUNS = Number(process.env.MODEL_RUNS ?? 3);

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
