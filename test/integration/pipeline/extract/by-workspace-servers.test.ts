import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { checkTotals } from "../../../../src/core/pipeline/proof/check-totals.ts";
import { usageEtl } from "../../../support/cli.ts";
import { startProxy } from "../../../support/proxy.ts";
import { type Bench, senderOn, setup } from "../../../support/source.ts";
import { differences, inLedger, inStore } from "../../../support/tables.ts";

const BUSY = 0;
const MINUTE_MS = 60_000;
const SETTINGS = { syncEveryMs: 15 * MINUTE_MS, refreshAfterMs: 60 * MINUTE_MS };
const KEPT_MINUTES = 45;

async function pass({ sql }: Bench, minutes: number): Promise<void> {
  await sql("UPDATE usage.coverage SET fetched_at = fetched_at - make_interval(mins => $1)", [minutes]);
}

async function wrong(bench: Bench, isMeant = (key: string) => !key.startsWith("workspace")) {
  const { standin, dataStart: start, today: end, workspaceIds } = bench;
  const expected = inLedger(standin, { stride: "day", range: { start, end }, workspaceIds });
  const stored = await inStore(bench, ["day"]);
  const today = new Date(end).toISOString().slice(0, 10);
  const meant = (figures: typeof stored) =>
    new Map([...figures].filter(([key]) => isMeant(key) && !key.includes(today)));
  return differences(meant(stored), meant(expected));
}

test("a server that counts fewer by workspace than by project is told, and asked for each dimension in every sync", async () => {
  const bench = await setup({ workspaces: [BUSY], days: 40 });
  const cell = senderOn(bench.standin, BUSY, bench.today - 20 * DAY_MS);
  bench.standin.discrepancies.push({ stride: "day", groupBy: "workspace", cell, delta: -3 });
  const first = await bench.sync({ settings: SETTINGS });
  const before = await bench.sync({ settings: SETTINGS });
  expect(before.requests).toBeLessThan(first.requests / 2);
  const doctor = async () => {
    const { stdout } = await usageEtl(["doctor"], {
      DATABASE_URL: bench.databaseUrl,
      USAGE_BASE_URL: bench.standin.url,
      USAGE_API_KEY: bench.standin.apiKey,
      USAGE_WORKSPACE_IDS: bench.workspaceIds.join(),
      USAGE_DATA_START: new Date(bench.dataStart).toISOString().slice(0, 10),
    });
    return stdout.replaceAll(/\s+/g, " ");
  };
  const LINE = "a dimension has more traces than its workspace, so every sync requests all of them";
  expect(await doctor()).not.toContain(LINE);

  const { findings } = await checkTotals(await bench.open(), "all");
  const told = findings.filter(({ kind }) => kind === "grouping_total");
  expect(told.map(({ groupBy, state }) => `${groupBy} ${state}`).sort()).toEqual([
    "api_key platform_disagrees",
    "project platform_disagrees",
    "user platform_disagrees",
  ]);
  expect(await doctor()).toContain(LINE);
  const after = await bench.sync({ settings: SETTINGS });
  expect(after.run.counts.reduce((sum, { unasked }) => sum + unasked, 0)).toBe(0);
  expect(after.requests).toBeGreaterThan(before.requests * 2);
  expect(await wrong(bench)).toEqual([]);
}, 60_000);

test("a server that keeps its counts by workspace for an hour shows other dimensions within their time", async () => {
  const bench = await setup({ workspaces: [BUSY], days: 6, settleAfterMs: 30 * DAY_MS });
  const kept = new Map<string, string>();
  const proxy = await startProxy(bench.standin.url, ({ url, text }) => {
    const isByWorkspace =
      url.pathname.endsWith("/granular-usage") && url.searchParams.get("group_by") === "workspace";
    if (!isByWorkspace) return undefined;
    const before = kept.get(url.search) ?? text;
    kept.set(url.search, before);
    return before;
  });
  const sync = () => bench.sync({ baseUrl: proxy.url, settings: SETTINGS });
  await sync();
  const sender = senderOn(bench.standin, BUSY, bench.today - DAY_MS);
  bench.standin.ledger.change(sender, 5);
  // Its sums say that nothing changed, so nothing is requested before the time is over.
  await sync();
  expect(await wrong(bench)).not.toEqual([]);
  await pass(bench, KEPT_MINUTES + 1);
  await sync();
  expect(await wrong(bench)).toEqual([]);
  bench.standin.ledger.change(sender, 2);
  await sync();
  expect(await wrong(bench)).toEqual([]);
  kept.clear();
  await sync();
  expect(await wrong(bench, () => true)).toEqual([]);
});

test("a server that responds by workspace only by day says no hour of any dimension, and each day", async () => {
  const bench = await setup({ workspaces: [BUSY, 4], days: 6 });
  const proxy = await startProxy(bench.standin.url, async ({ url, text }) => {
    const { searchParams, pathname } = url;
    if (!pathname.endsWith("/granular-usage") || searchParams.get("group_by") !== "workspace")
      return undefined;
    if ((JSON.parse(text) as { stride: { hours: number } }).stride.hours === 0) return undefined;
    const days = new URL(url);
    const midnight = Math.floor(Date.parse(searchParams.get("start_time") ?? "") / DAY_MS) * DAY_MS;
    days.searchParams.set("start_time", new Date(midnight).toISOString());
    days.searchParams.set("end_time", new Date(midnight + DAY_MS).toISOString());
    return (await fetch(days, { headers: { "x-api-key": bench.standin.apiKey } })).text();
  });
  const sync = () => bench.sync({ baseUrl: proxy.url, settings: SETTINGS });
  await sync();
  await sync();
  const facts = await bench.sql<{ fact: string }>("SELECT fact FROM usage.source_fact ORDER BY 1");
  expect(facts.map(({ fact }) => fact)).toContain("no_hour");
  expect(await wrong(bench, () => true)).toEqual([]);
  // No hour is zero because of a response that was none.
  const zeros = await bench.sql(
    `SELECT FROM usage.coverage v JOIN usage.trace_scope c USING (scope_id)
     WHERE c.stride = 'hour' AND NOT EXISTS (SELECT FROM usage.fetch f WHERE f.fetch_number = v.fetch_number AND f.group_by = c.group_by)`,
  );
  expect(zeros).toEqual([]);
});
