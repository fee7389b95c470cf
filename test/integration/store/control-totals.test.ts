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

test("totals are compared with the days of their part by id, and parts that agree are kept as proved", async () => {
  const { store, scopes, load, matched } = await setupTotals();
  const [one, other] = await scopes("project");
  await load(
    ONE,
    [0, 7],
    [
      [0, "a", 1],
      [2, "a", 2],
      [2, "b", 4],
      [3, "a", 8],
      [5, "c", 16],
      [6, "a", 32],
    ],
  );
  await load(OTHER, [0, 6], [[0, "a", 5]]);
  const compare = async (totals: readonly ControlTotal[], fetchToken?: FetchToken) =>
    compareTotals(store, {
      scopeIds: [other, one],
      parts: PARTS,
      totals,
      fetchToken: fetchToken ?? (await drawFetchToken(store.db)),
    });
  const equal = [
    total(one, 0, "a", 3),
    total(one, 0, "b", 4),
    total(one, 1, "a", 8),
    total(one, 1, "c", 16),
    total(other, 0, "a", 2),
    total(other, 0, "a", 3),
    total(other, 1, "x", 0),
  ];
  const first = await drawFetchToken(store.db);
  expect(await compare(equal, first)).toEqual({ compared: [one, other], differences: [] });
  const n = first.fetchNumber;
  const all = [one, other].flatMap((id) => [`${id} 0-3 by ${n}`, `${id} 3-6 by ${n}`]);
  expect(await matched()).toEqual(all);

  const older = await drawFetchToken(store.db);
  const second = await drawFetchToken(store.db);
  const wrong = await compare(
    [total(one, 0, "a", 3), total(one, 0, "b", 4), total(one, 1, "a", 9), total(other, 0, "a", 5)],
    second,
  );
  const about = { ...PARTS[1], scopeId: one, measure: "traces" };
  expect(wrong).toEqual({
    compared: [one, other],
    differences: [
      { ...about, dimensionId: "a", storedTraces: 8, controlTraces: 9 },
      { ...about, dimensionId: "c", storedTraces: 16, controlTraces: null },
    ],
  });
  const m = second.fetchNumber;
  const newest = [`${one} 0-3 by ${m}`, `${other} 0-3 by ${m}`, `${other} 3-6 by ${m}`];
  expect(await matched()).toEqual(newest);
  await compare(equal, older);
  expect(await matched()).toEqual([
    `${one} 0-3 by ${m}`,
    `${one} 3-6 by ${older.fetchNumber}`,
    ...newest.slice(1),
  ]);
});

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
