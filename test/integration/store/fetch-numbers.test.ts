import { expect, test } from "vitest";
import { drawStamp, liftFetchNumbers } from "../../../src/store/load/fetch-ledger.ts";
import { enterSource, FIRST_DAY, setupStore } from "./setup.ts";

test("fetch numbers are lifted above restored data, even if several processes start at once", async () => {
  const bundle = await setupStore();
  const { store, reader } = bundle;
  await enterSource(bundle, { workspaceIds: ["w1"], dataStart: FIRST_DAY });
  for (let round = 1; round <= 10; round++) {
    const newest = round * 1_000;
    await reader.query("DELETE FROM usage.coverage");
    await reader.query(
      `INSERT INTO usage.coverage
       SELECT scope_id, '2026-01-05Z', '2026-01-06Z', true, $1, now() FROM usage.scope LIMIT 1`,
      [newest],
    );
    // As after a restore of the tables alone: the sequence is behind, and was never called.
    await reader.query("SELECT setval('usage.fetch_number', $1, false)", [round % 2 === 0 ? newest : 1]);
    const start = async () => {
      await liftFetchNumbers(store);
      return [await drawStamp(store.db), await drawStamp(store.db)];
    };
    const stamps = (await Promise.all(Array.from({ length: 8 }, start))).flat();
    const numbers = stamps.map((stamp) => stamp.fetchNumber);
    expect(Math.min(...numbers)).toBeGreaterThan(newest);
    expect(new Set(numbers).size).toBe(numbers.length);
  }
});
