import { expect, test } from "vitest";
import { runInline } from "../../../../src/core/pipeline/extract/run-inline.ts";
import { planSource, routineDemand } from "../../../../src/core/pipeline/sync/plan.ts";
import { planSync } from "../../../../src/core/pipeline/sync/sync.ts";
import { storeNow } from "../../../../src/core/store/work/fetch-ledger.ts";
import { startProxy } from "../../../support/proxy.ts";
import { type Bench, setup } from "../../../support/source.ts";

async function missing({ sql }: Bench): Promise<number> {
  const [row] = await sql<{ days: number }>(
    "SELECT count(*)::integer AS days FROM reporting_detail.usage_coverage_daily WHERE status IN ('failed', 'missing')",
  );
  return row?.days ?? -1;
}

async function round(bench: Bench, baseUrl = bench.standin.url) {
  const source = await bench.open({ baseUrl });
  const { requestedAgain } = await planSync(source);
  await bench.sql("DELETE FROM usage.fetch_task");
  const wanted = routineDemand(source, await storeNow(source.store.db));
  const tasks = await planSource(source, { wanted, reprocess: "missing" });
  const run = await runInline(source, tasks).catch(() => undefined);
  return { requestedAgain, requests: tasks.length, failed: run?.failures.length };
}

test("failures of an outage are retried within two syncs; a task's own failure waits", async () => {
  const bench = await setup({ days: 6 });
  const usage = { path: "granular-usage" };
  const down = () =>
    bench.standin.faults.script({ fault: { kind: "status", status: 503 }, times: 100_000, match: usage });
  down();
  for (let n = 0; n < 40 && (await round(bench)).requests > 1; n++);
  expect(await round(bench)).toMatchObject({ requestedAgain: 1, requests: 1 });

  bench.standin.faults.clear();
  expect(await round(bench)).toMatchObject({ requestedAgain: 1, requests: 1, failed: 0 });
  expect((await round(bench)).requestedAgain).toBeGreaterThan(10);
  expect(await missing(bench)).toBe(0);
});

const HTML = "<!doctype html><title>Down for maintenance</title>";

test("a window whose answer is always an HTML page is retried three times, then after its time", async () => {
  const bench = await setup({ days: 6, workspaces: [0], hourlyForMs: 0 });
  let pages = 0;
  const proxy = await startProxy(bench.standin.url, ({ url }) => {
    const isIt = url.pathname.endsWith("/granular-usage") && url.searchParams.get("group_by") === "user";
    pages += Number(isIt);
    return isIt ? HTML : undefined;
  });
  for (let n = 0; n < 8; n++) await round(bench, proxy.url);
  const windows = new Set(
    proxy.seen.filter((url) => url.searchParams.get("group_by") === "user").map((url) => url.search),
  );
  expect(pages).toBe(4 * windows.size);
  expect(await missing(bench)).toBeGreaterThan(0);
});
