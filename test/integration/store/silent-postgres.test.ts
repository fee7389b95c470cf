import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { copyRows } from "../../../src/core/store/db/copy.ts";
import { openStore } from "../../../src/core/store/db/database.ts";
import { poll } from "../../support/poll.ts";
import { openRelay } from "../../support/relay.ts";
import { setupMigrated } from "../../support/store.ts";

/** A connection that is open and says nothing, as behind a dead load balancer. No test may wait for the system's own limits. */

const QUICK = { lookEveryMs: 200, connectMs: 5_000, responseMs: 1_000, longestMs: 60_000 };
const SILENT = { code: "postgres_silent", retryable: true };

async function setup({ limits = QUICK, maxConnections = 3 } = {}) {
  const { store: direct, url } = await setupMigrated();
  await sql`create table usage.seen (n integer)`.execute(direct.db);
  const proxy = await openRelay(url);
  const closed: number[] = [];
  const store = openStore({
    url: proxy.through(url),
    maxConnections,
    limits,
    onSilent: (connections) => closed.push(connections),
  });
  onTestFinished(() => store.close());
  const add = (n: number) => sql`insert into usage.seen values (${n})`;
  const seen = async () => {
    const { rows } = await sql<{ n: number }>`select n from usage.seen order by n`.execute(direct.db);
    return rows.map(({ n }) => n);
  };
  return { direct, proxy, url: proxy.through(url), store, closed, add, seen };
}

async function fillPool(
  store: Awaited<ReturnType<typeof setup>>["store"],
  connections: number,
): Promise<void> {
  await Promise.all(Array.from({ length: connections }, () => sql`select pg_sleep(0.3)`.execute(store.db)));
}

test("statements on connections that fell silent fail, and the pool goes on with new ones", async () => {
  const { proxy, store, closed } = await setup();
  await fillPool(store, 3);
  expect(proxy.open.size).toBeGreaterThanOrEqual(3);
  proxy.silence();
  const requested = await Promise.allSettled([1, 2, 3].map(() => sql`select 1`.execute(store.db)));
  for (const one of requested) expect(one).toMatchObject({ status: "rejected", reason: SILENT });
  await sql`select 1`.execute(store.db);
  expect(closed.reduce((sum, connections) => sum + connections, 0)).toBe(3);
});

test("a transaction on a connection that falls silent between its statements is repeated, and its locks are free", async () => {
  const { proxy, store, add, seen } = await setup();
  let runs = 0;
  await store.transaction(async ({ db }) => {
    runs++;
    await sql`lock table usage.seen in exclusive mode`.execute(db);
    if (runs === 1) proxy.silence();
    await add(runs).execute(db);
  });
  expect({ runs, seen: await seen() }).toEqual({ runs: 2, seen: [2] });
});

test("a transaction is not repeated if the response to its COMMIT is lost: its outcome is looked up", async () => {
  const { proxy, store, add, seen } = await setup();
  let runs = 0;
  let commits = 0;
  proxy.decide = ({ from, data }) =>
    from === "server" && data.includes("COMMIT") && ++commits === 1 ? "swallow" : "pass";
  const result = await store.transaction(async ({ db }) => {
    await add(++runs).execute(db);
    return `run ${runs}`;
  });
  expect({ result, seen: await seen() }).toEqual({ result: "run 1", seen: [1] });
});

test("a transaction is not repeated if its connection is cut after the COMMIT arrived", async () => {
  const { proxy, store, add, seen } = await setup();
  let runs = 0;
  proxy.decide = ({ from, data }) => {
    if (from !== "server" || !data.includes("COMMIT") || runs > 1) return "pass";
    proxy.cut();
    return "swallow";
  };
  await store.transaction(async ({ db }) => add(++runs).execute(db));
  expect({ runs, seen: await seen() }).toEqual({ runs: 1, seen: [1] });
});

test("a transaction is repeated if its COMMIT never arrived", async () => {
  const { proxy, store, add, seen } = await setup();
  let runs = 0;
  proxy.decide = ({ from, data }) =>
    from === "client" && data.includes("COMMIT\0") && runs === 1 ? "swallow" : "pass";
  await store.transaction(async ({ db }) => add(++runs).execute(db));
  expect({ runs, seen: await seen() }).toEqual({ runs: 2, seen: [2] });
});

test.each(["silence", "stall"] as const)(
  "a COPY that Postgres takes no longer is repeated (%s)",
  async (fault) => {
    const { direct, proxy, store } = await setup();
    await sql`create table usage.stage (series_id integer, bucket_start date, traces bigint)`.execute(
      direct.db,
    );
    let runs = 0;
    const rows = function* () {
      for (let id = 0; id < 200_000; id++) {
        if (id === 50_000 && runs === 1) proxy[fault]();
        yield { id, bucketHour: 480_000, traces: 1 };
      }
    };
    await store.transaction(({ client }) => {
      runs++;
      return copyRows(client, { table: "usage.stage", bucketType: "date", rows: rows() });
    });
    const { rows: counted } = await sql`select count(*) from usage.stage`.execute(direct.db);
    expect({ runs, counted }).toEqual({ runs: 2, counted: [{ count: 200_000 }] });
  },
);

test("no connection is closed while Postgres works on its statement, while it waits for a lock, or while it is idle", async () => {
  const { direct, store, closed, add } = await setup();
  await fillPool(store, 3);
  const holder = direct.transaction(async ({ db }) => {
    await sql`lock table usage.seen in exclusive mode`.execute(db);
    await sql`select pg_sleep(2)`.execute(db);
  });
  await Promise.all([
    holder,
    sql`select pg_sleep(2)`.execute(store.db),
    poll(async () => {
      const { rows } =
        await sql`select from pg_locks where mode = 'ExclusiveLock' and relation = 'usage.seen'::regclass`.execute(
          direct.db,
        );
      return rows.length > 0;
    }).then(() => store.transaction(async ({ db }) => add(1).execute(db))),
  ]);
  expect(closed).toEqual([]);
});

test("a statement that Postgres works on for ever ends at the longest time", async () => {
  const { store } = await setup({ limits: { ...QUICK, longestMs: 600 } });
  await expect(sql`select pg_sleep(60)`.execute(store.db)).rejects.toMatchObject(SILENT);
});

test("a store closes within the limit although Postgres is silent, with a statement under way and idle connections", async () => {
  const { proxy, url } = await setup();
  const store = openStore({ url, limits: { ...QUICK, lookEveryMs: 60_000, responseMs: 200 } });
  await fillPool(store, 2);
  const swallowed = new Promise<void>((resolve) => {
    proxy.decide = ({ data }) => {
      if (data.includes("select 17")) resolve();
      return "swallow";
    };
  });
  const hung = expect(sql`select 17`.execute(store.db)).rejects.toMatchObject(SILENT);
  await swallowed;
  const before = performance.now();
  await store.close();
  await hung;
  await poll(() => proxy.open.size === 0);
  expect(performance.now() - before).toBeLessThan(30_000);
});
