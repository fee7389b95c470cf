import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { checkTotals } from "../../../src/core/pipeline/proof/check-totals.ts";
import type { EvaluatorDay } from "../../../src/features/standin/engine/evaluators.ts";
import type { FaultStep } from "../../../src/features/standin/engine/faults.ts";
import { createPrices } from "../../support/charges.ts";
import { setupPages } from "../../support/pages.ts";
import { type Bench, setup } from "../../support/source.ts";
import { EVALUATOR_FAULTS } from "../../support/wrong-bodies.ts";

const ALL = { settings: { meters: ["traces", "evaluators"] } } as const;

async function setupEvaluators(options: Parameters<typeof setup>[0] = {}): Promise<Bench> {
  return setup({
    workspaces: [0, 1],
    hourlyForMs: HOUR_MS,
    ...options,
    standin: { evaluators: "on", ...options.standin },
  });
}

function ledgerOf({ standin, workspaceIds, dataStart, now }: Bench): EvaluatorDay[] {
  return workspaceIds.flatMap((workspaceId) =>
    standin.evaluatorLedger.days({ workspaceId, start: dataStart, end: now }),
  );
}

type By = "workspace" | "run_rule";

function inLedger(bench: Bench, by: By): string[] {
  const sums = new Map<string, [number, number]>();
  for (const { evaluator, rule, day, spend_usd, trace_count } of ledgerOf(bench)) {
    const workspace = evaluator.workspace.id;
    const key = `${new Date(day).toISOString().slice(0, 10)} ${workspace} ${by === "workspace" ? workspace : rule.id}`;
    const [spend, traces] = sums.get(key) ?? [0, 0];
    sums.set(key, [spend + spend_usd, traces + trace_count]);
  }
  return [...sums].map(([key, [spend, traces]]) => `${key} ${spend} ${traces}`).sort();
}

const sumOf = (measure: string) => `sum(quantity) FILTER (WHERE measure = '${measure}')`;

async function inViews({ sql }: Bench, by: By): Promise<string[]> {
  const rows = await sql<{ line: string }>(
    `SELECT concat_ws(' ', usage_date, workspace_id, dimension_id, trim_scale(${sumOf("spend_usd")} * 1000000000),
                      trim_scale(coalesce(${sumOf("evaluated_traces")}, 0))) AS line
     FROM reporting_detail.fct_other_usage_daily WHERE group_by = '${by}' AND meter = 'evaluators'
     GROUP BY usage_date, workspace_id, dimension_id HAVING sum(quantity) > 0`,
  );
  return rows.map(({ line }) => line).sort();
}

const PATH = "/evaluators/spend";
const fault = (wrong: keyof typeof EVALUATOR_FAULTS, times = 1): FaultStep => ({
  fault: EVALUATOR_FAULTS[wrong],
  match: { path: PATH },
  times,
});

test("days by workspace and rule are those of the platform, to the last digit", async () => {
  const bench = await setupEvaluators({ days: 17 });
  const { run } = await bench.sync(ALL);
  expect(run.failures).toEqual([]);
  expect(inLedger(bench, "run_rule").length).toBeGreaterThan(20);
  for (const by of ["workspace", "run_rule"] as const)
    expect(await inViews(bench, by)).toEqual(inLedger(bench, by));

  await bench.sync(ALL);
  expect(await inViews(bench, "run_rule")).toEqual(inLedger(bench, "run_rule"));
  const last = ledgerOf(bench).findLast(({ evaluator }) => evaluator.type === "llm") as EvaluatorDay;
  bench.standin.evaluatorLedger.change({
    ruleId: last.rule.id,
    at: last.day,
    ...({ measure: "spend_usd", delta: 123_456_789 } as const),
  });
  await bench.sync(ALL);
  expect(await inViews(bench, "run_rule")).toEqual(inLedger(bench, "run_rule"));
});

test("each rule is known with its evaluator, what it looks at, and its limit", async () => {
  const bench = await setupEvaluators();
  await bench.sync(ALL);
  const rows = await bench.sql<{ line: string }>(
    `SELECT concat_ws(' | ', dimension_id, dimension_name, evaluator_id, evaluator_name, project_id, project_name, dataset_id, dataset_name,
                      trim_scale(weekly_limit_usd)) AS line
     FROM reporting_detail.dim_resource WHERE group_by = 'run_rule'`,
  );
  const used = new Set(ledgerOf(bench).map(({ rule }) => rule.id));
  const expected = bench.standin.organisation.evaluators.flatMap(({ id, name, rules }) =>
    rules
      .filter((rule) => used.has(rule.id))
      .map((rule) =>
        [
          rule.id,
          rule.name,
          id,
          name,
          rule.project?.id,
          rule.project?.name,
          rule.dataset?.id,
          rule.dataset?.name,
        ]
          .concat(rule.limitUsd === null ? [] : String(rule.limitUsd))
          .filter((one) => one !== undefined)
          .join(" | "),
      ),
  );
  expect(rows.map(({ line }) => line).sort()).toEqual(expected.sort());
  expect(rows.length).toBeGreaterThan(2);
});

test("no spend is stored whose rule is not: a final day is not asked for again", async () => {
  const bench = await setupEvaluators({ workspaces: [0] });
  await bench.sql("ALTER TABLE usage.run_rule ADD CONSTRAINT refused CHECK (evaluator_id IS NULL)");
  await expect(bench.sync(ALL)).rejects.toThrow("refused");
  expect(await inViews(bench, "run_rule")).toEqual([]);
  await bench.sql("ALTER TABLE usage.run_rule DROP CONSTRAINT refused");
  await bench.passTime();
  await bench.sync(ALL);
  expect(await inViews(bench, "run_rule")).toEqual(inLedger(bench, "run_rule"));
  const unknown = await bench.sql(
    "SELECT FROM reporting_detail.dim_resource WHERE group_by = 'run_rule' AND evaluator_id IS NULL",
  );
  expect(unknown).toEqual([]);
});

test.each(["negative", "not-a-number", "other-day", "day-twice", "group-twice", "foreign"] as const)(
  "what cannot be (%s) is refused; nothing is doubled, and all is loaded afterwards",
  async (wrong) => {
    const bench = await setupEvaluators({ workspaces: [0] });
    bench.standin.faults.script({ ...fault(wrong, 1000), skip: 1 });
    const { run } = await bench.sync(ALL);
    expect(new Set(run.failures.map(({ code }) => code))).toEqual(new Set(["response_invalid"]));
    expect(await inViews(bench, "run_rule")).toEqual([]);
    bench.standin.faults.clear();
    await bench.passTime();
    await bench.sync(ALL);
    for (const by of ["workspace", "run_rule"] as const)
      expect(await inViews(bench, by)).toEqual(inLedger(bench, by));
  },
);

test("spend of a rule that is not named is that of none, and is not lost", async () => {
  const bench = await setupEvaluators({ workspaces: [0] });
  bench.standin.faults.script(fault("no-rule", 1000));
  await bench.sync(ALL);
  const spendBy = async (by: By) =>
    bench.sql(
      `SELECT ${sumOf("spend_usd")}::text AS spend FROM reporting_detail.fct_other_usage_daily WHERE group_by = '${by}'`,
    );
  expect(await spendBy("run_rule")).toEqual(await spendBy("workspace"));
  const none = await bench.sql(
    "SELECT DISTINCT dimension_id FROM reporting_detail.fct_other_usage_daily WHERE group_by = 'run_rule' AND dimension_id = '(none)'",
  );
  expect(none).toHaveLength(1);
});

test("totals of longer windows prove the days, and a late change is a restatement", async () => {
  const bench = await setupEvaluators({ days: 45, workspaces: [0] });
  await bench.sync(ALL);
  const source = await bench.open(ALL);
  const good = await checkTotals(source, "all");
  expect(good.findings).toEqual([]);
  expect(good.others.find(({ meter }) => meter === "evaluators")?.daysProved).toBeGreaterThan(60);

  const early = ledgerOf(bench).find(({ day }) => day > bench.today - 25 * DAY_MS) as EvaluatorDay;
  const change = { ruleId: early.rule.id, at: early.day } as const;
  bench.standin.evaluatorLedger.change({ ...change, measure: "trace_count", delta: 3 });
  const changed = await checkTotals(source, "all");
  expect(changed.restated).toBeGreaterThan(0);
  expect(changed.findings).toEqual([]);
  expect(await inViews(bench, "run_rule")).toEqual(inLedger(bench, "run_rule"));
});

test("the bill names the spend, with no cost: no invoice has it, and it changes no total", async () => {
  const bench = await setupEvaluators();
  const prices = [{ sku: "traces", unitPrice: "0.5", currency: "EUR", from: "2020-01-01" }];
  const costs = () =>
    bench.sql(
      "SELECT sum(estimated_cost)::text AS cost FROM reporting.usage_bill_monthly WHERE currency = 'EUR'",
    );
  await bench.sync({ settings: { meters: ["traces"] } });
  await createPrices(bench.store, prices);
  const before = await costs();
  await bench.sync(ALL);
  expect(await costs()).toEqual(before);
  const lines = await bench.sql<{ line: string; measure: string; quantity: string; cost: string | null }>(
    `SELECT line, measure, trim_scale(sum(quantity) * 1000000000)::text AS quantity, max(estimated_cost)::text AS cost
     FROM reporting.usage_bill_monthly WHERE service = 'evaluators' GROUP BY 1, 2`,
  );
  const spend = ledgerOf(bench).reduce((sum, one) => sum + one.spend_usd, 0);
  expect(lines).toEqual([
    { line: "not_invoiced", measure: "spend_usd", quantity: String(spend), cost: null },
  ]);
  const focus = await bench.sql(
    `SELECT DISTINCT "ServiceName" FROM reporting_detail.focus_1_4_cost_and_usage`,
  );
  expect(focus).toHaveLength(1);

  const pages = await setupPages(bench);
  const warned = async (query: string) =>
    (await pages.read(`/usage?${query}`)).notices.filter((one) => one.includes("No invoice has it")).length;
  expect(await warned("measure=spend_usd&by=workspace")).toBe(1);
  expect(await warned("measure=spend_usd&by=project")).toBe(1);
  expect(await warned("measure=evaluated_traces")).toBe(0);
});

test("a server without evaluators is asked once; one whose address is the other documented one is read", async () => {
  const without = await setupEvaluators({ standin: { evaluators: "off" } });
  await without.sync(ALL);
  const requested = () => without.standin.requests.recent.filter(({ url }) => url.includes(PATH)).length;
  const first = requested();
  expect(first).toBeGreaterThan(0);
  await without.sync(ALL);
  expect(requested()).toBe(first);

  const other = await setupEvaluators();
  other.standin.faults.script({ fault: { kind: "status", status: 404 }, match: { path: PATH }, times: 1 });
  await other.sync(ALL);
  const addresses = other.standin.requests.recent.map(({ url }) => url).filter((url) => url.includes(PATH));
  expect(addresses.filter((url) => !url.startsWith("/api/"))).toHaveLength(1);
  expect(addresses.length).toBeGreaterThan(2);
  expect(await inViews(other, "run_rule")).toEqual(inLedger(other, "run_rule"));
});
