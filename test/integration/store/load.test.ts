import { beforeEach, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/domain/time/stride.ts";
import { drawStamp } from "../../../src/store/load/fetch-ledger.ts";
import { loadRows } from "../../support/store.ts";
import { FIRST_DAY, type StoreBundle, setupSource } from "./setup.ts";

/** What the model of a load (model/model.property.test.ts) leaves out: where data begin, and when days became final. */

const WORKSPACE = "11111111-1111-4111-8111-111111111111";

let bundle: StoreBundle & { sourceId: number };

beforeEach(async () => {
  bundle = await setupSource({ workspaceIds: [WORKSPACE], dataStart: FIRST_DAY });
});

const iso = (day: number) => new Date(FIRST_DAY + day * DAY_MS).toISOString();
const rowsOf = async (text: string, values: unknown[] = []) => (await bundle.reader.query(text, values)).rows;
/** The first three days, of which one has traces. */
const answer = (day: number) => ({
  sourceId: bundle.sourceId,
  groupBy: "project" as const,
  workspaceId: WORKSPACE,
  window: { stride: "day" as const, start: FIRST_DAY, end: FIRST_DAY + 3 * DAY_MS },
  rows: [[iso(day), "p", 5]] as const,
});

test("an answer from before the data start moved is discarded", async () => {
  const { store } = bundle;
  await rowsOf("UPDATE usage.source SET data_start = $1", [iso(1).slice(0, 10)]);
  expect(await loadRows(store, answer(0))).toMatchObject({ outcome: "discarded", inserted: 0 });
  expect(await rowsOf("SELECT FROM usage.coverage UNION ALL SELECT FROM usage.dated_record")).toEqual([]);
  const window = { stride: "day" as const, start: FIRST_DAY + DAY_MS, end: FIRST_DAY + 3 * DAY_MS };
  expect((await loadRows(store, { ...answer(1), window })).outcome).toBe("loaded");
});

test("a day is noted as final by the first load in which it is, and no hour is", async () => {
  const { store } = bundle;
  const noted = () =>
    rowsOf("SELECT period_start AS day, final_at::text AS at FROM usage.became_final ORDER BY period_start");
  const hours = { stride: "hour" as const, start: FIRST_DAY, end: FIRST_DAY + 3 * HOUR_MS };
  await loadRows(store, { ...answer(0), window: hours });
  await loadRows(store, { ...answer(0), settleAfterMs: 30 * DAY_MS });
  expect(await noted()).toEqual([]);
  // Fetched as the seventh day begins, so the first day ended five days before.
  const stamp = { ...(await drawStamp(store.db)), fetchedAt: FIRST_DAY + 6 * DAY_MS };
  await loadRows(store, { ...answer(0), stamp, settleAfterMs: 5 * DAY_MS });
  const first = await noted();
  expect(first).toEqual([{ day: new Date(FIRST_DAY), at: expect.any(String) }]);
  await loadRows(store, answer(0));
  expect(await noted()).toEqual([...first, { day: new Date(FIRST_DAY + DAY_MS), at: expect.any(String) }]);
});
