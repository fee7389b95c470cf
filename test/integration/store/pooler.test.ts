import { sql } from "kysely";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { openStore } from "../../../src/core/store/db/database.ts";
import { inSnapshot } from "../../../src/core/store/db/snapshot.ts";
import { migrate } from "../../../src/core/store/migrate.ts";
import { createTestDatabase } from "../../support/database.ts";
import { hasPgBouncer, startPgBouncer } from "../../support/pgbouncer.ts";
import { loadRows, proveAccess } from "../../support/store.ts";
import { createSource, FIRST_DAY } from "./setup.ts";

/** All tests of the store run through it with `npm run test:pgbouncer`. */

test("three migrations at once, a load and a page's limit work through PgBouncer in transaction mode", async ({
  skip,
}) => {
  if (!hasPgBouncer()) skip("PgBouncer is not installed");
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const pooler = await startPgBouncer(database.url);
  onTestFinished(() => pooler.close());
  const url = pooler.through(database.url);
  const stores = Array.from({ length: 3 }, () => openStore({ url }));
  const page = openStore({ url, maxConnections: 1, statementTimeoutMs: 200 });
  onTestFinished(async () => {
    for (const one of [...stores, page]) await one.close();
  });
  await Promise.all(stores.flatMap(({ db }) => [1, 2, 3].map(() => sql`select pg_sleep(0.1)`.execute(db))));
  const results = await Promise.all(stores.map((store) => migrate(store)));
  expect(results.filter(({ applied }) => applied.length > 0)).toHaveLength(1);

  const direct = new pg.Client({ connectionString: database.url });
  await direct.connect();
  const locks = await direct.query(
    "SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE locktype = 'advisory' AND d.datname = current_database()",
  );
  expect(locks.rowCount).toBe(0);

  const [store = page] = stores;
  const workspaceId = "00000000-0000-4000-8000-000000000001";
  const source = { workspaceIds: [workspaceId], dataStart: FIRST_DAY };
  const sourceId = await createSource({ url, store, reader: direct }, source);
  await proveAccess(store, { sourceId, workspaceIds: [workspaceId] });
  const load = (traces: number) =>
    loadRows(store, {
      sourceId,
      groupBy: "user",
      workspaceId,
      rows: [[new Date(FIRST_DAY).toISOString(), "ada", traces]],
      window: { stride: "day", start: FIRST_DAY, end: FIRST_DAY + DAY_MS },
    });
  for (const traces of [7, 9]) await load(traces);
  const stored = await direct.query("SELECT sum(traces)::integer AS traces FROM usage.dated_record");
  expect(stored.rows).toEqual([{ traces: 9 }]);
  await direct.end();

  // Here each statement has a transaction. A host that vanishes before the COMMIT would hold locks for good.
  const limit = sql<{ idle: string }>`select current_setting('idle_in_transaction_session_timeout') as idle`;
  expect((await limit.execute(page.db)).rows).toEqual([{ idle: "30s" }]);

  const slow = sql`select pg_sleep(5)`;
  await expect(slow.execute(page.db)).rejects.toMatchObject({ code: "57014" });
  await expect(inSnapshot(page.db, (db) => slow.execute(db))).rejects.toMatchObject({ code: "57014" });
  await sql`select pg_sleep(0.3)`.execute(store.db);
  expect((await sql<{ one: number }>`select 1 as one`.execute(page.db)).rows).toEqual([{ one: 1 }]);
});
