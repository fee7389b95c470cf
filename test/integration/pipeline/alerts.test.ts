import { beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { type AlertSettings, sendAlerts } from "../../../src/features/alerts/send-alerts.ts";
import { alertSettings, startWebhook } from "../../support/alerts.ts";
import { setOwners } from "../../support/owners.ts";
import { type Bench, senderOn, setReadable, setup } from "../../support/source.ts";

let bench: Bench;
let heard: Awaited<ReturnType<typeof startWebhook>>["heard"];
let settings: AlertSettings;

beforeEach(async () => {
  bench = await setup({ days: 6, workspaces: [1], hourlyForMs: HOUR_MS });
  const webhook = await startWebhook();
  heard = webhook.heard;
  settings = alertSettings(webhook.secrets);
  await bench.sync();
});

const send = async (changed: Partial<AlertSettings> = {}) =>
  sendAlerts(await bench.open(), { ...settings, ...changed });

const NOTHING = { notified: 0, ended: 0 };
const BEGUN = { notified: 1, ended: 0 };
const ENDED = { notified: 0, ended: 1 };

const loadedAgo = (interval: string) =>
  bench.sql("UPDATE usage.coverage SET fetched_at = now() - $1::interval", [interval]);

const tracesSince = async (from: string) => {
  const [used] = await bench.sql<{ traces: number }>(
    `SELECT coalesce(sum(traces), 0)::float8 AS traces FROM reporting.fct_usage_workspace_daily WHERE usage_date >= ${from}`,
  );
  return used?.traces ?? 0;
};

test("staleness sends one alert after an hour, and its end another", async () => {
  await loadedAgo("59 minutes");
  expect(await send()).toEqual(NOTHING);
  await loadedAgo("61 minutes");
  expect(await send({ secrets: new Map() })).toEqual(NOTHING);
  expect(await send()).toEqual(BEGUN);
  expect(await send()).toEqual(NOTHING);
  await loadedAgo("0 minutes");
  expect(await send()).toEqual(ENDED);
  expect(await send()).toEqual(NOTHING);
  expect(heard.map(({ text }) => text)).toEqual([
    "ALERT usage-etl default: Nothing was loaded for 1 h. See usage-etl status.",
    "OK usage-etl default: usage is loaded again.",
  ]);
  expect(heard[0]?.alerts).toMatchObject([{ source: "default", alert: "stale", state: "firing" }]);
  expect(JSON.stringify(heard)).not.toContain(bench.standin.apiKey);
});

test("each change of a final count sends an alert, and a day without one ends it", async () => {
  const day = bench.dataStart;
  const change = async (by: number) => {
    bench.standin.ledger.change(senderOn(bench.standin, 1, day), by);
    await bench.fetch({
      wanted: [{ stride: "day", range: { start: day, end: day + 24 * HOUR_MS } }],
      reprocess: "all",
    });
  };
  await change(3);
  expect(await send()).toEqual(BEGUN);
  expect(heard[0]?.alerts).toMatchObject([{ alert: "final_changed", count: 4 }]);
  expect(await send()).toEqual(NOTHING);
  await change(1);
  expect(await send()).toEqual(BEGUN);
  await bench.sql("UPDATE usage.restatement SET restated_at = restated_at - interval '25 hours'");
  expect(await send()).toEqual(ENDED);
});

test.each([
  ["stride_total", "control_total", /2 totals of the platform are not the sums/],
  ["provider_total", "provider_total", /2 monthly totals of the billing provider are not the stored sums/],
])(
  "differences of kind %s send an alert again when one is new, not when there are fewer",
  async (kind, alert, text) => {
    const differ = (state: string, ids: readonly string[]) =>
      bench.sql(
        `INSERT INTO usage.difference
         (scope_id, compared_with, kind, period_start, period_end, external_id, state, fetch_number, closed_at)
       SELECT min(scope_id), $3, $3, '2026-03-01Z', '2026-04-01Z', unnest($2::text[]), $1, 1, CASE $1 WHEN 'closed' THEN now() END
       FROM usage.trace_scope
       ON CONFLICT ON CONSTRAINT difference_pkey DO UPDATE SET state = excluded.state, closed_at = excluded.closed_at`,
        [state, ids, kind],
      );
    await differ("platform_disagrees", ["a", "b"]);
    expect(await send()).toEqual(BEGUN);
    expect(heard[0]?.alerts).toMatchObject([{ alert, state: "firing", count: 2 }]);
    expect(heard[0]?.text).toMatch(text);
    await differ("closed", ["a"]);
    expect(await send()).toEqual(NOTHING);
    // The count is that of the first message again, but one of the differences is new.
    await differ("platform_disagrees", ["c"]);
    expect(await send()).toEqual(BEGUN);
    await differ("closed", ["b", "c"]);
    expect(await send()).toEqual(ENDED);
  },
);

const setBudgets = async (...budgets: readonly string[]) => {
  await bench.sql(
    `INSERT INTO usage.billing_period (source_id, ends_at, read_at)
     SELECT source_id, date_trunc('day', now(), 'UTC') + interval '2 days', now() FROM usage.source ON CONFLICT DO NOTHING`,
  );
  await setOwners(
    bench.store,
    `rules: [{ owner: search }]
budgets: [${budgets.map((one) => `{ source: default, per: billing_period, ${one} }`).join(", ")}]
routes: [{ name: search, type: webhook, secret: USAGE_ROUTE_SEARCH, owners: [search] }]`,
  );
};

test("a budget sends an alert with each mark that it passes, and when it is changed", async () => {
  const traces = await tracesSince("'-infinity'");
  const set = async (amount: number) => {
    await setBudgets(`traces: ${amount}, warn_at: [40, 80]`);
    await bench.sql("DELETE FROM usage.route");
  };
  await set(10 ** 15);
  expect(await send()).toEqual(NOTHING);
  await set(traces * 2);
  expect(await send()).toEqual(BEGUN);
  expect(heard.at(-1)?.alerts).toMatchObject([{ alert: "budget", state: "firing", count: 2 }]);
  expect(heard.at(-1)?.text).toContain(
    `${traces.toLocaleString("en-US")} of ${(traces * 2).toLocaleString("en-US")} traces (50.0 %) this billing period.`,
  );
  expect(await send()).toEqual(NOTHING);
  await set(traces);
  expect(await send()).toEqual(BEGUN);
  expect(heard.at(-1)?.text).toContain("(100.0 %) this billing period. It was used up on ");
  await set(traces * 2);
  expect(await send()).toEqual(BEGUN);
  await set(traces * 2);
  expect(await send()).toEqual(NOTHING);
  // A warning that goes and comes back, as a forecast may, is sent once.
  for (const mark of [90, 40]) {
    await bench.sql(`UPDATE usage.budget SET warn_at = '{${mark}}'`);
    await bench.sql("UPDATE usage.coverage SET fetched_at = fetched_at - interval '1 second'");
    expect(await send()).toEqual(NOTHING);
  }
  await set(10 ** 15);
  expect(await send()).toEqual(ENDED);
});

test("usage without a price sends an alert with its days and traces once prices are stored", async () => {
  const [first] = await bench.sql<{ day: string; traces: number }>(
    `SELECT to_char(usage_date, 'YYYY-MM-DD') AS day, sum(traces)::integer AS traces
     FROM reporting.fct_usage_workspace_daily GROUP BY usage_date HAVING sum(traces) > 0 ORDER BY 1`,
  );
  expect(await send()).toEqual(NOTHING);
  await bench.sql("INSERT INTO usage.sku (name) VALUES ('traces')");
  await bench.sql(
    "INSERT INTO usage.price (sku_id, unit_price, currency, valid_from) SELECT sku_id, 1, 'USD', $1::date + 1 FROM usage.sku",
    [first?.day],
  );
  expect(await send()).toEqual(BEGUN);
  expect(await send()).toEqual(NOTHING);
  expect(heard[0]?.text).toBe(
    `ALERT usage-etl default: 1 day with ${first?.traces.toLocaleString("en-US")} traces (${first?.day}) has no price, so the estimated costs leave them out. See reporting_detail.usage_unpriced_daily.`,
  );
  await bench.sql("UPDATE usage.price SET valid_from = valid_from + 1");
  expect(await send()).toEqual(BEGUN);
  await bench.sql("UPDATE usage.price SET valid_from = '2020-01-01'");
  expect(await send()).toEqual(ENDED);
});

test("a lost workspace sends an alert with its withdrawn zeros, and its return ends it", async () => {
  const range = { start: bench.dataStart, end: bench.dataStart + 24 * HOUR_MS };
  await bench.sql("DELETE FROM usage.dated_record WHERE bucket_start = $1", [
    new Date(bench.dataStart).toISOString().slice(0, 10),
  ]);
  await bench.sql("DELETE FROM usage.coverage WHERE period_start = $1", [new Date(bench.dataStart)]);
  const again = { wanted: [{ stride: "day" as const, range }], reprocess: "missing" as const };
  await bench.fetch(again, { opened: () => setReadable(bench.standin, 1, false) });
  expect(await send()).toEqual(BEGUN);
  expect(await send()).toEqual(NOTHING);
  expect(heard[0]?.alerts).toMatchObject([{ alert: "access_lost", state: "firing", count: 1 }]);
  expect(heard[0]?.text).toContain(
    `lost access to workspace ${bench.workspaceIds[0]}. 4 zero values are no longer trusted`,
  );
  setReadable(bench.standin, 1, true);
  await bench.sync();
  // Its zeros were final, so the new figures are changes of final counts.
  expect(await send()).toEqual({ notified: 1, ended: 1 });
  expect(heard[1]?.alerts).toMatchObject([
    { alert: "final_changed", state: "firing" },
    { alert: "access_lost", state: "cleared" },
  ]);
});
