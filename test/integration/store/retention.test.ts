import { beforeEach, describe, expect, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { pruneLedgers } from "../../../src/core/pipeline/upkeep.ts";
import type { Store } from "../../../src/core/store/db/database.ts";
import { beginFetch } from "../../../src/core/store/work/fetch-ledger.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import { setupSource } from "./setup.ts";

const WORKSPACE = "00000000-0000-4000-8000-000000000001";
const USER = "00000000-0000-4000-8000-00000000000a";
const START = Date.parse("2026-03-01");

let store: Store;
let sourceId: number;

beforeEach(async () => {
  ({ store, sourceId } = await setupSource({ workspaceIds: [WORKSPACE], dataStart: START }));
});

const rows = (text: string) => store.transaction(async ({ client }) => (await client.query(text)).rows);

async function loadDays(days: number, gap?: number, from = 0, stride: "day" | "hour" = "day"): Promise<void> {
  for (let day = from; day < days; day++) {
    if (day === gap) continue;
    const [from, to] = [day, day + 1].map((n) => new Date(START + n * DAY_MS).toISOString());
    await loadRows(store, {
      sourceId,
      groupBy: "user",
      workspaceId: WORKSPACE,
      window: windowOf(stride, from as string, to as string),
      rows: [[from as string, USER, day + 1, "someone@example.com"]],
    });
  }
}

const age = () =>
  rows(
    "UPDATE usage.coverage SET fetched_at = fetched_at - interval '30 days' WHERE fetched_at > now() - interval '1 day'",
  );
const prune = (userEmail: "keep" | "hash" | "drop" = "keep") =>
  pruneLedgers(store, { sourceId, keepDays: 400, userEmail });
const coverage = () =>
  rows("SELECT period_start, period_end, final, fetch_number, fetched_at FROM usage.coverage ORDER BY 1");
const figures = () =>
  rows("SELECT usage_date::text, traces, coverage_status FROM reporting.fct_usage_user_daily ORDER BY 1");

describe("pruning", () => {
  test("merges old final intervals that adjoin, keeps gaps, and changes no figure", async () => {
    await loadDays(20, 7);
    await rows("UPDATE usage.coverage SET fetched_at = fetched_at - interval '30 days'");
    const before = { coverage: await coverage(), figures: await figures() };
    expect(await prune()).toMatchObject({ fragments: 17 });
    const after = await coverage();
    expect(after).toHaveLength(2);
    expect(after.map((one) => [one.period_start.getTime(), one.period_end.getTime()])).toEqual([
      [START, START + 7 * DAY_MS],
      [START + 8 * DAY_MS, START + 20 * DAY_MS],
    ]);
    expect(after[0].fetch_number).toBe(before.coverage[6].fetch_number);
    expect(after[0].fetched_at).toEqual(before.coverage[0].fetched_at);
    expect(await figures()).toEqual(before.figures);
  });

  test("merges hours within quarters, so that removing the oldest writes few digests", async () => {
    await loadDays(34, undefined, 28, "hour");
    await age();
    const before = await figures();
    expect(await prune()).toMatchObject({ fragments: 4 });
    const parts = await rows("SELECT period_start, period_end, digest FROM usage.coverage ORDER BY 1");
    const april = Date.parse("2026-04-01");
    expect(parts.map((one) => [one.period_start.getTime(), one.period_end.getTime()])).toEqual([
      [START + 28 * DAY_MS, april],
      [april, START + 34 * DAY_MS],
    ]);
    expect(parts.map((one) => one.digest.length)).toEqual([3 * 24 * 16, 3 * 24 * 16]);
    expect(await figures()).toEqual(before);
    expect(await prune()).toMatchObject({ fragments: 0 });
  });

  test("keeps recent and provisional intervals as they are", async () => {
    await loadDays(5);
    expect(await prune()).toMatchObject({ fragments: 0 });
    await rows("UPDATE usage.coverage SET fetched_at = fetched_at - interval '30 days', final = false");
    expect(await prune()).toMatchObject({ fragments: 0 });
    expect(await coverage()).toHaveLength(5);
  });
});

test("pruning removes requests older than the limit and keeps younger ones", async () => {
  const window = windowOf("day", "2026-03-01", "2026-03-02");
  for (let i = 0; i < 3; i++) {
    await beginFetch(store.db, {
      meter: "traces",
      sourceId,
      purpose: "load",
      groupBy: "user",
      window,
      workspaces: 1,
    });
  }
  await rows(
    "UPDATE usage.fetch SET fetched_at = now() - interval '401 days' WHERE fetch_number = (SELECT min(fetch_number) FROM usage.fetch)",
  );
  await rows(
    "UPDATE usage.fetch SET fetched_at = now() - interval '399 days' WHERE fetch_number = (SELECT max(fetch_number) FROM usage.fetch)",
  );
  expect(await prune()).toMatchObject({ fetches: 1 });
  expect(await rows("SELECT FROM usage.fetch")).toHaveLength(2);
});

test("pruning removes addresses that the policy forbids, and keeps digests and other names", async () => {
  await loadDays(1);
  await rows(`INSERT INTO usage.entity_name SELECT entity_id, 99, now(), 'sha256:0123456789abcdef'
    FROM usage.entity WHERE dimension = 'user'`);
  const names = async () =>
    (await rows("SELECT name FROM usage.entity_name ORDER BY 1")).map((row) => row.name);
  expect(await prune("keep")).toMatchObject({ userNames: 0 });
  expect(await prune("hash")).toMatchObject({ userNames: 1 });
  expect(await names()).toEqual(["sha256:0123456789abcdef"]);
  expect(await prune("drop")).toMatchObject({ userNames: 1 });
  expect(await names()).toEqual([]);
});
