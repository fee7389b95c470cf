import { expect, test } from "vitest";
import { describeCosts } from "../../src/features/costs/price.ts";
import { notesOf } from "../../src/features/costs/prices.command.ts";
import { endingPrices, listPrices, unpricedUsage } from "../../src/features/costs/prices.store.ts";
import { CLOSE_MARCH, createMonths, createPrices } from "../support/charges.ts";
import { usageEtl } from "../support/cli.ts";
import { now } from "../support/clock.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";

const [WORKSPACE, OTHER] = WORKSPACES;

test("days with usage and without a price are listed, counted and named; zeros and days that are not loaded are not", async () => {
  const bench = await setupSource();
  await createMonths(
    bench,
    { [WORKSPACE]: { 0: 5, 1: 7, 40: 1 }, [OTHER]: { 0: 11, 50: 2 } },
    { [OTHER]: [3] },
  );
  const client = await connectPlain(bench.url, "usage_reader");
  const read = async () =>
    (
      await client.query<Record<string, string>>(
        "SELECT usage_date AS day, workspace_id AS w, traces, has_other_price AS other, unpriced_skus AS skus FROM reporting_detail.usage_unpriced_daily ORDER BY 1, 2",
      )
    ).rows.map((row) => `${row.day} ${row.w?.slice(-1)} ${row.traces} ${row.other} ${row.skus}`);
  const costs = () => unpricedUsage(bench.store.db, bench.sourceId);
  const notes = async () => notesOf(bench.store.db, await listPrices(bench.store.db));

  expect(await read()).toEqual([]);
  expect(describeCosts(await costs())).toBe("No prices are imported, so no costs are estimated.");
  expect(await notes()).toEqual([]);

  await createPrices(bench.store, [
    { unitPrice: "1", from: "2026-03-02", to: "2026-04-05", workspace: WORKSPACE },
    { unitPrice: "1", from: "2026-04-15", workspace: WORKSPACE },
    { unitPrice: "1", sku: "extra", from: "2026-04-01", workspace: WORKSPACE },
    { unitPrice: "1", to: "2026-04-01", workspace: OTHER },
  ]);
  expect(await read()).toEqual([
    "2026-03-01 1 5 f extra, traces",
    "2026-03-02 1 7 t extra",
    "2026-04-10 1 1 t traces",
    "2026-04-20 2 2 f traces",
  ]);
  expect(await costs()).toEqual({
    prices: 4,
    days: 2,
    traces: 7,
    firstDay: "2026-03-01",
    lastDay: "2026-04-20",
  });
  expect(await notes()).toEqual([
    `SKU traces of ${WORKSPACE} has no price from 2026-04-05 to 2026-04-15 (not included): one price ends and the next begins later.`,
    "Source default: 2 days with 7 traces (2026-03-01 to 2026-04-20) have no price, so the estimated costs leave them out. See reporting_detail.usage_unpriced_daily.",
    "The SKUs extra and traces are valid on the same days. Each is charged for everything that it counts on those days. If one should replace the other, import the whole file with --replace: it removes prices that the file does not hold.",
  ]);
  const status = await usageEtl(["status"], { DATABASE_URL: bench.url });
  const shown = status.stdout.replace(/\s+/g, " ");
  expect(shown).toContain("costs 2 days with 7 traces (2026-03-01 to 2026-04-20) have no price");
  expect(shown).toContain("See reporting_detail.usage_unpriced_daily.");

  await createPrices(bench.store, [{ unitPrice: "1", workspace: WORKSPACE }]);
  expect(await read()).toEqual(["2026-03-01 2 11 f null", "2026-04-20 2 2 f null"]);

  await createPrices(bench.store, [
    { unitPrice: "1" },
    { unitPrice: "2", from: "2026-03-02", to: "2026-04-05", workspace: WORKSPACE },
    { unitPrice: "2", from: "2026-04-15", workspace: WORKSPACE },
  ]);
  expect(await read()).toEqual([]);
  expect(describeCosts(await costs())).toBe("Every loaded day with traces has a price.");
  expect(await notes()).toEqual([]);
});

test("prices that end soon or ended are named by what they count; one that goes on, or that no invoice counts any more, is not", async () => {
  const bench = await setupSource();
  const day = (days: number) => new Date(now() + days * 86_400_000).toISOString().slice(0, 10);
  const ending = () => endingPrices(bench.store.db, { sourceId: bench.sourceId, withinDays: 31 });
  await createPrices(bench.store, [
    { unitPrice: "1", sku: "gone", measure: "longlived", to: "2026-04-01" },
    { unitPrice: "1", sku: "lcu", measure: "lcu", to: day(20) },
    { unitPrice: "1", sku: "lsu", measure: "lsu", to: day(40) },
    { unitPrice: "1", sku: "runs", measure: "agent_runs", to: "2026-10-01" },
    { unitPrice: "1", to: day(20) },
    { unitPrice: "2", from: day(20) },
    { unitPrice: "3", sku: "gone", measure: "longlived", from: "2026-04-01", workspace: WORKSPACE },
  ]);
  expect(await ending()).toEqual([
    { measure: "lcu", lastDay: day(19) },
    { measure: "longlived", lastDay: "2026-03-31" },
  ]);
});

test("in a month of closed costs, what was closed without a price stays without one, and what was closed with one is priced", async () => {
  const bench = await setupSource();
  await createMonths(bench, { [WORKSPACE]: { 0: 5, 9: 3, 40: 1 }, [OTHER]: { 1: 11, 41: 2 } });
  const client = await connectPlain(bench.url);
  const read = async () =>
    (
      await client.query<Record<string, string>>(
        "SELECT usage_date AS day, workspace_id AS w, traces, has_other_price AS other FROM reporting_detail.usage_unpriced_daily ORDER BY 1, 2",
      )
    ).rows.map((row) => `${row.day} ${row.w?.slice(-1)} ${row.traces} ${row.other}`);
  const leftOut = async () => (await unpricedUsage(bench.store.db, bench.sourceId)).traces;
  const priced = { unitPrice: "1", source: "default", workspace: WORKSPACE, from: "2026-03-05" };
  await createPrices(bench.store, [priced]);
  await client.query(`${CLOSE_MARCH};
    INSERT INTO usage.closed_total
    SELECT close_id, series_id, 5 FROM usage.close, usage.series JOIN usage.trace_scope USING (scope_id)`);
  expect(await read()).toEqual(["2026-03-01 1 5 f", "2026-03-02 2 11 f", "2026-04-11 2 2 f"]);
  await createPrices(bench.store, [{ unitPrice: "1" }]);
  expect(await read()).toEqual(["2026-03-02 2 11 f"]);
  await createPrices(bench.store, [{ unitPrice: "1", from: "2026-05-01" }]);
  const march = ["2026-03-01 1 5 f", "2026-03-02 2 11 f"];
  expect(await read()).toEqual([...march, "2026-04-10 1 1 f", "2026-04-11 2 2 f"]);
  // A closed month was closed so: only what prices can still help is warned of.
  expect(await leftOut()).toBe(3);
});
