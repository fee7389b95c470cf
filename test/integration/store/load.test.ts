import { beforeEach, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { keepFindings } from "../../../src/core/store/proof/control-findings.ts";
import { compareTotals } from "../../../src/core/store/proof/control-totals.ts";
import { drawFetchToken } from "../../../src/core/store/work/fetch-ledger.ts";
import { moveDataStart } from "../../../src/features/catalog/move-data-start.store.ts";
import { KEEP_PROOF } from "../../support/by-hand.ts";
import { loadRows } from "../../support/store.ts";
import { FIRST_DAY, type StoreBundle, setupSource } from "./setup.ts";
import { expectTrueState } from "./state.ts";

/** What the model of a load (model/model.property.test.ts) leaves out: where data begin, and when days became final. */

const WORKSPACE = "11111111-1111-4111-8111-111111111111";

let bundle: StoreBundle & { sourceId: number };

beforeEach(async () => {
  bundle = await setupSource({ workspaceIds: [WORKSPACE], dataStart: FIRST_DAY });
});

const iso = (day: number) => new Date(FIRST_DAY + day * DAY_MS).toISOString();
const rowsOf = async (text: string, values: unknown[] = []) => (await bundle.reader.query(text, values)).rows;
/** The first three days, of which one has traces. */
const response = (day: number) => ({
  sourceId: bundle.sourceId,
  groupBy: "project" as const,
  workspaceId: WORKSPACE,
  window: { stride: "day" as const, start: FIRST_DAY, end: FIRST_DAY + 3 * DAY_MS },
  rows: [[iso(day), "p", 5]] as const,
});

test("a response from before the data start moved is discarded", async () => {
  const { store } = bundle;
  await rowsOf("UPDATE usage.source SET data_start = $1", [iso(1).slice(0, 10)]);
  expect(await loadRows(store, response(0))).toMatchObject({ outcome: "discarded", inserted: 0 });
  expect(await rowsOf("SELECT FROM usage.coverage UNION ALL SELECT FROM usage.dated_record")).toEqual([]);
  const window = { stride: "day" as const, start: FIRST_DAY + DAY_MS, end: FIRST_DAY + 3 * DAY_MS };
  expect((await loadRows(store, { ...response(1), window })).outcome).toBe("loaded");
});

test("each load is added to its calendar months, across the ends of years and leap days", async () => {
  const dataStart = Date.UTC(2023, 11, 30);
  bundle = await setupSource({ workspaceIds: [WORKSPACE], dataStart });
  const load = (from: string, to: string, rows: readonly (readonly [string, string, number])[]) =>
    loadRows(bundle.store, {
      ...response(0),
      sourceId: bundle.sourceId,
      window: { stride: "day", start: Date.parse(from), end: Date.parse(to) },
      rows: rows.map(([day, id, traces]) => [`${day}T00:00:00Z`, id, traces]),
    });
  await load("2024-02-28", "2024-03-02", [
    ["2024-02-29", "p", 4],
    ["2024-03-01", "p", 8],
    ["2024-03-01", "q", 0],
  ]);
  await load("2023-12-30", "2024-01-02", [
    ["2023-12-31", "p", 1],
    ["2024-01-01", "p", 2],
  ]);
  await load("2024-03-02", "2024-04-02", [
    ["2024-03-02", "q", 0],
    ["2024-03-31", "p", 16],
    ["2024-04-01", "p", 32],
  ]);
  const kept = await rowsOf(
    `SELECT external_id AS id, month_start AS month, traces::integer, records::integer
     FROM usage.monthly_total JOIN usage.series USING (series_id) JOIN usage.entity USING (entity_id) ORDER BY 1, 2`,
  );
  expect(kept.map((row) => Object.values(row).join(" "))).toEqual([
    "p 2023-12-01 1 1",
    "p 2024-01-01 2 1",
    "p 2024-02-01 4 1",
    "p 2024-03-01 24 2",
    "p 2024-04-01 32 1",
    "q 2024-03-01 0 2",
  ]);
});

test("the proof and the differences of days end when the data start moves past them", async () => {
  const { store, sourceId } = bundle;
  const days = (from: number, to: number) => ({
    start: FIRST_DAY + from * DAY_MS,
    end: FIRST_DAY + to * DAY_MS,
  });
  await loadRows(store, { ...response(4), window: { stride: "day", ...days(0, 5) } });
  const [{ scope_id: scopeId }] = await rowsOf("SELECT scope_id FROM usage.coverage");
  const total = { scopeId, part: 0, dimensionId: "p", measure: "traces", traces: 5 } as const;
  const fetchToken = await drawFetchToken(store.db);
  await compareTotals(store, { scopeIds: [scopeId], parts: [days(0, 5)], totals: [total], fetchToken });
  const about = { kind: "grouping_total", fetchNumber: fetchToken.fetchNumber, compared: [] } as const;
  const found = { storedTraces: 5, controlTraces: 6, state: "platform_disagrees", ...days(0, 1) } as const;
  await keepFindings(store, about, [{ ...total, ...found, kind: about.kind }]);
  await rowsOf(
    `INSERT INTO usage.difference (scope_id, compared_with, external_id, period_start, period_end, kind, fetch_number)
     VALUES ($1, 'export', 'p', $2, $2::timestamptz + interval '1 day', 'traces_differ', 1)`,
    [scopeId, iso(1)],
  );
  await rowsOf(KEEP_PROOF);
  const moved = async (to: number) => {
    const by = { name: "ada", role: "operator", via: "command" } as const;
    await moveDataStart(store, { sourceId, to: iso(to).slice(0, 10), by });
    await expectTrueState(bundle.reader);
    return rowsOf(
      "SELECT usage.count_days(totalled) AS totalled, usage.count_days(differing) AS differing FROM usage.day_proof",
    );
  };
  expect(await moved(0)).toEqual([{ totalled: 5, differing: 2 }]);
  expect(await moved(1)).toEqual([{ totalled: 4, differing: 1 }]);
  expect(await moved(2)).toEqual([{ totalled: 3, differing: 0 }]);
  expect(await moved(3)).toEqual([{ totalled: 2, differing: 0 }]);
});

test("a day is noted as final by the first load in which it is, and no hour is", async () => {
  const { store } = bundle;
  const noted = () =>
    rowsOf("SELECT period_start AS day, final_at::text AS at FROM usage.became_final ORDER BY period_start");
  const hours = { stride: "hour" as const, start: FIRST_DAY, end: FIRST_DAY + 3 * HOUR_MS };
  await loadRows(store, { ...response(0), window: hours });
  await loadRows(store, { ...response(0), settleAfterMs: 30 * DAY_MS });
  expect(await noted()).toEqual([]);
  // Fetched as the seventh day begins, so the first day ended five days before.
  const fetchToken = { ...(await drawFetchToken(store.db)), fetchedAt: FIRST_DAY + 6 * DAY_MS };
  await loadRows(store, { ...response(0), fetchToken, settleAfterMs: 5 * DAY_MS });
  const first = await noted();
  expect(first).toEqual([{ day: new Date(FIRST_DAY), at: expect.any(String) }]);
  await loadRows(store, response(0));
  expect(await noted()).toEqual([...first, { day: new Date(FIRST_DAY + DAY_MS), at: expect.any(String) }]);
});
