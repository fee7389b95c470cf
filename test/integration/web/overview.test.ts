import { expect, test } from "vitest";
import { monthAt, monthBefore, monthTitle } from "../../../src/core/domain/months/month.ts";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { amountOf, centsShown } from "../../../src/core/domain/usage/amount.ts";
import { createPrices } from "../../support/charges.ts";
import { setupPages } from "../../support/pages.ts";
import { setup } from "../../support/source.ts";

test("the overview says what is trusted, and what to do now with the command for it", async () => {
  const bench = await setup();
  const pages = await setupPages(bench);
  expect((await pages.read("/")).notices).toHaveLength(1);
  await bench.sync();
  expect((await pages.read("/")).text).toMatch(/Final until \S+ Not proved/);
  await bench.reconcile();
  const [trust] = await bench.sql<{ until: string }>(
    `SELECT max(usage_date)::text AS until FROM reporting.fct_usage_workspace_daily WHERE is_final`,
  );
  const proved = `Final and proved until ${trust?.until}`;
  expect((await pages.read("/")).text).toContain(proved);
  const compressed = await fetch(pages.url);
  expect(compressed.headers.get("content-encoding")).toBe("gzip");
  expect(await compressed.text()).toContain(proved);
  await bench.sql(`
    DELETE FROM usage.coverage
    WHERE scope_id = (SELECT min(scope_id) FROM usage.trace_scope WHERE stride = 'day') AND period_start = (SELECT min(period_start) FROM usage.coverage)`);
  expect((await pages.read("/")).text).toContain(`backfill --from ${dayOf(bench.dataStart)}`);
});

test("the overview begins with the months, at least what is loaded of them, what it costs and may be claimed, and the days of each workspace", async () => {
  const bench = await setup({ days: 70, hourlyForMs: HOUR_MS });
  const { sql } = bench;
  await bench.sync();
  await createPrices(bench.store, [{ unitPrice: "0.0123", from: dayOf(bench.dataStart) }]);
  const months = [monthAt(bench.now), monthBefore(monthAt(bench.now))] as const;
  const pages = await setupPages(bench);
  for (const check of ["loaded", "proved"]) {
    if (check === "proved") await bench.reconcile();
    const { facts } = await pages.read("/");
    for (const [n, month] of months.entries()) {
      const [row] = await sql<{ traces: string; cost: string; state: string }>(
        `SELECT (SELECT to_char(sum(traces), 'FM999,999,999') FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1 AND usage_date < $2) AS traces,
                sum(estimated_cost)::text AS cost,
                CASE WHEN NOT bool_and(is_final) THEN 'may still change' WHEN bool_and(is_proved) THEN 'final and proved' ELSE 'final, not proved' END AS state
         FROM reporting.usage_bill_monthly WHERE month_start = $1`,
        [month.start, month.end],
      );
      const state = n === 0 ? "so far" : row?.state;
      const fact = facts[monthTitle(month)];
      expect(fact, check).toContain(`${row?.traces} traces, ${state}`);
      expect(fact, check).toContain(
        `${centsShown(amountOf(row?.cost ?? ""))} USD of what has a price, ${state}`,
      );
    }
  }

  const byDay = await sql<{ day: string; traces: string; parts: string }>(
    `SELECT usage_date::text AS day, to_char(sum(traces), 'FM999,999,999') AS traces,
            string_agg(workspace_name || ': ' || to_char(traces, 'FM999,999,999'), E'\\n' ORDER BY t.total DESC) FILTER (WHERE traces > 0) AS parts
     FROM reporting.fct_usage_workspace_daily
     JOIN (
       SELECT workspace_id, sum(traces) AS total FROM reporting.fct_usage_workspace_daily
       WHERE usage_date > (now() AT TIME ZONE 'UTC')::date - 30 GROUP BY 1
     ) t USING (workspace_id)
     WHERE usage_date > (now() AT TIME ZONE 'UTC')::date - 30 GROUP BY 1 ORDER BY 1`,
  );
  const { bars } = await pages.read("/");
  expect(bars.map((bar) => bar.replace(/, provisional|\nUnusual: .*/g, ""))).toEqual(
    byDay.map(({ day, traces, parts }) => `${day}: ${traces} traces\n${parts}`),
  );

  const [, last] = months;
  await sql(
    "DELETE FROM usage.coverage WHERE period_start <= $1 AND scope_id IN (SELECT scope_id FROM usage.trace_scope WHERE stride = 'day' AND group_by = 'workspace')",
    [last.start],
  );
  const [least] = await sql<{ traces: string }>(
    "SELECT to_char(sum(traces), 'FM999,999,999') AS traces FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1 AND usage_date < $2",
    [last.start, last.end],
  );
  const fact = (await pages.read("/")).facts[monthTitle(last)];
  expect(fact).toMatch(new RegExp(`^at least ${least?.traces} traces.* cost at least `));
});

test("beside others, a source that is well takes one line, after those that are not", async () => {
  const bench = await setup({ workspaces: [0] });
  const pages = await setupPages(bench);
  await bench.sync();
  await bench.reconcile();
  await bench.sql(`
    INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
    SELECT 'another', 'http://another.test', data_start, 24, '' FROM usage.source`);
  const { headings, folded } = await pages.read("/");
  expect(headings.filter((one) => ["another", "default"].includes(one))).toEqual(["another", "default"]);
  expect(folded).toContain("default");
});
