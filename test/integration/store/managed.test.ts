import { Kysely, sql } from "kysely";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../../src/core/store/db/database.ts";
import { MIGRATION_LOCK, StoreDialect } from "../../../src/core/store/db/dialect.ts";
import { inSnapshot } from "../../../src/core/store/db/snapshot.ts";
import { migrate } from "../../../src/core/store/migrate.ts";
import { onReadingConnection } from "../../../src/features/export/reading-connection.store.ts";
import { createTestDatabase, pastPooler } from "../../support/database.ts";
import { poll } from "../../support/poll.ts";

const LONGER_S = 1.2;

test("short limits of the server end neither a migration that waits, nor a load, nor an export", async () => {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  const other = new pg.Client({ connectionString: await pastPooler(url) });
  await other.connect();
  onTestFinished(() => other.end());
  const { rows } = await other.query(
    "SELECT current_database() AS name, current_setting('server_version_num')::integer AS version",
  );
  const [{ name, version }] = rows as [{ name: string; version: number }];
  const limits = ["statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout"];
  if (version >= 170_000) limits.push("transaction_timeout");
  for (const limit of limits) await other.query(`ALTER DATABASE ${name} SET ${limit} = '1s'`);

  await other.query(`BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  const store = openStore({ url });
  onTestFinished(() => store.close());
  const migrated = migrate(store);
  const waitsLonger = `SELECT count(*) > 0 AS is FROM pg_locks l
    JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
    WHERE locktype = 'advisory' AND NOT granted AND clock_timestamp() - waitstart > interval '${LONGER_S} s'`;
  await Promise.race([
    migrated,
    poll(async () => (await other.query(waitsLonger)).rows[0]?.is, { deadlineMs: 30_000 }),
  ]);
  await other.query("COMMIT");
  expect((await migrated).applied.length).toBeGreaterThan(0);

  const slow = `SELECT pg_sleep(${LONGER_S})`;
  let runs = 0;
  await store.transaction(async ({ db, client }) => {
    runs++;
    await client.query(slow);
    await sql`select 1`.execute(db);
  });
  expect(runs).toBe(1);
  const { signal } = new AbortController();
  const isolation = "REPEATABLE READ";
  const errorOf = (cause: unknown) => cause as never;
  const read = await onReadingConnection({ store, signal, isolation, errorOf }, async (client) => {
    await client.query(slow);
    return (await client.query("SELECT 1 AS one")).rows;
  });
  expect(read).toEqual([{ one: "1" }]);
});

test("a transaction that cannot begin leaves its connection as it was", async () => {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const session = { statementMs: -1, isRefused: true, isPerTransaction: true };
  const db = new Kysely<unknown>({ dialect: new StoreDialect({ pool }, session) });
  onTestFinished(() => db.destroy());
  const one = sql<{ one: number }>`select 1 as one`;
  await expect(inSnapshot(db, (snapshot) => one.execute(snapshot))).rejects.toMatchObject({ code: "22023" });
  expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
});
