import { expect, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { failScopes, retryNow } from "../../../src/core/store/catalog/failures.ts";
import { drawFetchToken, liftFetchNumbers } from "../../../src/core/store/work/fetch-ledger.ts";
import { poll } from "../../support/poll.ts";
import { createSource, FIRST_DAY, setupStore } from "./setup.ts";

test("fetch numbers are lifted above restored data, even if several processes start at once", async () => {
  const bundle = await setupStore();
  const { store, reader } = bundle;
  await createSource(bundle, { workspaceIds: ["w1"], dataStart: FIRST_DAY });
  for (let round = 1; round <= 10; round++) {
    const newest = round * 1_000;
    await reader.query("DELETE FROM usage.coverage");
    await reader.query(
      `INSERT INTO usage.coverage
       SELECT scope_id, '2026-01-05Z', '2026-01-06Z', true, $1, now(), '{}' FROM usage.trace_scope LIMIT 1`,
      [newest],
    );
    await reader.query("SELECT setval('usage.fetch_number', $1, false)", [round % 2 === 0 ? newest : 1]);
    const start = async () => {
      await liftFetchNumbers(store);
      return [await drawFetchToken(store.db), await drawFetchToken(store.db)];
    };
    const fetchTokens = (await Promise.all(Array.from({ length: 8 }, start))).flat();
    const numbers = fetchTokens.map((fetchToken) => fetchToken.fetchNumber);
    expect(Math.min(...numbers)).toBeGreaterThan(newest);
    expect(new Set(numbers).size).toBe(numbers.length);
  }

  const drawn = await store.transaction(async ({ db, client }) => {
    await client.query("SELECT pg_advisory_xact_lock(hashtext('usage-etl fetch numbers'))");
    await client.query("SELECT setval('usage.fetch_number', 1)");
    const waiting = liftFetchNumbers(store);
    const waits = `SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                   WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`;
    await poll(async () => (await reader.query(waits)).rows.length === 1, { deadlineMs: 20_000 });
    await client.query("SELECT setval('usage.fetch_number', 20000)");
    return { fetchToken: await drawFetchToken(db), waiting };
  });
  await drawn.waiting;
  expect((await drawFetchToken(store.db)).fetchNumber).toBeGreaterThan(drawn.fetchToken.fetchNumber);
});

test("where sequences are behind the data, a new epoch of digests begins; else it stays", async () => {
  const bundle = await setupStore();
  const { store, reader } = bundle;
  await createSource(bundle, { workspaceIds: ["w1"], dataStart: FIRST_DAY });
  const epoch = async () =>
    Number((await reader.query("SELECT last_value FROM usage.digest_epoch")).rows[0].last_value);
  const restore = async (fetchNumber: number, digestEpoch: number) => {
    await reader.query("DELETE FROM usage.coverage");
    await reader.query(
      `INSERT INTO usage.coverage (scope_id, period_start, period_end, final, fetch_number, fetched_at, traced, digest, digest_epoch)
       SELECT scope_id, '2026-01-05Z', '2026-01-06Z', true, $1, now(), '{}', '\\x00', $2 FROM usage.trace_scope LIMIT 1`,
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

test("whoever asks by hand makes all failures of the source due, and none of another one", async () => {
  const bundle = await setupStore();
  const { store, reader } = bundle;
  const sourceId = await createSource(bundle, { workspaceIds: ["w1"], dataStart: FIRST_DAY });
  const { rows: scopes } = await reader.query<{ scope_id: number }>(
    "SELECT scope_id FROM usage.scope ORDER BY scope_id LIMIT 2",
  );
  const failure = {
    state: "failed" as const,
    code: "x",
    message: "x",
    scopeIds: scopes.map((one) => one.scope_id),
  };
  const dayAt = (day: number) => ({ start: FIRST_DAY + day * DAY_MS, end: FIRST_DAY + (day + 1) * DAY_MS });
  await failScopes(store, { ...failure, period: dayAt(0), fetchToken: await drawFetchToken(store.db) });
  await reader.query("UPDATE usage.failure SET retry_at = '2020-01-01Z'");
  await failScopes(store, { ...failure, period: dayAt(2), fetchToken: await drawFetchToken(store.db) });
  const due = async () =>
    (
      await reader.query(
        `SELECT period_start AS day, retry_at <= now() AS due, retry_at = '2020-01-01Z' AS long FROM usage.failure ORDER BY 1, scope_id`,
      )
    ).rows.map((row) => [(row.day.getTime() - FIRST_DAY) / DAY_MS, row.due, row.long]);
  const waiting = [...Array(2).fill([0, true, true]), ...Array(2).fill([2, false, false])];
  expect(await due()).toEqual(waiting);
  await retryNow(store.db, sourceId + 1);
  expect(await due()).toEqual(waiting);
  await retryNow(store.db, sourceId);
  expect(await due()).toEqual([...Array(2).fill([0, true, true]), ...Array(2).fill([2, true, false])]);
});
