import { expect, test } from "vitest";
import { drawStamp, liftFetchNumbers } from "../../../src/store/load/fetch-ledger.ts";
import { poll } from "../../support/poll.ts";
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

  // One at a time: who waited sees what the other one has drawn, and does not set the numbers back.
  const drawn = await store.transaction(async ({ db, client }) => {
    await client.query("SELECT pg_advisory_xact_lock(hashtext('usage-etl fetch numbers'))");
    await client.query("SELECT setval('usage.fetch_number', 1)");
    const waiting = liftFetchNumbers(store);
    const waits = `SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                   WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`;
    await poll(async () => (await reader.query(waits)).rows.length === 1, { deadlineMs: 20_000 });
    await client.query("SELECT setval('usage.fetch_number', 20000)");
    return { stamp: await drawStamp(db), waiting };
  });
  await drawn.waiting;
  expect((await drawStamp(store.db)).fetchNumber).toBeGreaterThan(drawn.stamp.fetchNumber);
});

test("where sequences are behind the data, a new epoch of digests begins; else it stays", async () => {
  const bundle = await setupStore();
  const { store, reader } = bundle;
  await enterSource(bundle, { workspaceIds: ["w1"], dataStart: FIRST_DAY });
  const epoch = async () =>
    Number((await reader.query("SELECT last_value FROM usage.digest_epoch")).rows[0].last_value);
  const restore = async (fetchNumber: number, digestEpoch: number) => {
    await reader.query("DELETE FROM usage.coverage");
    await reader.query(
      `INSERT INTO usage.coverage (scope_id, period_start, period_end, settled, fetch_number, fetched_at, digest, digest_epoch)
       SELECT scope_id, '2026-01-05Z', '2026-01-06Z', true, $1, now(), '\\x00', $2 FROM usage.scope LIMIT 1`,
      [fetchNumber, digestEpoch],
    );
    await reader.query("SELECT setval('usage.fetch_number', 500), setval('usage.digest_epoch', 3)");
    await liftFetchNumbers(store);
    return epoch();
  };
  expect(await restore(400, 3)).toBe(3);
  expect(await restore(400, 7)).toBe(8);
  // Its digest is of the present epoch, but who knows what happened since.
  expect(await restore(600, 3)).toBe(4);
});
