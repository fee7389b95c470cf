import { expect, test } from "vitest";
import { monthBefore, monthNamed } from "../../src/core/domain/months/month.ts";
import { amountText } from "../../src/core/domain/usage/amount.ts";
import { monthBudgets } from "../../src/features/owners/budgets.ts";
import { idleBudgets } from "../../src/features/owners/owners.store.ts";
import { createDimension, createMonths, createPrices, DAYS, dayOf } from "../support/charges.ts";
import { setOwners } from "../support/owners.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { inSchema } from "../support/views.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const APRIL = monthNamed("2026-04") as NonNullable<ReturnType<typeof monthNamed>>;
const OWNERS = `
rules:
  - { project: a, shares: [{ owner: search, share: 0.25 }, { owner: chat, share: 0.75 }] }
  - { workspace: ${OTHER}, owner: chat }
budgets:
  - { owner: search, traces: 100 }
  - { owner: chat, amount: 20, currency: USD, warn_at: [10, 80] }
  - { workspace: ${WORKSPACE}, amount: 1000.5, currency: USD }
  - { workspace: ${OTHER}, traces: 5000 }
  - { project: a, traces: 500 }
  - { project: a, amount: 7, currency: USD, source: default }
  - { traces: 100000 }
  - { amount: 3, currency: EUR }
  - { traces: 1, source: elsewhere }
`;

test("what is spent of a budget is what the views say, and a day that is not loaded is no zero", async () => {
  const bench = await setupSource();
  const { store, url } = bench;
  const client = await connectPlain(url);
  const usage = Object.fromEntries(
    WORKSPACES.map((workspace, n) => [
      workspace,
      Object.fromEntries(Array.from({ length: DAYS }, (_, at) => [at, 40 + n * 10 + (at % 7)])),
    ]),
  );
  const [lost, unknown] = [35, 40];
  await createMonths(bench, usage, { [OTHER]: [lost] });
  const records = WORKSPACES.flatMap((workspace) =>
    Array.from({ length: DAYS }, (_, at) => [workspace, at, "a", 11 + (at % 3)] as const),
  );
  await createDimension(bench, "project", {
    workspaces: [...WORKSPACES],
    records,
    leftOut: { [WORKSPACE]: [unknown] },
  });
  await createPrices(store, [{ unitPrice: "0.01" }]);
  await setOwners(store, OWNERS);

  const now = Date.parse(`${dayOf(60)}T12:00Z`);
  const found = await monthBudgets(store.db, { month: APRIL, now });
  const isApril = "usage_date >= '2026-04-01' AND usage_date < '2026-05-01'";
  const sums = [
    `SELECT sum(traces) FROM reporting.fct_usage_owner_daily WHERE owner = 'search' AND ${isApril}`,
    `SELECT sum(estimated_cost) FROM reporting.fct_cost_owner_daily WHERE owner = 'chat' AND ${isApril}`,
    `SELECT sum(estimated_cost) FROM reporting.fct_cost_workspace_daily WHERE workspace_id = '${WORKSPACE}' AND ${isApril}`,
    `SELECT sum(traces) FROM reporting.fct_usage_workspace_daily WHERE workspace_id = '${OTHER}' AND ${isApril}`,
    `SELECT sum(traces) FROM reporting.fct_usage_project_daily WHERE project_id = 'a' AND ${isApril}`,
    `SELECT sum(estimated_cost) FROM ${inSchema("fct_cost_by_id_daily")} WHERE group_by = 'project' AND dimension_id = 'a' AND ${isApril}`,
    `SELECT sum(traces) FROM reporting.fct_usage_workspace_daily WHERE ${isApril}`,
    "SELECT 0",
    "SELECT 0",
  ];
  const expected = [];
  for (const statement of sums) {
    const { rows } = await client.query({ text: `SELECT trim_scale((${statement})::numeric)::text AS sum` });
    expected.push(rows[0].sum);
  }
  expect(found.map(({ spent }) => amountText(spent))).toEqual(expected);
  expect(found.map(({ daysMissing }) => daysMissing)).toEqual([2, 2, 0, 1, 2, 2, 1, 1, 0]);
  expect(found.map(({ missingIn }) => missingIn)).toEqual(
    found.map(({ daysMissing }) => (daysMissing === 0 ? [] : ["default"])),
  );
  expect(found.flatMap(({ isPriced }, at) => (isPriced ? [] : [at]))).toEqual([7]);
  expect(found.flatMap(({ mayBeLess }, at) => (mayBeLess ? [at] : []))).toEqual([1]);
  expect(found.map(({ passed }) => passed)).toEqual([100, 80, null, null, 100, 90, null, null, null]);
  const { rows } = await client.query(
    `SELECT min(usage_date)::text AS day FROM (
       SELECT usage_date, sum(sum(traces)) OVER (ORDER BY usage_date) AS sum FROM reporting.fct_usage_owner_daily
       WHERE owner = 'search' AND ${isApril} GROUP BY 1
     ) d WHERE sum >= 100`,
  );
  expect(found[0]?.reached).toEqual({ day: rows[0].day, isSure: true });

  const reader = await connectPlain(url, "usage_reader");
  const { rows: read } = await reader.query(
    `SELECT b.n::integer AS n, coalesce(trim_scale(sum(spent)), 0)::text AS spent,
            coalesce(trim_scale(sum(spent) FILTER (WHERE is_final)), 0)::text AS final,
            (count(DISTINCT usage_date) FILTER (WHERE NOT is_complete AND usage_date < '2026-04-30'))::integer AS missing,
            (trim_scale(max(even_pace)) = trim_scale(max(budget_amount))) IS NOT FALSE AS is_even
     FROM generate_series(1, 9) b (n)
     LEFT JOIN reporting_detail.fct_budget_daily d ON d.budget_number = b.n AND budget_starts_on = '2026-04-01' AND ${isApril}
     GROUP BY b.n ORDER BY b.n`,
  );
  expect(read).toEqual(
    found.map(({ spent, final, daysMissing }, at) => ({
      n: String(at + 1),
      spent: amountText(spent),
      final: amountText(final),
      missing: String(daysMissing),
      is_even: "t",
    })),
  );

  // A billing period of 10 April to 10 May: of the first one that is known, the start is a month before.
  await client.query(
    `INSERT INTO usage.billing_period (source_id, ends_at, read_at) SELECT source_id, '2026-05-10Z', now() FROM usage.source`,
  );
  const perPeriod = `rules: []\nbudgets:\n  - { source: default, workspace: ${WORKSPACE}, traces: 900, per: billing_period }\n  - { traces: 5, source: elsewhere, per: billing_period }\n`;
  await setOwners(store, perPeriod);
  expect(await idleBudgets(store.db)).toEqual([4]);
  const [own, other] = await monthBudgets(store.db, { month: APRIL, now });
  const spent = await client.query(
    `SELECT sum(traces)::text AS sum FROM reporting.fct_usage_workspace_daily WHERE workspace_id = '${WORKSPACE}' AND usage_date >= '2026-04-10' AND usage_date < '2026-05-10'`,
  );
  expect(amountText(own?.spent ?? 0n)).toBe(spent.rows[0].sum);
  expect(own).toMatchObject({
    period: { from: "2026-04-10", to: "2026-05-10" },
    percentOfTime: 66,
    isOver: false,
  });
  expect(own?.forecast).toBeGreaterThan(900);
  expect(own?.reached?.day).toBe("2026-04-30");
  const ofPeriod = await reader.query(
    "SELECT trim_scale(sum(spent))::text AS sum FROM reporting_detail.fct_budget_daily WHERE budget_starts_on = '2026-04-10' AND budget_ends_on = '2026-05-10'",
  );
  expect(ofPeriod.rows[0].sum).toBe(spent.rows[0].sum);
  expect(other).toMatchObject({ period: null, spent: 0n, countedFrom: null });
  const march = await monthBudgets(store.db, { month: monthBefore(APRIL), now });
  expect(march.map(({ period }) => period)).toEqual([null, null]);
  await setOwners(store, OWNERS);
  expect(await idleBudgets(store.db)).toEqual([13, 14]);

  await createPrices(store, [{ unitPrice: "0.01", to: dayOf(55), workspace: WORKSPACE }]);
  const left = await monthBudgets(store.db, { month: APRIL, now });
  expect(left.map(({ daysUnpriced }) => daysUnpriced)).toEqual([0, 5, 5, 0, 0, 5, 0, 5, 0]);
  expect(left.map(({ daysMissing }) => daysMissing)).toEqual([2, 7, 5, 1, 2, 7, 1, 6, 0]);
  expect(left[2]).toMatchObject({ forecast: null });
});
