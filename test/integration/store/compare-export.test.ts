import { describe, expect, test } from "vitest";
import type { FetchToken } from "../../../src/core/domain/coverage/finality.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import type { Window } from "../../../src/core/domain/time/window.ts";
import type { ExportRow } from "../../../src/core/domain/usage/export.ts";
import type { GroupBy } from "../../../src/core/domain/usage/record.ts";
import { scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import { compareExport } from "../../../src/core/store/proof/compare-export.ts";
import { drawFetchToken } from "../../../src/core/store/work/fetch-ledger.ts";
import { loadRows, type ResponseRow, windowOf } from "../../support/store.ts";
import { type StoreBundle, setupSource } from "./setup.ts";

const WORKSPACE = "0b7c7f3e-0000-4000-8000-000000000001";
const OTHER = "0b7c7f3e-0000-4000-8000-000000000002";
const window = windowOf("day", "2026-02-01T00:00:00Z", "2026-02-11T00:00:00Z");
const bucket = (day: number) => new Date(window.start + day * DAY_MS).toISOString();

async function loaded(rows: readonly ResponseRow[]) {
  const dataStart = Date.parse("2026-01-05T00:00:00Z");
  const { sourceId, ...bundle } = await setupSource(
    { workspaceIds: [WORKSPACE, OTHER], dataStart },
    { isStateTrue: false },
  );
  await loadRows(bundle.store, { sourceId, groupBy: "project", workspaceId: WORKSPACE, window, rows });
  return { bundle, sourceId };
}

type Given = readonly [day: number, id: string, traces: number, name?: string];

async function compare(
  bundle: StoreBundle,
  sourceId: number,
  batches: () => Iterable<readonly Given[]>,
  given: {
    fetchToken?: FetchToken;
    groupBy?: GroupBy;
    mostKeys?: number;
    bucketMs?: number;
    window?: Window;
  } = {},
) {
  const { fetchToken, groupBy = "project", bucketMs = DAY_MS, window: within = window, ...most } = given;
  const workspaceIds = groupBy === "workspace" ? [WORKSPACE, OTHER] : [WORKSPACE];
  const { store } = bundle;
  const comparison = await compareExport(store, {
    sourceId,
    ...most,
    groupBy,
    window: within,
    workspaceIds,
    scopeIds: await scopesOf(store.db, { sourceId, groupBy, stride: within.stride, workspaceIds }),
    fetchToken: fetchToken ?? (await drawFetchToken(store.db)),
    whole: true,
    withNames: true,
    rows: async function* () {
      let line = 1;
      for (const batch of batches()) {
        yield batch.map(
          ([day, dimensionId, traces, name]): ExportRow => ({
            bucketStart: within.start + day * DAY_MS,
            bucketEnd: within.start + day * DAY_MS + bucketMs,
            workspaceId: groupBy === "workspace" ? dimensionId : null,
            dimensionId,
            dimensionName: name ?? null,
            traces,
            line: ++line,
          }),
        );
      }
    },
  });
  const open = (await kept(bundle)).reduce((sum, { n }) => sum + n, 0);
  return { ...comparison, open };
}

const kept = ({ reader }: StoreBundle) =>
  reader
    .query<{ kind: string; n: number; stored: number | null; exported: number | null; says: string | null }>(
      `SELECT kind, count(*)::integer AS n, sum(stored_traces)::integer AS stored, sum(other_traces)::integer AS exported,
              max(export_says) AS says
       FROM usage.difference WHERE state = 'open' GROUP BY kind ORDER BY kind`,
    )
    .then(({ rows }) => rows);

const IDS = Array.from({ length: 2_500 }, (_, i) => `project ${i}, "with" \\a\ttab`);

describe("an export of thousands of keys", () => {
  const stored = IDS.flatMap((id, i): ResponseRow[] =>
    [0, 1].map((day) => [bucket(day), id, i + day + 1, `Name ${i}`]),
  );
  const same = () => [0, 1].map((day) => IDS.map((id, i): Given => [day, id, i + day + 1, `Name ${i}`]));

  test("shows every kind of difference, each counted once", async () => {
    const { bundle, sourceId } = await loaded(stored);
    const result = await compare(bundle, sourceId, () => [
      ...same().map((rows) => rows.slice(4)),
      [
        [1, IDS[1] as string, 3, "Name 1"],
        [0, IDS[1] as string, 1, "Name 1"],
        [0, IDS[1] as string, 5, "Name 1"],
        [1, IDS[2] as string, 4, "Later"],
        [0, IDS[2] as string, 3, "Sooner"],
        [0, IDS[3] as string, 4, "Name 3"],
        [1, IDS[3] as string, 5, "Another"],
        [4, "nobody's", 7, "Nobody"],
      ],
    ]);
    expect(result).toMatchObject({ compared: 5_001, open: 6 });
    expect(await kept(bundle)).toEqual([
      { kind: "missing_in_export", n: 2, stored: 3, exported: null, says: null },
      { kind: "missing_in_store", n: 1, stored: null, exported: 7, says: null },
      { kind: "name_differs", n: 2, stored: 9, exported: 9, says: "Later" },
      { kind: "traces_differ", n: 1, stored: 2, exported: 6, says: null },
    ]);
    const { rows } = await bundle.reader.query<{ from: Date }>(
      "SELECT period_start AS from FROM usage.reconciled ORDER BY 1",
    );
    expect(rows.map(({ from }) => (from.getTime() - window.start) / DAY_MS)).toEqual([2, 5]);
  });
});

test("a scope that is not final all over the window is not compared, and is said", async () => {
  const { bundle, sourceId } = await loaded([]);
  const { store, reader } = bundle;
  const groupBy = "workspace";
  const scopes = { sourceId, groupBy, stride: "day", workspaceIds: [WORKSPACE, OTHER] } as const;
  const [final = 0, provisional = 0] = await scopesOf(store.db, scopes);
  const load = (workspaceId: string, within = window, settleAfterMs = 0) =>
    loadRows(store, {
      sourceId,
      groupBy,
      workspaceId,
      window: within,
      settleAfterMs,
      rows: [[new Date(within.start).toISOString(), workspaceId, 5]],
    });
  await load(WORKSPACE);
  const last = { ...window, start: window.end - DAY_MS };
  await load(OTHER, { ...window, end: last.start });
  await load(OTHER, last, 10_000 * DAY_MS);
  const rows: Given[] = [
    [0, WORKSPACE, 6],
    [0, OTHER, 6],
  ];
  const look = () => compare(bundle, sourceId, () => [rows], { groupBy });
  expect(await look()).toMatchObject({ outcome: "compared", notFinal: [provisional], open: 1 });
  const reconciled = async () => {
    const found = await reader.query<{ id: number }>("SELECT DISTINCT scope_id AS id FROM usage.reconciled");
    return found.rows.map(({ id }) => id);
  };
  expect(await reconciled()).toEqual([final]);
  await load(OTHER, last);
  expect(await look()).toMatchObject({ notFinal: [], open: 3 });
  expect((await reconciled()).sort()).toEqual([final, provisional].sort());
});

test.each([1, 5_000])(
  "a record that is stored off the grid of its stride is a difference, beside %d rows",
  async (many) => {
    const { bundle, sourceId } = await loaded([]);
    const week = windowOf("week", "2026-02-05T00:00:00Z", "2026-02-19T00:00:00Z");
    const ids = Array.from({ length: many }, (_, i) => `id ${i}`);
    await loadRows(bundle.store, {
      sourceId,
      groupBy: "project",
      workspaceId: WORKSPACE,
      window: week,
      rows: ids.map((id): ResponseRow => ["2026-02-05T00:00:00Z", id, 2]),
    });
    const batches = function* () {
      for (let from = 0; from < many; from += 500)
        yield ids.slice(from, from + 500).map((id): Given => [0, id, 2]);
    };
    const look = () => compare(bundle, sourceId, batches, { window: week, bucketMs: 7 * DAY_MS });
    expect(await look()).toMatchObject({ compared: many, open: 0 });
    await bundle.reader.query(
      `INSERT INTO usage.dated_record (series_id, bucket_start, traces)
     SELECT series_id, '2026-02-07', 3 FROM usage.dated_record ORDER BY 1 LIMIT 1`,
    );
    expect(await look()).toMatchObject({ compared: many + 1, open: 1 });
    expect(await kept(bundle)).toEqual([
      { kind: "missing_in_export", n: 1, stored: 3, exported: null, says: null },
    ]);
  },
);

test("an export with more keys than memory holds is summed up correctly", async () => {
  const { bundle, sourceId } = await loaded([[bucket(0), "id 0", 2]]);
  const many = 5_000;
  const batches = function* () {
    for (let from = 0; from < many; from += 1_000)
      yield Array.from({ length: 1_000 }, (_, i): Given => [0, `id ${from + i}`, 1]);
    // After so many others, the first ones come again.
    yield [0, 1, 2].map((i): Given => [0, `id ${i}`, 1]);
  };
  const result = await compare(bundle, sourceId, batches, { mostKeys: 4_000 });
  expect(result).toMatchObject({ compared: many, rows: many + 3, open: many - 1 });
  expect(await kept(bundle)).toEqual([
    { kind: "missing_in_store", n: many - 1, stored: null, exported: many + 1, says: null },
  ]);
});

test("an export that fails while it is read leaves nothing behind, and the connection stays usable", async () => {
  const { bundle, sourceId } = await loaded([[bucket(0), "a", 2]]);
  const broken = compare(bundle, sourceId, function* () {
    yield Array.from({ length: 5_000 }, (_, i): Given => [0, `id ${i}`, 1]);
    throw new RangeError("half of it");
  });
  await expect(broken).rejects.toThrow("half of it");
  expect(await kept(bundle)).toEqual([]);
  expect(await compare(bundle, sourceId, () => [[[0, "a", 2]]])).toMatchObject({ compared: 1, open: 0 });
});

test("an export that a load overtook in one day of one of its workspaces is outdated for all of them", async () => {
  const { bundle, sourceId } = await loaded([]);
  const { store, reader } = bundle;
  const load = (workspaceId: string, traces: number, within = window) =>
    loadRows(store, {
      sourceId,
      groupBy: "workspace",
      workspaceId,
      window: within,
      rows: [[bucket(2), workspaceId, traces]],
    });
  await load(WORKSPACE, 5);
  await load(OTHER, 7);
  const fetchToken = await drawFetchToken(store.db);
  await load(OTHER, 9, windowOf("day", "2026-02-03T00:00:00Z", "2026-02-04T00:00:00Z"));
  const old: Given[] = [
    [2, WORKSPACE, 5],
    [2, OTHER, 7],
  ];
  const options = { fetchToken, groupBy: "workspace" } as const;
  expect(await compare(bundle, sourceId, () => [old], options)).toMatchObject({
    outcome: "outdated",
    open: 0,
    compared: 0,
    rows: 2,
    traces: 12,
    unverified: [],
    notFinal: [],
  });
  const { rows } = await reader.query("SELECT FROM usage.reconciled");
  expect(rows).toEqual([]);
});
