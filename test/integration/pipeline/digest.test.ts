import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Secret } from "../../../src/config/secret.ts";
import { monthAt, monthBefore } from "../../../src/domain/months/month.ts";
import { DAY_MS, HOUR_MS } from "../../../src/domain/time/stride.ts";
import { type Manner, openReceivers } from "../../../src/local/demo/receivers.ts";
import { digestOf, dueSince } from "../../../src/pipeline/alerts/digest.ts";
import { textOf } from "../../../src/pipeline/alerts/message.ts";
import { raiseAlerts } from "../../../src/pipeline/alerts/tell.ts";
import { storeNow } from "../../../src/store/load/fetch-ledger.ts";
import { alertSettings } from "../../support/alerts.ts";
import { setOwners } from "../../support/owners.ts";
import { type Bench, setup } from "../../support/source.ts";

/** Who asks for a digest gets each once, and its figures are those of the views. */

let bench: Bench;

beforeEach(async () => {
  bench = await setup({ days: 6, workspaces: [1], hourlyForMs: HOUR_MS });
  await bench.sync();
});

const apply = (content: string) => setOwners(bench.store, content);

test("a route gets the digest of a week once, from the next one on", async () => {
  const got: { subject?: string; text: string }[] = [];
  let manner: Manner = "well";
  const receivers = await openReceivers(({ body }) => {
    if (manner === "well") got.push(JSON.parse(body));
    return manner;
  });
  onTestFinished(receivers.close);
  await apply(
    "rules: [{ owner: all }]\nroutes:\n  - { name: a, type: webhook, secret: USAGE_ROUTE_A, kinds: [], digests: [weekly] }",
  );
  const secrets = new Map([["USAGE_ROUTE_A", new Secret(`${receivers.webUrl}/webhook`)]]);
  const settings = alertSettings(secrets);
  const raise = async (changed: Partial<typeof settings> = {}) =>
    raiseAlerts(await bench.open(), { ...settings, ...changed });
  expect(await raise()).toEqual({ told: 0, cleared: 0 });
  expect(await raise()).toEqual({ told: 0, cleared: 0 });
  // Nothing was sent yet, and nothing says so.
  const sent = () => bench.sql("SELECT FROM usage.alert WHERE told_at IS NOT NULL");
  const answered = () => bench.sql("SELECT FROM usage.route_state WHERE answered_at IS NOT NULL");
  expect([await sent(), await answered()]).toEqual([[], []]);
  const passWeek = () =>
    bench.sql("UPDATE usage.alert SET newest = newest - $1::bigint WHERE kind = 'weekly'", [7 * DAY_MS]);
  await passWeek();
  // It is of all sources, so one of them sends it.
  expect(await raise({ firstSource: "other" })).toEqual({ told: 0, cleared: 0 });
  manner = "refuses";
  await expect(raise()).rejects.toMatchObject({ code: "route_failed" });
  manner = "well";
  await bench.passTime();
  expect(await raise()).toEqual({ told: 1, cleared: 0 });
  expect(await raise()).toEqual({ told: 0, cleared: 0 });
  expect(got).toHaveLength(1);
  expect(got[0]?.text).toContain("default");
  expect(JSON.stringify(got)).not.toContain(bench.standin.apiKey);
});

test("its figures are those of the views, of all or of one owner", async () => {
  const [project] = await bench.sql<{ id: string }>(
    "SELECT project_id AS id FROM reporting.fct_usage_project_daily WHERE traces > 0 AND project_id <> '(none)' ORDER BY traces DESC LIMIT 1",
  );
  await apply(`rules: [{ project: ${project?.id}, owner: search }]
budgets: [{ owner: search, traces: 1000000000 }, { traces: 1000000000 }]`);
  const now = await storeNow(bench.store.db);
  for (const [period, month] of [
    ["weekly", monthAt(dueSince("weekly", now) - DAY_MS)],
    ["monthly", monthBefore(monthAt(dueSince("monthly", now)))],
  ] as const) {
    const read = (owners: string[] | null) =>
      digestOf(bench.store.db, {
        period,
        owners,
        now,
        staleAfterMs: HOUR_MS,
        firstSource: "default",
        webUrl: "https://usage.example.com",
      });
    const to = new Date(Math.min(dueSince(period, now), Date.parse(month.end))).toISOString().slice(0, 10);
    const [whole] = await bench.sql<{ traces: number | null }>(
      `SELECT sum(traces)::float8 AS traces FROM reporting.fct_usage_workspace_daily
       WHERE usage_date >= $1 AND usage_date < $2`,
      [month.start, to],
    );
    const [own] = await bench.sql<{ traces: number | null }>(
      `SELECT sum(traces)::float8 AS traces FROM reporting.fct_usage_owner_daily
       WHERE owner = 'search' AND usage_date >= $1 AND usage_date < $2`,
      [month.start, to],
    );
    const all = textOf(await read(null));
    const one = textOf(await read(["search"]));
    expect(all).toMatch(/^default: (no day is final yet|final until .*), (no day is )?proved /m);
    expect(all).toContain("Budget of everything: ");
    expect(one).toContain("Budget of owner search: ");
    expect(one).not.toMatch(/everything|unallocated/);
    // The month that the bench has begun in may have no day before it.
    if (whole?.traces == null) continue;
    expect(all).toContain(`: ${whole.traces.toLocaleString("en-US")} traces`);
    expect(all).toContain(`https://usage.example.com/owners?source=default&month=${month.name}`);
    if (own?.traces == null) continue;
    for (const text of [all, one])
      expect(text).toContain(`- search: ${own.traces.toLocaleString("en-US")} traces`);
  }
});
