import { expect, test } from "vitest";
import { dayTitle, monthAt, monthBefore } from "../../../src/core/domain/months/month.ts";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { amountOf, centsShown } from "../../../src/core/domain/usage/amount.ts";
import { createPrices } from "../../support/charges.ts";
import { numberIn } from "../../support/dom.ts";
import { setupPages } from "../../support/pages.ts";
import { setup } from "../../support/source.ts";

const titled = (day: string | undefined) => dayTitle(day ?? "", { withYear: true });

test("the overview says what is proved, and what to do with the command for it", async () => {
  const bench = await setup();
  const pages = await setupPages(bench);
  expect((await pages.read("/")).notices).toHaveLength(1);
  await bench.sync();
  expect((await pages.read("/")).text).toMatch(/no day proved yet/);
  await bench.reconcile();
  const [trust] = await bench.sql<{ until: string }>(
    `SELECT max(usage_date)::text AS until FROM reporting.fct_usage_workspace_daily WHERE is_final`,
  );
  const proved = ` to ${titled(trust?.until)}`;
  expect((await pages.read("/")).text).toMatch(new RegExp(`Proved: [^.]*${proved}`));
  const compressed = await fetch(pages.url);
  expect(compressed.headers.get("content-encoding")).toBe("gzip");
  expect(await compressed.text()).toContain(proved);
  await bench.sql(`
    DELETE FROM usage.coverage
    WHERE scope_id = (SELECT min(scope_id) FROM usage.trace_scope WHERE stride = 'day') AND period_start = (SELECT min(period_start) FROM usage.coverage)`);
  expect((await pages.read("/")).text).toContain(`backfill --from ${dayOf(bench.dataStart)}`);
});

test("the overview has the cost and the traces of its month, the bills, and the days of each workspace", async () => {
  const bench = await setup({ days: 70, hourlyForMs: HOUR_MS });
  const { sql } = bench;
  await bench.sync();
  await createPrices(bench.store, [{ unitPrice: "0.0123", from: dayOf(bench.dataStart) }]);
  await bench.reconcile();
  const pages = await setupPages(bench);
  const now = monthAt(bench.now);
  for (const month of [now, monthBefore(now)]) {
    const [row] = await sql<{ traces: number; cost: string }>(
      `SELECT (SELECT sum(traces)::integer FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1 AND usage_date < $2) AS traces,
              sum(estimated_cost)::text AS cost
       FROM reporting.usage_bill_monthly WHERE month_start = $1`,
      [month.start, month.end],
    );
    const { facts, table, bars } = await pages.read(`/?month=${month.name}`);
    const sofar = month === now ? " so far" : "";
    const cost = amountOf(row?.cost ?? "");
    expect(numberIn(facts[`Traces${sofar}`])).toBe(row?.traces);
    expect(Math.round(numberIn(facts[`Cost${sofar} (estimate)`]))).toBe(Math.round(Number(row?.cost)));
    const bill = table("Bills").find(({ Month }) => Month === titled(month.start).slice(2));
    expect(bill?.USD).toBe(centsShown(cost));
    const days = await sql<{ day: string; cost: number }>(
      `SELECT usage_date::text AS day, round(sum(estimated_cost), 2)::float8 AS cost FROM reporting.fct_cost_workspace_daily
       WHERE usage_date >= $1 AND usage_date < $2 GROUP BY 1 HAVING sum(estimated_cost) > 0 ORDER BY 1`,
      [month.start, month.end],
    );
    const shown = new Map(bars.map((bar) => [bar.split(":")[0], numberIn(bar.split(": ")[1])]));
    expect(days.map(({ day }) => [day, shown.get(titled(day))])).toEqual(
      days.map(({ day, cost }) => [day, cost]),
    );
  }
  // A day that is not loaded makes all of it a lower bound.
  await sql(
    "DELETE FROM usage.coverage WHERE period_start <= $1 AND scope_id IN (SELECT scope_id FROM usage.trace_scope WHERE stride = 'day' AND group_by = 'workspace')",
    [monthBefore(now).start],
  );
  const { facts } = await pages.read(`/?month=${monthBefore(now).name}`);
  expect([facts.Traces?.slice(0, 2), facts["Cost (estimate)"]?.slice(0, 2)]).toEqual(["≥ ", "≥ "]);
});

test("all sources are summed, one source is alone, and the choice goes with every link", async () => {
  const bench = await setup({ days: 40, workspaces: [0, 1], hourlyForMs: HOUR_MS });
  await bench.sync();
  await bench.sql(`
    INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
    SELECT 'another', 'http://another.test', data_start, 24, '' FROM usage.source`);
  // The second source has the second workspace of the first.
  await bench.sql(`
    UPDATE usage.entity SET source_id = (SELECT source_id FROM usage.source WHERE slug = 'another')
    WHERE entity_id = (SELECT max(entity_id) FROM usage.workspace)`);
  await bench.sql(`
    UPDATE usage.scope SET source_id = (SELECT source_id FROM usage.source WHERE slug = 'another')
    WHERE workspace_id = (SELECT max(entity_id) FROM usage.workspace)`);
  const pages = await setupPages(bench);
  const month = monthBefore(monthAt(bench.now)).name;
  const tracesOf = async (path: string) => numberIn((await pages.read(path)).facts.Traces);
  const all = await tracesOf(`/?source=*&month=${month}`);
  const each = [
    await tracesOf(`/?source=default&month=${month}`),
    await tracesOf(`/?source=another&month=${month}`),
  ];
  expect(Math.min(...each)).toBeGreaterThan(0);
  expect(all).toBe(each.reduce((sum, one) => sum + one, 0));
  // The last choice is remembered where an address has none.
  const { screens } = await pages.read("/usage");
  expect(screens.every((link) => link.endsWith(`?source=another&month=${month}`))).toBe(true);
  await pages.get(`/?source=*&month=${month}`);
  const usage = await pages.read("/usage");
  expect(usage.screens[0]).toBe(`/?source=*&month=${month}`);
  expect(usage.text).toContain("another");
});

test("a workspace that only the provider counts makes a limit a lower bound, and is named", async () => {
  const bench = await setup({ days: 40, hourlyForMs: HOUR_MS });
  await bench.sync();
  const before = monthBefore(monthAt(bench.now)).start;
  const [{ loaded = 0 } = {}] = await bench.sql<{ loaded: number }>(
    "SELECT sum(traces)::integer AS loaded FROM reporting.fct_usage_workspace_daily WHERE usage_date >= date_trunc('month', now())",
  );
  await bench.sql(
    `INSERT INTO usage.usage_limit (source_id, workspace, limit_type, limit_value, is_rejecting, read_at)
     SELECT source_id, '', 'monthly_traces', $1, false, now() FROM usage.source`,
    [loaded * 100],
  );
  const limit = async () =>
    (
      await bench.sql(
        "SELECT is_complete, reached_on IS NULL AS never, traces_not_loaded::integer AS missing FROM reporting_detail.usage_limit",
      )
    )[0];
  expect(await limit()).toEqual({ is_complete: true, never: true, missing: 0 });
  // So much that the limit is reached with it.
  const missing = loaded * 200;
  await bench.sql(
    `INSERT INTO usage.unloaded_workspace (source_id, month_start, workspace, traces, read_at)
     SELECT source_id, $1, 'c738f213', $2, now() FROM usage.source`,
    [before, missing],
  );
  expect(await limit()).toMatchObject({ is_complete: false, missing });
  const { text } = await (await setupPages(bench)).read("/");
  expect(text).toContain("1 workspace is not loaded");
  expect(text).toContain("c738f213");
});
