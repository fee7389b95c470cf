import { expect, test } from "vitest";
import { monthAt, monthBefore, monthTitle } from "../../../src/domain/months/month.ts";
import { dayOf } from "../../../src/domain/time/days.ts";
import { HOUR_MS } from "../../../src/domain/time/stride.ts";
import { amountOf, centsShown } from "../../../src/domain/usage/amount.ts";
import { enterPrices } from "../../support/charges.ts";
import { setupPages, textOf } from "../../support/pages.ts";
import { setup } from "../../support/source.ts";

test("the overview says what is trusted, and what to do now with the command for it", async () => {
  const bench = await setup();
  const pages = await setupPages(bench);
  expect((await pages.get("/")).text).toMatch(
    /is not contacted yet, so nothing of it is loaded\. Its first sync/,
  );
  await bench.sync();
  const loaded = await pages.get("/");
  expect(loaded.text).toMatch(
    /Final until \S+\. Not proved from the start: \S+ is the first day that is not\./,
  );
  await bench.reconcile();
  const proved = /Final and proved until \d{4}-\d\d-\d\d/;
  expect((await pages.get("/")).text).toMatch(proved);
  const compressed = await fetch(pages.url);
  expect(compressed.headers.get("content-encoding")).toBe("gzip");
  expect(await compressed.text()).toMatch(proved);
  await bench.sql(`
    DELETE FROM usage.coverage
    WHERE scope_id = (SELECT min(scope_id) FROM usage.trace_scope WHERE stride = 'day') AND period_start = (SELECT min(period_start) FROM usage.coverage)`);
  const gap = await pages.get("/");
  const [, command = ""] = /<code>([^<]*backfill --from [^<]*)<\/code>/.exec(gap.text) ?? [];
  expect(command).toContain(`--from ${new Date(bench.dataStart).toISOString().slice(0, 10)}`);
});

test("the overview begins with the months: traces, what they cost, and what may be claimed of them", async () => {
  const bench = await setup({ days: 70, hourlyForMs: HOUR_MS });
  const { sql, store } = bench;
  await bench.sync();
  const pages = await setupPages(bench);
  await enterPrices(store, [{ unitPrice: "0.0123", from: dayOf(bench.dataStart) }]);
  const months = [monthAt(bench.now), monthBefore(monthAt(bench.now))];
  const shown = async () => textOf((await pages.get("/")).text);
  const expectMonths = async (text: string) => {
    for (const [n, month] of months.entries()) {
      const [row] = await sql<{ traces: string; cost: string; state: string }>(
        `SELECT (SELECT to_char(sum(traces), 'FM999,999,999') FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1 AND usage_date < $2) AS traces,
                sum(estimated_cost)::text AS cost,
                CASE WHEN NOT bool_and(is_final) THEN 'may still change' WHEN bool_and(is_proved) THEN 'final and proved' ELSE 'final, not proved' END AS state
         FROM reporting.usage_bill_monthly WHERE month_start = $1`,
        [month.start, month.end],
      );
      const state = n === 0 ? "so far" : row?.state;
      const cost = `${centsShown(amountOf(row?.cost ?? ""))} USD of what has a price, ${state}`;
      expect(text).toMatch(
        new RegExp(`${monthTitle(month)} ${row?.traces} traces, ${state} .*?estimated cost ${cost}`),
      );
    }
  };
  await expectMonths(await shown());
  await bench.reconcile();
  const text = await shown();
  await expectMonths(text);
  // Each day of the chart is made of its workspaces.
  const byDay = await sql<{ day: string; said: string }>(
    `SELECT usage_date::text AS day, string_agg(workspace_name || ': ' || to_char(traces, 'FM999,999,999'), ' ' ORDER BY t.total DESC) AS said
     FROM reporting.fct_usage_workspace_daily
     JOIN (
       SELECT workspace_id, sum(traces) AS total FROM reporting.fct_usage_workspace_daily
       WHERE usage_date > (now() AT TIME ZONE 'UTC')::date - 30 GROUP BY 1
     ) t USING (workspace_id)
     WHERE traces > 0 AND usage_date > (now() AT TIME ZONE 'UTC')::date - 30 GROUP BY 1`,
  );
  expect(byDay.length).toBe(30);
  for (const { day, said } of byDay) {
    const [, told = ""] = text.split(`${day}: `);
    expect(told.replace(/^[\d,]+ traces(, provisional)? /, "").slice(0, said.length)).toBe(said);
  }
  // A day of it is not loaded: what is loaded is the least, and the cost is a part of it.
  await sql(
    "DELETE FROM usage.coverage WHERE period_start <= $1 AND scope_id IN (SELECT scope_id FROM usage.trace_scope WHERE stride = 'day' AND group_by = 'workspace')",
    [months[1]?.start],
  );
  const gap = await shown();
  const [least] = await sql<{ traces: number }>(
    "SELECT sum(traces)::integer AS traces FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1 AND usage_date < $2",
    [months[1]?.start, months[1]?.end],
  );
  expect(gap).toContain(
    ` at least ${least?.traces.toLocaleString("en-US")} traces: not all of its days are loaded estimated cost at least `,
  );
});

test("the source of a page is that of the pages that it leads to", async () => {
  const bench = await setup();
  await bench.open();
  const pages = await setupPages(bench);
  const links = (text: string) =>
    [...text.matchAll(/<li><a href="(\/[a-z]+[^"]*)"/g)].map(([, to]) => to).slice(0, 8);
  const screens = [
    "/coverage",
    "/usage",
    "/owners",
    "/differences",
    "/months",
    "/alerts",
    "/backfills",
    "/timeline",
  ];
  expect(links((await pages.get("/timeline")).text)).toEqual(screens);
  for (const path of screens)
    expect(links((await pages.get(`${path}?source=default`)).text), path).toEqual(
      screens.map((to) => `${to}?source=default`),
    );
});

test("beside others, a source that is well takes one line, after those that are not", async () => {
  const bench = await setup();
  const pages = await setupPages(bench);
  await bench.sync();
  await bench.reconcile();
  await bench.sql(`
    INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
    SELECT 'another', 'http://another.test', data_start, 24, '' FROM usage.source`);
  const { text } = await pages.get("/");
  expect(text).toContain('<details id="details-default">');
});
