import { expect, test } from "vitest";
import type { FetchToken } from "../../../src/core/domain/coverage/finality.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import type { GroupBy } from "../../../src/core/domain/usage/record.ts";
import { scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import {
  type ControlTotal,
  compareGroupings,
  compareTotals,
} from "../../../src/core/store/proof/control-totals.ts";
import { drawFetchToken } from "../../../src/core/store/work/fetch-ledger.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import { setupSource } from "./setup.ts";

const ONE = "0b7c7f3e-0000-4000-8000-000000000001";
const OTHER = "0b7c7f3e-0000-4000-8000-000000000002";
const window = windowOf("day", "2026-02-01T00:00:00Z", "2026-02-11T00:00:00Z");
const day = (nth: number) => window.start + nth * DAY_MS;
const iso = (nth: number) => new Date(day(nth)).toISOString();
const NEVER_FINAL = 10_000 * DAY_MS;

async function setupTotals() {
  const dataStart = Date.parse("2026-01-05T00:00:00Z");
  const { store, sourceId, reader } = await setupSource({ workspaceIds: [ONE, OTHER], dataStart });
  const scopes = (groupBy: GroupBy) =>
    scopesOf(store.db, { sourceId, groupBy, stride: "day", workspaceIds: [ONE, OTHER] }) as Promise<
      [number, number]
    >;
  const load = (
    workspaceId: string,
    [from, to]: readonly [number, number],
    rows: readonly (readonly [nth: number, id: string, traces: number])[],
    { groupBy = "project", settleAfterMs = 0 }: { groupBy?: GroupBy; settleAfterMs?: number } = {},
  ) =>
    loadRows(store, {
      sourceId,
      groupBy,
      workspaceId,
      settleAfterMs,
      window: { ...window, start: day(from), end: day(to) },
      rows: rows.map(([nth, id, traces]) => [iso(nth), id, traces]),
    });
  const matched = async () => {
    const { rows } = await reader.query<{ scope_id: number; start: Date; end: Date; number: number }>(
      `SELECT scope_id, period_start AS start, period_end AS end, fetch_number AS number FROM usage.matched_total ORDER BY 1, 2`,
    );
    return rows.map(
      ({ scope_id, start, end, number }) => `${scope_id} ${daysFrom(start)}-${daysFrom(end)} by ${number}`,
    );
  };
  return { store, scopes, load, matched };
}

const daysFrom = (at: Date) => (at.getTime() - window.start) / DAY_MS;

const PARTS = [
  { start: day(0), end: day(3) },
  { start: day(3), end: day(6) },
];

const total = (scopeId: number, part: number, dimensionId: string, traces: number): ControlTotal => {
  return { scopeId, part, dimensionId, measure: "traces", traces };
};

test("a scope is compared only if it is final over all parts, and not loaded since", async () => {
  const { store, scopes, load, matched } = await setupTotals();
  const [one, other] = await scopes("project");
  const compare = async (fetchToken?: FetchToken) =>
    compareTotals(store, {
      scopeIds: [one, other],
      parts: PARTS,
      totals: [total(one, 0, "a", 7)],
      fetchToken: fetchToken ?? (await drawFetchToken(store.db)),
    });
  const differs = { compared: [one], differences: [{ ...PARTS[0], storedTraces: null, controlTraces: 7 }] };
  await load(ONE, [1, 6], []);
  await load(OTHER, [0, 5], []);
  expect(await compare()).toEqual({ compared: [], differences: [] });
  await load(ONE, [0, 2], [], { settleAfterMs: NEVER_FINAL });
  expect(await compare()).toMatchObject({ compared: [] });
  await load(ONE, [0, 2], []);
  expect(await compare()).toMatchObject(differs);
  const before = await drawFetchToken(store.db);
  await load(ONE, [3, 4], []);
  expect(await compare(before)).toEqual({ compared: [], differences: [] });
  expect(await compare()).toMatchObject(differs);
  expect((await matched()).map((line) => line.split(" by ")[0])).toEqual([`${one} 3-6`]);
});

test("the sum by a dimension is compared with the sum by workspace, on each day that is final on both sides", async () => {
  const { store, scopes, load } = await setupTotals();
  const [[project], [user], [workspace]] = [
    await scopes("project"),
    await scopes("user"),
    await scopes("workspace"),
  ];
  await load(
    ONE,
    [0, 6],
    [
      [0, "a", 1],
      [0, "b", 2],
      [1, "a", 4],
      [2, "a", 5],
      [5, "a", 1],
    ],
  );
  await load(ONE, [0, 2], [[0, "u", 3]], { groupBy: "user" });
  await load(
    ONE,
    [0, 4],
    [
      [0, ONE, 3],
      [1, ONE, 6],
    ],
    { groupBy: "workspace" },
  );
  await load(ONE, [5, 6], [[5, ONE, 2]], { groupBy: "workspace", settleAfterMs: NEVER_FINAL });
  const compare = (from: number, to: number) =>
    compareGroupings(store, {
      scopeIds: [project, user, workspace],
      measures: ["traces"],
      range: { start: day(from), end: day(to) },
    });
  const found = (scopeId: number, nth: number, storedTraces: number, controlTraces: number) => {
    const about = { scopeId, totalScopeId: workspace, dimensionId: "", measure: "traces" };
    return { ...about, start: day(nth), end: day(nth + 1), storedTraces, controlTraces };
  };
  const all = [found(project, 1, 4, 6), found(project, 2, 5, 0), found(user, 1, 0, 6)];
  const inOrder = all.sort((a, b) => a.scopeId - b.scopeId || a.start - b.start);
  expect(await compare(0, 7)).toEqual(inOrder);
  expect(await compare(1, 2)).toEqual(inOrder.filter(({ start }) => start === day(1)));
  expect(await compare(3, 7)).toEqual([]);
});
