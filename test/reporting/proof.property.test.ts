import fc from "fast-check";
import { expect, test } from "vitest";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { openDaysOf } from "../../src/features/close/open-days.store.ts";
import { type StoreBundle, setupStore } from "../integration/store/setup.ts";
import { seed, times } from "../support/drawn.ts";
import { inSchema } from "../support/views.ts";
import {
  at,
  begin,
  DAYS,
  expected,
  iso,
  type Proved,
  START,
  type Step,
  sourceId,
  step,
  take,
} from "./proof-history.ts";

const SEED = seed(20_260_301);
const RUNS = times(2);
const MS = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8`;
const COLUMNS = `is_reconciled, ${MS("reconciled_at")} AS reconciled, ${MS("totals_matched_at")} AS totals, ${MS("proved_at")} AS later`;
type Row = Proved & { key: string; is_reconciled: boolean; is_final: boolean };

async function shown({ reader }: StoreBundle, text: string): Promise<Row[]> {
  const { rows } = await reader.query<Row>(text, [iso(0).slice(0, 10), iso(DAYS).slice(0, 10)]);
  for (const row of rows) expect(row.is_reconciled, row.key).toBe(row.reconciled !== null);
  return rows;
}

const instants = ({ reconciled, totals, later }: Proved) =>
  [reconciled, totals, later].map((one) => (one === null ? null : Math.round(one)));

async function check(bundle: StoreBundle, about: string): Promise<void> {
  const model = expected();
  const coverage = await shown(
    bundle,
    `
    SELECT usage_date || ' ' || workspace_id || ' ' || stride AS key, status IN ('ok', 'empty') AS is_final, ${COLUMNS}
    FROM reporting_detail.usage_coverage_daily WHERE group_by = 'project' AND usage_date >= $1 AND usage_date < $2`,
  );
  for (const row of coverage) {
    expect(instants(row), `${about}: coverage ${row.key}`).toEqual(instants(model.get(row.key) as Proved));
  }
  expect(coverage.filter(({ key }) => key.endsWith("day"))).toHaveLength(2 * DAYS);
  const rows = await shown(
    bundle,
    `
    SELECT DISTINCT usage_date || ' ' || workspace_id || ' day' AS key, is_final, ${COLUMNS}
    FROM reporting.fct_usage_project_daily WHERE usage_date >= $1 AND usage_date < $2`,
  );
  for (const row of rows) {
    expect(instants(row), `${about}: project ${row.key}`).toEqual(instants(model.get(row.key) as Proved));
  }
  const ranges = [{ start: START, end: at(DAYS) }];
  const [checked] = await openDaysOf(bundle.store.db, { sourceId, ranges });
  const { open = [] } = checked ?? {};
  const sendable = coverage.filter((row) => row.key.endsWith("day") && row.is_final && row.is_reconciled);
  const ready = new Set(sendable.map(({ key }) => key));
  const isOpen = open
    .filter((one) => one.groupBy === "project")
    .map((one) => `${new Date(one.day).toISOString().slice(0, 10)} ${one.workspaceId} day`);
  const all = [...model.keys()].filter((key) => key.endsWith("day"));
  expect(all.filter((key) => !ready.has(key)).sort(), `${about}: close`).toEqual([...new Set(isOpen)].sort());
}

const known = (
  what: Step["what"],
  scope: number,
  span: Step["span"],
  change: Step["change"] = [],
  n = 1,
): Step => {
  return { what, scope, span, change, n };
};

const KNOWN: readonly Step[] = [
  known("export", 0, [0, 9]),
  known("total", 0, [0, 8], [], 2),
  known("late", 0, [3, 1], [[3, 1, 2]]),
  known("total", 0, [4, 4], [[5, 1, 3]]),
  known("total", 0, [4, 4]),
  known("export", 0, [6, 2], [[6, 1, 2]], 4),
  known("export", 1, [0, 8]),
  known("load", 0, [1, 2], [[2, 0, 1]]),
  known("export", 1, [2, 1]),
  known("prune", 0, [0, 1]),
  known("export", 0, [0, 9]),
  known("total", 0, [5, 4]),
  known("invalidate", 0, [0, 9]),
  known("load", 0, [8, 1]),
];

test(`the columns of proof are the model's and those of close after every step (seed ${SEED}, ${RUNS} histories)`, async () => {
  const bundle = await setupStore();
  let proved = 0;
  const drawn = fc.sample(fc.array(step, { minLength: 10, maxLength: 16 }), { seed: SEED, numRuns: RUNS });
  for (const steps of [KNOWN, ...drawn]) {
    await begin(bundle);
    for (const [n, one] of steps.entries()) {
      await take(one);
      await check(bundle, `step ${n} of ${JSON.stringify(steps)}`);
      proved += [...expected().values()].filter(({ later }) => later !== null).length;
    }
  }
  expect(proved).toBeGreaterThan(100);
});

test("a query of a daily view reads how days were proved only if it asks for it", async () => {
  const { reader } = await setupStore();
  const planOf = async (view: string, columns: string) =>
    (await reader.query<{ "QUERY PLAN": string }>(`EXPLAIN SELECT ${columns} FROM ${inSchema(view)}`)).rows
      .map((row) => row["QUERY PLAN"])
      .join("\n");
  const views = [
    "usage_coverage_daily",
    "usage_coverage_by_kind_daily",
    "fct_other_usage_daily",
    ...GROUPINGS.map((groupBy) => `fct_usage_${groupBy}_daily`),
  ];
  for (const view of views) {
    expect(await planOf(view, "usage_date, workspace_id"), view).not.toMatch(/_proof|reconcil|matched_total/);
    expect(await planOf(view, "usage_date, is_reconciled"), view).toMatch(/ on day_proof/);
  }
});
