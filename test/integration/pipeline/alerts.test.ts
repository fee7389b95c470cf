import { createServer } from "node:http";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Secret } from "../../../src/config/secret.ts";
import { HOUR_MS } from "../../../src/domain/time/stride.ts";
import { budgetCondition, openIncidents } from "../../../src/pipeline/alerts/conditions.ts";
import { type AlertSettings, sendAlerts } from "../../../src/pipeline/alerts/send-alerts.ts";
import { alertSettings, startWebhook, webhookAt } from "../../support/alerts.ts";
import { listenInTest } from "../../support/listen.ts";
import { setOwners } from "../../support/owners.ts";
import { openReceivers } from "../../support/receivers.ts";
import { type Bench, senderOn, setReadable, setup } from "../../support/source.ts";

/** The webhook hears of what begins, grows and ends, once each, and never of an address or a key. */

let bench: Bench;
let webhook: Awaited<ReturnType<typeof startWebhook>>;
let heard: (typeof webhook)["heard"];
let settings: AlertSettings;

beforeEach(async () => {
  bench = await setup({ days: 6, workspaces: [1], hourlyForMs: HOUR_MS });
  webhook = await startWebhook();
  heard = webhook.heard;
  settings = alertSettings(webhook.secrets);
  await bench.sync();
});

const raise = async (changed: Partial<AlertSettings> = {}) =>
  sendAlerts(await bench.open(), { ...settings, ...changed });

/** Traces of the month under way: at the midnight that begins it none is used yet. */
const usedThisMonth = async () => {
  const [used] = await bench.sql<{ traces: number }>(
    "SELECT coalesce(sum(traces), 0)::float8 AS traces FROM reporting.fct_usage_workspace_daily WHERE usage_date >= date_trunc('month', now() AT TIME ZONE 'UTC')",
  );
  return used?.traces ?? 0;
};

test("no alert is sent where nothing is wrong or no webhook is set", async () => {
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  await bench.sql("UPDATE usage.coverage SET fetched_at = now() - interval '2 hours'");
  expect(await raise({ secrets: new Map() })).toEqual({ notified: 0, ended: 0 });
  expect(heard).toEqual([]);
});

test("staleness sends one alert, and its end another", async () => {
  await bench.sql("UPDATE usage.coverage SET fetched_at = now() - interval '59 minutes'");
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  await bench.sql("UPDATE usage.coverage SET fetched_at = now() - interval '61 minutes'");
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  await bench.sql("UPDATE usage.coverage SET fetched_at = now()");
  expect(await raise()).toEqual({ notified: 0, ended: 1 });
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  expect(heard.map(({ text }) => text)).toEqual([
    "ALERT usage-etl default: Nothing was loaded for 1 h. See usage-etl status.",
    "OK usage-etl default: usage is loaded again.",
  ]);
  expect(heard[0]?.alerts).toMatchObject([{ source: "default", alert: "stale", state: "firing" }]);
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
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  expect(heard[0]?.alerts).toMatchObject([{ alert: "final_changed", count: 4 }]);
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  await change(1);
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  await bench.sql("UPDATE usage.restatement SET restated_at = restated_at - interval '25 hours'");
  expect(await raise()).toEqual({ notified: 0, ended: 1 });
});

test("differences send an alert again when one is new, not when there are fewer", async () => {
  const differ = (state: string, ids: readonly string[]) =>
    bench.sql(
      `INSERT INTO usage.control_difference
         (scope_id, kind, period_start, period_end, external_id, state, fetch_number, closed_at)
       SELECT min(scope_id), 'stride_total', '2026-03-01Z', '2026-03-02Z', unnest($2::text[]), $1, 1,
              CASE $1 WHEN 'closed' THEN now() END
       FROM usage.trace_scope
       ON CONFLICT ON CONSTRAINT control_difference_pkey DO UPDATE SET state = excluded.state, closed_at = excluded.closed_at`,
      [state, ids],
    );
  await differ("platform_disagrees", ["a", "b"]);
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  await differ("closed", ["a"]);
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  // As many as were told of, and one of them is another.
  await differ("platform_disagrees", ["c"]);
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  await differ("unattributed", ["b", "c"]);
  expect(await raise()).toEqual({ notified: 0, ended: 1 });
});

test("a limit that is used sends an alert with each mark, and another where the platform rejects traces", async () => {
  const [workspaceId = ""] = bench.workspaceIds;
  const limit = (value: number | null, isRejecting: boolean) =>
    bench.sql(
      `INSERT INTO usage.usage_limit (source_id, workspace, limit_type, limit_value, is_rejecting, read_at)
       SELECT source_id, $1, 'monthly_traces', $2, $3, now() FROM usage.source
       ON CONFLICT ON CONSTRAINT usage_limit_pkey DO UPDATE SET limit_value = excluded.limit_value, is_rejecting = excluded.is_rejecting`,
      [workspaceId, value, isRejecting],
    );
  await limit(null, false);
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  const [used] = await bench.sql<{ traces: number }>(
    "SELECT traces_loaded AS traces FROM reporting_detail.usage_limit",
  );
  const traces = Number(used?.traces);
  await limit(traces * 2 + 2, false);
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  // At midnight that begins a month nothing is used yet.
  if (traces > 0) {
    await limit(traces * 2, false);
    expect(await raise()).toEqual({ notified: 1, ended: 0 });
    expect(heard[0]?.alerts).toMatchObject([{ alert: "usage_limit", state: "firing", count: 1 }]);
    expect(heard[0]?.text).toContain(
      `${traces.toLocaleString("en-US")} of ${(traces * 2).toLocaleString("en-US")} traces (50 %)`,
    );
    expect(await raise()).toEqual({ notified: 0, ended: 0 });
    await limit(traces, false);
    expect(await raise()).toEqual({ notified: 1, ended: 0 });
    expect(heard[1]?.alerts).toMatchObject([{ alert: "usage_limit", count: 4 }]);
  }
  await limit(traces, true);
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  expect(heard.at(-1)?.text).toMatch(
    /The platform rejects its traces now\. See reporting_detail\.usage_limit\.$/,
  );
  await limit(null, false);
  expect(await raise()).toEqual({ notified: 0, ended: 1 });
  expect(heard.at(-1)?.text).toBe("OK usage-etl default: no usage limit is half used.");
});

test("a budget sends an alert with each mark that it passes, and when more of it is loaded", async () => {
  const traces = await usedThisMonth();
  const set = (amount: number) =>
    setOwners(bench.store, `rules: []\nbudgets:\n  - { traces: ${amount}, warn_at: [40, 80] }`);
  await set(10 ** 15);
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  // At midnight that begins a month nothing is used yet.
  if (traces > 0) {
    await set(traces * 2);
    expect(await raise()).toEqual({ notified: 1, ended: 0 });
    expect(heard.at(-1)?.alerts).toMatchObject([{ alert: "budget", state: "firing", count: 2 }]);
    expect(heard.at(-1)?.text).toContain(
      `Budget of everything: ${traces.toLocaleString("en-US")} of ${(traces * 2).toLocaleString("en-US")} traces (50 %) this month.`,
    );
    expect(await raise()).toEqual({ notified: 0, ended: 0 });
    await set(traces);
    expect(await raise()).toEqual({ notified: 1, ended: 0 });
    expect(heard.at(-1)?.text).toContain("(100 %) this month. It was used up on ");
    // A budget that is raised passes its marks anew. The same file applied again is no news.
    await set(traces * 2);
    expect(await raise()).toEqual({ notified: 1, ended: 0 });
    await set(traces * 2);
    expect(await raise()).toEqual({ notified: 0, ended: 0 });
    // A warning that goes and comes again, as a forecast does, is sent once.
    for (const mark of [90, 40]) {
      await bench.sql(`UPDATE usage.budget SET warn_at = '{${mark}}'`);
      await bench.sql("UPDATE usage.coverage SET fetched_at = fetched_at - interval '1 second'");
      expect(await raise()).toEqual({ notified: 0, ended: 0 });
    }
    await set(10 ** 15);
    expect(await raise()).toEqual({ notified: 0, ended: 1 });
    expect(heard.at(-1)?.text).toBe(
      "OK usage-etl default: no budget has passed a mark in its month or billing period.",
    );
  }
});

test("each route gets what is of its owner and severity, and the end of what it was told", async () => {
  const traces = await usedThisMonth();
  if (traces === 0) return;
  const got: [route: string, alerts: string][] = [];
  const receivers = await openReceivers(({ path, body }) => {
    const alerts: { owner: string | null; state: string }[] = JSON.parse(body).alerts;
    got.push([path.split("?")[1] ?? "", alerts.map(({ owner, state }) => `${owner} ${state}`).join(", ")]);
    return "well";
  });
  onTestFinished(receivers.close);
  const names = ["all", "search", "critical"];
  const secrets = new Map(
    names.map((name) => [
      `USAGE_ROUTE_${name.toUpperCase()}`,
      new Secret(`${receivers.webUrl}/webhook?${name}`),
    ]),
  );
  const apply = (budgets: string) =>
    setOwners(
      bench.store,
      `rules: [{ owner: search }]
budgets: [${budgets}]
routes:
  - { name: all, type: webhook, secret: USAGE_ROUTE_ALL }
  - { name: search, type: webhook, secret: USAGE_ROUTE_SEARCH, owners: [search] }
  - { name: critical, type: webhook, secret: USAGE_ROUTE_CRITICAL, severities: [critical] }`,
    );
  const told = async () => {
    got.length = 0;
    await raise({ secrets });
    return Object.fromEntries(got);
  };
  const half = traces * 2;
  await apply(`{ owner: search, traces: ${half}, warn_at: [40] }, { traces: ${half}, warn_at: [40] }`);
  expect(await told()).toEqual({ all: "null firing, search firing", search: "search firing" });
  expect(await told()).toEqual({});
  await apply(`{ owner: search, traces: ${traces}, warn_at: [40] }`);
  expect(await told()).toEqual({
    all: "null cleared, search firing",
    search: "search firing",
    critical: "search firing",
  });
  await apply("");
  expect(await told()).toEqual({
    all: "search cleared",
    search: "search cleared",
    critical: "search cleared",
  });
  expect(await told()).toEqual({});
});

test("a budget is not told of again because the period of somebody else's begins", async () => {
  const traces = await usedThisMonth();
  if (traces === 0) return;
  const content = `rules: [{ owner: search }]
budgets:
  - { owner: search, traces: ${traces * 2}, warn_at: [40] }
  - { source: default, traces: ${10 ** 15}, per: billing_period }`;
  await setOwners(bench.store, content);
  await bench.sql("UPDATE usage.owner_file SET budgets_changed_at = '2020-01-01Z'");
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  // It begins today.
  await bench.sql(
    `INSERT INTO usage.billing_period (source_id, ends_at, read_at)
     SELECT source_id, date_trunc('day', now(), 'UTC') + interval '1 month', now() FROM usage.source`,
  );
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
});

test("a budget of all sources is told by the first that is configured, not by one that is gone", async () => {
  await bench.sql(
    `INSERT INTO usage.source OVERRIDING SYSTEM VALUE
     SELECT (jsonb_populate_record(s, '{"source_id": 0, "slug": "gone"}')).* FROM usage.source s`,
  );
  const content = "rules: []\nbudgets:\n  - { traces: 0.0000000001 }";
  await setOwners(bench.store, content);
  const told = (await usedThisMonth()) === 0 ? 0 : 1;
  // The pages show what is told.
  const shown = async (firstSource: string) =>
    [...(await openIncidents(bench.store.db, { firstSource, staleAfterMs: HOUR_MS }))].flatMap(
      ([source, alerts]) => alerts.filter(({ kind }) => kind === "budget").map(() => source),
    );
  expect(await shown("gone")).toEqual(told === 0 ? [] : ["gone"]);
  expect(await raise({ firstSource: "gone" })).toEqual({ notified: 0, ended: 0 });
  expect(await shown("default")).toEqual(told === 0 ? [] : ["default"]);
  expect(await raise()).toEqual({ notified: told, ended: 0 });
});

test("a budget that will be used up is told of, whatever marks it has passed, and a mark whatever the forecast was", () => {
  const budget = {
    ...{ line: 1, source: null, of: null, currency: null, amount: "100", warnAt: [50, 80], name: null },
    ...{
      isPriced: true,
      mayBeLess: false,
      ...{ per: "month" as const, period: null, isOver: false, course: [], ahead: null },
      spent: 0n,
      final: 0n,
      daysMissing: 0,
      daysUnpriced: 0,
      missingIn: [],
    },
    ...{ countedFrom: "2026-11-01", percent: 0, percentOfTime: 0, forecast: null },
  };
  const countOf = (passed: number | null, isReached: boolean) => {
    const reached = isReached ? { day: "2026-11-28", isSure: false } : null;
    return budgetCondition({ budgets: [{ ...budget, passed, reached }], changedAt: 1 }).count;
  };
  expect(countOf(50, true)).toBeGreaterThan(countOf(50, false));
  expect(countOf(50, false)).toBeGreaterThan(countOf(null, true));
  expect(countOf(80, false)).toBeGreaterThan(countOf(50, true));
});

test.each([
  [
    "budget",
    "ALTER TABLE usage.budget RENAME TO budget_elsewhere",
    "ALTER TABLE usage.budget_elsewhere RENAME TO budget",
  ],
  [
    "fct_budget_daily",
    "ALTER VIEW reporting_detail.fct_budget_daily RENAME TO elsewhere",
    "ALTER VIEW reporting_detail.elsewhere RENAME TO fct_budget_daily",
  ],
])("what cannot be read (%s) holds up no other alert", async (what, away, back) => {
  await bench.sql("UPDATE usage.coverage SET fetched_at = fetched_at - interval '1 second'");
  await setOwners(bench.store, "rules: []\nbudgets:\n  - { traces: 1 }");
  await bench.sql(away);
  await bench.sql(
    "INSERT INTO usage.usage_limit SELECT source_id, '', 'monthly_traces', 1, true, now() FROM usage.source",
  );
  await expect(raise()).rejects.toThrow(what);
  expect(heard.at(-1)?.alerts).toMatchObject([{ alert: "usage_limit", state: "firing" }]);
  await bench.sql("DELETE FROM usage.usage_limit WHERE workspace = ''");
  await bench.sql(back);
  await setOwners(bench.store, "rules: []");
  expect(await raise()).toMatchObject({ ended: 1 });
});

test("a month that the billing provider counts differently sends an alert, of each retention tier", async () => {
  const differ = (tier: string, state: string) =>
    bench.sql(
      `WITH scope AS (
         INSERT INTO usage.scope (source_id, kind, trace_tier, group_by, workspace_id, stride)
         SELECT source_id, 'traces', $1, group_by, workspace_id, stride FROM usage.trace_scope WHERE group_by = 'workspace' AND stride = 'day'
         ON CONFLICT ON CONSTRAINT scope_identity DO UPDATE SET stride = excluded.stride RETURNING scope_id
       )
       INSERT INTO usage.control_difference
         (scope_id, kind, period_start, period_end, external_id, stored_traces, control_traces, state, fetch_number, closed_at)
       SELECT scope_id, 'provider_total', '2026-03-01Z', '2026-04-01Z', 'x', 4, 5, $2, 1, CASE $2 WHEN 'closed' THEN now() END
       FROM scope
       ON CONFLICT ON CONSTRAINT control_difference_pkey DO UPDATE SET state = excluded.state, closed_at = excluded.closed_at`,
      [tier, state],
    );
  await differ("all", "platform_disagrees");
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  expect(heard[0]?.alerts).toMatchObject([{ alert: "provider_total", state: "firing", count: 1 }]);
  expect(heard[0]?.text).toContain("1 monthly total of the billing provider is not the stored sum");
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  await differ("longlived", "platform_disagrees");
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  expect(heard[1]?.alerts).toMatchObject([{ alert: "provider_total", count: 2 }]);
  for (const tier of ["all", "longlived"]) await differ(tier, "closed");
  expect(await raise()).toEqual({ notified: 0, ended: 1 });
  expect(heard[2]?.alerts).toMatchObject([{ alert: "provider_total", state: "cleared" }]);
});

test("usage without a price sends an alert with its days and traces once prices are stored", async () => {
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  const usage = await bench.sql<{ day: string; traces: number }>(
    `SELECT to_char(usage_date, 'YYYY-MM-DD') AS day, sum(traces)::integer AS traces
     FROM reporting.fct_usage_workspace_daily GROUP BY usage_date HAVING sum(traces) > 0 ORDER BY 1`,
  );
  const [first, second] = usage;
  await bench.sql("INSERT INTO usage.sku (name) VALUES ('traces')");
  await bench.sql(
    "INSERT INTO usage.price (sku_id, unit_price, currency, valid_from) SELECT sku_id, 1, 'USD', $1::date + 1 FROM usage.sku",
    [first?.day],
  );
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  expect(heard[0]?.text).toBe(
    `ALERT usage-etl default: 1 day with ${first?.traces.toLocaleString("en-US")} traces (${first?.day}) has no price, so the estimated costs leave them out. See reporting_detail.usage_unpriced_daily.`,
  );
  await bench.sql("UPDATE usage.price SET valid_from = valid_from + 1");
  expect(second).toBeDefined();
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  await bench.sql("UPDATE usage.price SET valid_from = '2020-01-01'");
  expect(await raise()).toEqual({ notified: 0, ended: 1 });
  expect(heard[2]?.text).toContain("every loaded day with usage has a price");
});

test("a message that the webhook refuses is sent again, and its address stays secret", async () => {
  await bench.sql("UPDATE usage.coverage SET fetched_at = now() - interval '2 hours'");
  webhook.status = 500;
  const error = await raise().catch((thrown) => thrown);
  expect(error).toMatchObject({ code: "route_failed", retryable: true });
  await bench.passTime();
  const gone = await raise({ secrets: webhookAt("http://127.0.0.1:9/hooks/sesame") }).catch(
    (thrown) => thrown,
  );
  for (const one of [error, gone])
    expect(`${one.message} ${one.next} ${one.cause}`).not.toMatch(/sesame|127\.0/);
  webhook.status = 204;
  await bench.passTime();
  const ended = AbortSignal.abort(new Error("the process ends"));
  await expect(raise({ signal: ended })).rejects.toMatchObject({ code: "route_failed" });
  await bench.passTime();
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  expect(JSON.stringify(heard)).not.toContain(bench.standin.apiKey);
});

test("a lost workspace sends an alert with its withdrawn zeros, and its return ends it", async () => {
  const range = { start: bench.dataStart, end: bench.dataStart + 24 * HOUR_MS };
  await bench.sql("DELETE FROM usage.dated_record WHERE bucket_start = $1", [
    new Date(bench.dataStart).toISOString().slice(0, 10),
  ]);
  await bench.sql("DELETE FROM usage.coverage WHERE period_start = $1", [new Date(bench.dataStart)]);
  const again = { wanted: [{ stride: "day" as const, range }], reprocess: "missing" as const };
  await bench.fetch(again, { opened: () => setReadable(bench.standin, 1, false) });
  expect(await raise()).toEqual({ notified: 1, ended: 0 });
  expect(await raise()).toEqual({ notified: 0, ended: 0 });
  expect(heard[0]?.alerts).toMatchObject([{ alert: "access_lost", state: "firing", count: 1 }]);
  expect(heard[0]?.text).toContain(
    `lost access to workspace ${bench.workspaceIds[0]}. 4 zero values are no longer trusted`,
  );
  setReadable(bench.standin, 1, true);
  await bench.sync();
  // Its zeros were shown as final, so what they became is a change of final counts.
  expect(await raise()).toEqual({ notified: 1, ended: 1 });
  expect(heard[1]?.alerts).toMatchObject([
    { alert: "final_changed", state: "firing" },
    { alert: "access_lost", state: "cleared" },
  ]);
});

test.each(["a head without an end", "a byte from time to time"])(
  "a webhook that answers %s has the message, and does not hold the job",
  async (what) => {
    const drips: NodeJS.Timeout[] = [];
    let asked = 0;
    const server = createServer((_, response) => {
      asked++;
      response.writeHead(200, { "content-type": "text/plain" });
      response.flushHeaders();
      if (what === "a byte from time to time") drips.push(setInterval(() => response.write("."), 20));
    });
    onTestFinished(() => drips.forEach(clearInterval));
    const secrets = webhookAt(`http://127.0.0.1:${await listenInTest(server)}/hooks/sesame`);
    await bench.sql("UPDATE usage.coverage SET fetched_at = now() - interval '2 hours'");
    const slow = { secrets, withinMs: 300 };
    expect(await raise(slow)).toEqual({ notified: 1, ended: 0 });
    expect(await raise(slow)).toEqual({ notified: 0, ended: 0 });
    expect(asked).toBe(1);
  },
);
