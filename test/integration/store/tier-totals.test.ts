import { expect, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import type { Meter } from "../../../src/core/domain/usage/meter.ts";
import { scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import { compareTiers, exceedingTiers, type TierPair } from "../../../src/core/store/proof/tier-totals.ts";
import { drawFetchToken } from "../../../src/core/store/work/fetch-ledger.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import { setupSource } from "./setup.ts";

const WORKSPACES = ["0b7c7f3e-0000-4000-8000-000000000001", "0b7c7f3e-0000-4000-8000-000000000002"] as const;
const [ONE, OTHER] = WORKSPACES;
const window = windowOf("day", "2026-02-01T00:00:00Z", "2026-02-11T00:00:00Z");
const day = (nth: number) => window.start + nth * DAY_MS;

async function setupTiers() {
  const dataStart = Date.parse("2026-01-05T00:00:00Z");
  const { store, sourceId } = await setupSource({ workspaceIds: WORKSPACES, dataStart });
  const scopes = (meter: Meter) =>
    scopesOf(store.db, { sourceId, meter, groupBy: "workspace", stride: "day", workspaceIds: WORKSPACES });
  const [longlived, traces] = [await scopes("longlived"), await scopes("traces")];
  const pairs = WORKSPACES.map((workspaceId, i): TierPair => {
    return { workspaceId, scopeId: longlived[i] as number, allScopeId: traces[i] as number };
  });
  const load = async (workspaceId: string, meter: Meter, traces: readonly number[], settleAfterMs = 0) => {
    const rows = traces.map((n, nth) => [new Date(day(nth)).toISOString(), workspaceId, n] as const);
    const whole = { ...window, end: day(traces.length) };
    const about = { sourceId, meter, groupBy: "workspace", workspaceId, settleAfterMs } as const;
    await loadRows(store, { ...about, window: whole, rows });
  };
  const [first, second] = pairs as [TierPair, TierPair];
  return { store, pairs, first, second, load };
}

const NEVER_FINAL = 10_000 * DAY_MS;

test("a pair is compared only while both sides are final and no newer than the total", async () => {
  const { store, pairs, first, load } = await setupTiers();
  const parts = [{ start: day(0), end: day(2) }];
  const compared = async (fetchToken = drawFetchToken(store.db)) =>
    (await compareTiers(store, { pairs, parts, totals: [], fetchToken: await fetchToken })).compared;
  const both = [{ scopeId: first.scopeId, period: parts[0] }];
  await load(ONE, "traces", [5, 5]);
  expect(await compared()).toEqual([]);
  await load(ONE, "longlived", [5, 5], NEVER_FINAL);
  expect(await compared()).toEqual([]);
  await load(ONE, "longlived", [5, 5]);
  expect(await compared()).toEqual(both);
  for (const meter of ["traces", "longlived"] as const) {
    const before = drawFetchToken(store.db);
    await before;
    await load(ONE, meter, [5, 6]);
    expect(await compared(before), meter).toEqual([]);
    expect(await compared(), meter).toEqual(both);
  }
});

test("days on which a tier exceeds all are found in runs, each with both sums", async () => {
  const { store, pairs, first, second, load } = await setupTiers();
  const range = { start: day(0), end: day(6) };
  expect(await exceedingTiers(store, { pairs, range })).toEqual([]);
  await load(ONE, "traces", [1, 2, 3, 4, 5, 6]);
  await load(ONE, "longlived", [2, 4, 3, 5, 4, 7]);
  await load(OTHER, "traces", [1, 1, 1, 1, 1, 1]);
  await load(OTHER, "longlived", [3, 0, 9, 1, 1, 0]);
  const found = (pair: TierPair, from: number, to: number, storedTraces: number, controlTraces: number) => {
    const about = { scopeId: pair.scopeId, dimensionId: pair.workspaceId, measure: "traces" };
    return { ...about, start: day(from), end: day(to), storedTraces, controlTraces };
  };
  const all = [
    found(first, 0, 2, 6, 3),
    found(first, 3, 4, 5, 4),
    found(first, 5, 6, 7, 6),
    found(second, 0, 1, 3, 1),
    found(second, 2, 3, 9, 1),
  ];
  expect(await exceedingTiers(store, { pairs, range })).toEqual(all);
  const middle = { start: day(1), end: day(4) };
  expect(await exceedingTiers(store, { pairs: [first], range: middle })).toEqual([
    found(first, 1, 2, 4, 2),
    found(first, 3, 4, 5, 4),
  ]);
  expect(await exceedingTiers(store, { pairs: [], range })).toEqual([]);
  expect(await exceedingTiers(store, { pairs, range: { start: day(1), end: day(1) } })).toEqual([]);
});
