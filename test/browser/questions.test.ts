import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { monthAt, monthTitle } from "../../src/domain/months/month.ts";
import { dayOf } from "../../src/domain/time/days.ts";
import { DAY_MS } from "../../src/domain/time/stride.ts";
import { amountOf, centsShown } from "../../src/domain/usage/amount.ts";
import { inBrowser, openPage } from "../support/browser/page.ts";
import { enterPrices } from "../support/charges.ts";
import { bench, load, month, setUpMonth } from "../support/month.ts";
import { setupPages } from "../support/pages.ts";
import { senderOn } from "../support/source.ts";

/** What people come for: each answer is looked for from the first page by clicks, counted, and compared with the database. */

inBrowser();

test("ten questions are answered within two clicks of the first page, as the database answers them", async () => {
  await setUpMonth([0, 1]);
  const { standin, dataStart, today, sql, store } = bench;
  const failed = today - 6 * DAY_MS;
  await load({ start: dataStart, end: failed });
  const during = { from: new Date(failed).toISOString(), to: new Date(failed + DAY_MS).toISOString() };
  standin.faults.set({
    script: [{ fault: { kind: "status", status: 422 }, times: 1000, match: { during } }],
  });
  await load({ start: failed, end: today + DAY_MS });
  await bench.reconcile({ range: month });
  await enterPrices(store, [{ unitPrice: "0.00123", from: dayOf(dataStart) }]);
  await sql(
    "INSERT INTO usage.usage_limit SELECT source_id, '', 'monthly_traces', 10, false, now() FROM usage.source",
  );

  const pages = await setupPages(bench);
  const { page, go } = await openPage(pages.url);
  let clicks = 0;
  const begin = async () => {
    await go("/");
    clicks = 0;
  };
  const click = async (what: Locator) => {
    clicks++;
    await what.first().click();
    await page.waitForLoadState();
  };
  const link = (name: string | RegExp) => page.getByRole("link", { name });
  const text = async (where = "main") =>
    ((await page.locator(where).first().textContent()) ?? "").replace(/\s+/g, " ");
  const asked = monthAt(month.start);
  const title = monthTitle(asked);
  const days = [dayOf(month.start), dayOf(month.end)];
  const one = async <T>(statement: string, parameters: unknown[] = days) =>
    (await sql<T>(statement, parameters))[0] as T;

  // How much did a team use last month, what did it cost, and is that final and proved?
  await begin();
  await click(link(title));
  expect(clicks).toBe(1);
  const team = await one<{ name: string; traces: number }>(
    `SELECT workspace_name AS name, sum(traces)::integer AS traces FROM reporting.fct_usage_workspace_daily
     WHERE usage_date >= $1 AND usage_date < $2 GROUP BY 1 ORDER BY 2 LIMIT 1`,
  );
  const row = page.getByRole("row").filter({ hasText: team.name });
  expect(await row.last().textContent()).toContain(team.traces.toLocaleString("en-US"));
  const { cost } = await one<{ cost: string }>(
    "SELECT sum(estimated_cost)::text AS cost FROM reporting.fct_cost_workspace_daily WHERE usage_date >= $1 AND usage_date < $2",
  );
  const statement = await text();
  expect(statement).toMatch(
    new RegExp(`Estimated cost, USD\\s*${centsShown(amountOf(cost))}\\s*●\\s*final and proved`),
  );

  // How does it compare with the month before?
  const { before, now } = await one<{ before: number; now: number }>(
    `SELECT sum(traces) FILTER (WHERE usage_date < $1)::integer AS before, sum(traces) FILTER (WHERE usage_date >= $1)::integer AS now
     FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1::date - interval '1 month' AND usage_date < $2`,
  );
  const [, sign, change] = /([+−])([\d.]+) % against /.exec(statement) ?? [];
  expect(Number(change) * (sign === "+" ? 1 : -1)).toBeCloseTo((100 * (now - before)) / before, 0);

  // Close the month. The second click shows what is closed; a third one does it.
  await click(link(/^Close /));
  expect(clicks).toBe(2);
  await click(page.getByRole("button", { name: /^Close / }));
  const { closed } = await one<{ closed: number }>(
    "SELECT count(*)::integer AS closed FROM usage.month_close WHERE month_start >= $1 AND month_start < $2",
  );
  expect(closed).toBe(1);

  // What changed since the invoice?
  standin.ledger.change(senderOn(standin, 0, month.start + DAY_MS), 25);
  await load({ start: month.start + DAY_MS, end: month.start + 2 * DAY_MS });
  await begin();
  await click(link(title));
  const { added } = await one<{ added: number }>(
    "SELECT sum(adjustment_traces)::integer AS added FROM reporting_detail.fct_month_close_by_dimension WHERE group_by = 'workspace'",
    [],
  );
  expect(added).toBe(25);
  expect(await text()).toContain(`The workspaces have +${added} traces.`);

  // What grew most?
  await begin();
  await click(link("Usage and costs").last());
  await click(link("Change"));
  expect(clicks).toBe(2);
  const { name } = await one<{ name: string }>(
    `SELECT workspace_name AS name FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1::date - 60 AND usage_date < $1
     GROUP BY 1 ORDER BY sum(CASE WHEN usage_date >= $1::date - 30 THEN traces ELSE -traces END) DESC LIMIT 1`,
    [dayOf(today)],
  );
  expect(await page.locator("table.usage-ids tbody tr").first().textContent()).toContain(name);

  // Take it to Excel.
  await begin();
  await click(link("Usage and costs").last());
  const file = await page.request.get((await link("CSV of this table").getAttribute("href")) ?? "");
  clicks++;
  expect(clicks).toBe(2);
  const { traces } = await one<{ traces: number }>(
    "SELECT sum(traces)::integer AS traces FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1::date - 30 AND usage_date < $1",
    [dayOf(today)],
  );
  expect(await file.text()).toContain(String(traces));

  // Why is this day red, and what do I do?
  await begin();
  await click(link("Coverage"));
  await click(link("Why?"));
  expect(clicks).toBe(2);
  const { code } = await one<{ code: string }>("SELECT DISTINCT code FROM usage.failure", []);
  expect(await text()).toContain(code);
  expect(await text()).toContain("What failed or is missing");

  // Who comes near a limit?
  await begin();
  expect(await text()).toMatch(
    /Monthly limit of traces, whole organization: (at least )?[\d,]+ of 10 traces/,
  );

  // Load what is missing. The first click shows what is asked for, the second asks.
  await click(page.locator(".notice a"));
  await click(page.getByRole("button", { name: /^Start this backfill/ }));
  expect(clicks).toBe(2);
  const { backfills } = await one<{ backfills: number }>(
    "SELECT count(*)::integer AS backfills FROM usage.backfill",
    [],
  );
  expect(backfills).toBe(1);
});
