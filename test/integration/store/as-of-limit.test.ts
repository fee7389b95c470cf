import pg from "pg";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { beginFetch, finishFetch } from "../../../src/core/store/work/fetch-ledger.ts";
import { pastPooler } from "../../support/database.ts";
import { poll } from "../../support/poll.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import { intercepted } from "./model/statements.ts";
import { type StoreBundle, setupSource } from "./setup.ts";

// Which instants an as-of query answers: all but those that a load may still stamp. A response never changes afterwards.

const WORKSPACE = "00000000-0000-4000-8000-000000000001";
const window = windowOf("day", "2026-03-01", "2026-03-02");
const LOADS = 1_969_583_212;

let bundle: StoreBundle & { sourceId: number };
let reader: pg.Client;

beforeEach(async () => {
  bundle = await setupSource({ workspaceIds: [WORKSPACE], dataStart: Date.parse("2026-03-01") });
  reader = await connect("-c role=usage_reader");
});

async function connect(options = ""): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: await pastPooler(bundle.url), options });
  // A test may end its backend.
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const load = (traces: number) =>
  loadRows(bundle.store, {
    sourceId: bundle.sourceId,
    groupBy: "project",
    workspaceId: WORKSPACE,
    window,
    rows: [["2026-03-01", "a", traces]],
  });

const one = async (client: pg.Client, text: string, values: unknown[] = []) =>
  (await client.query({ text, values, rowMode: "array" })).rows[0]?.[0];
const clock = (): Promise<string> => one(bundle.reader, "SELECT clock_timestamp()::text");
const secondAfter = (instant: string) =>
  poll(() =>
    one(bundle.reader, "SELECT date_trunc('second', clock_timestamp()) > $1::timestamptz", [instant]),
  );

const CALL = "SELECT traces::integer FROM reporting_detail.usage_daily_as_of($1::timestamptz";
/** The traces of 1 March; undefined if the day was not final then. */
const asOf = (at: string, { client = reader, shift = "0 s" } = {}): Promise<number | undefined> =>
  one(client, `${CALL} + $2::interval, 'project')`, [at, shift]);

const REFUSED = /running loads may still change this instant/;
const refusal = (at: string, client = reader): Promise<pg.DatabaseError> =>
  asOf(at, { client }).then(
    (traces) => Promise.reject(new Error(`responded with ${traces}`)),
    (error: pg.DatabaseError) => error,
  );

async function standing(traces: number) {
  const gate = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<number>();
  onTestFinished(() => gate.resolve());
  let hasFetchToken = false;
  const done = intercepted(
    {
      async before({ text, backend }) {
        if (/insert into usage\.(became_final|restatement)/i.test(text)) hasFetchToken = true;
        if (text !== "COMMIT" || !hasFetchToken) return;
        reached.resolve(backend);
        await gate.promise;
      },
    },
    () => load(traces),
  );
  void done.catch(reached.reject);
  const backend = await reached.promise;
  const fetchToken = await clock();
  const commit = async () => {
    gate.resolve();
    return done;
  };
  return { backend, fetchToken, commit };
}

describe("while a load runs", () => {
  test("the limit is the second in which it drew its instant, and the refusal says it and when to ask again", async () => {
    await load(5);
    const before = await clock();
    await secondAfter(before);
    const { fetchToken, commit } = await standing(6);
    await secondAfter(fetchToken);
    const { message, hint = "", code } = await refusal(fetchToken);
    expect(message).toMatch(REFUSED);
    expect(code).toBe("22023");
    const limit = /Instants before (.*) can be answered\.$/.exec(message)?.[1] ?? "";
    const [from, to] = [before, fetchToken].map(Date.parse) as [number, number];
    expect(Date.parse(limit)).toBeGreaterThanOrEqual(Math.floor(from / 1000) * 1000);
    expect(Date.parse(limit)).toBeLessThanOrEqual(to);
    const again = /ask again at (\S+ \S+)\. If a load that started before then/.exec(hint)?.[1] ?? "";
    expect(Date.parse(again)).toBe(Math.floor(to / 1000) * 1000 + 1000);
    await expect(asOf(limit)).rejects.toThrow(REFUSED);
    expect(await asOf(limit, { shift: "-1 microsecond" })).toBe(5);

    expect(await commit()).toMatchObject({ outcome: "loaded", restated: 1 });
    expect(await asOf(fetchToken)).toBe(6);
    expect(await asOf(limit, { shift: "-1 microsecond" })).toBe(5);
  });

  test("the oldest of several loads sets the limit, whichever ends first", async () => {
    await load(5);
    const old = await standing(6);
    await secondAfter(old.fetchToken);
    const other = await connect("-c usage.load_instant=");
    await other.query("BEGIN; SELECT usage.load_instant()");
    const { message } = await refusal(old.fetchToken);
    await other.query("COMMIT");
    expect((await refusal(old.fetchToken)).message).toBe(message);
    await other.query("BEGIN; SELECT usage.load_instant()");
    await old.commit();
    expect(await asOf(old.fetchToken)).toBe(6);
    await other.query("ROLLBACK");
  });

  test("a load whose backend is killed refuses nothing any more", async () => {
    await load(5);
    const { backend, fetchToken, commit } = await standing(6);
    await secondAfter(fetchToken);
    await expect(asOf(fetchToken)).rejects.toThrow(REFUSED);
    await bundle.reader.query("SELECT pg_terminate_backend($1, 5000)", [backend]);
    expect(await asOf(fetchToken)).toBe(5);
    expect(await commit()).toMatchObject({ outcome: "loaded" });
    expect(await asOf(fetchToken)).toBe(5);
  });
});

test("a load takes its lock before it draws its instant", async () => {
  const seconds = "generate_series(0, 120) s";
  const key = "floor(extract(epoch FROM now() - timestamptz '2000-01-01Z'))::integer + s";
  // Nobody else takes these locks exclusively. Here it makes the load wait between lock and stamp.
  await bundle.reader.query(`SELECT pg_advisory_lock(${LOADS}, ${key}) FROM ${seconds}`);
  const running = load(5);
  await poll(() =>
    one(bundle.reader, "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
  );
  const released = await clock();
  await bundle.reader.query("SELECT pg_advisory_unlock_all()");
  await running;
  expect(await one(bundle.reader, "SELECT final_at > $1 FROM usage.became_final", [released])).toBe(true);
});

describe("a load that ends while a query runs", () => {
  test("is part of the response, although the query began before its end", async () => {
    await load(5);
    const { fetchToken, commit } = await standing(6);
    await secondAfter(fetchToken);
    await bundle.reader.query("SELECT pg_advisory_lock(1)");
    const query = reader.query(
      `SELECT f.traces::integer FROM (SELECT pg_advisory_xact_lock(1)::text AS got OFFSET 0) w
       CROSS JOIN LATERAL reporting_detail.usage_daily_as_of(($1 || w.got)::timestamptz, 'project') f`,
      [fetchToken],
    );
    await poll(() => one(bundle.reader, "SELECT count(*) > 0 FROM pg_locks WHERE objid = 1 AND NOT granted"));
    await commit();
    await bundle.reader.query("SELECT pg_advisory_unlock(1)");
    expect((await query).rows).toEqual([{ traces: 6 }]);
    expect(await asOf(fetchToken)).toBe(6);
  });

  test.each(["REPEATABLE READ", "SERIALIZABLE"])(
    "is not missing from a %s transaction: it responds up to the latest request that it sees",
    async (level) => {
      const begin = `BEGIN ISOLATION LEVEL ${level} READ ONLY; SELECT count(*) FROM reporting.dim_date`;
      await load(5);
      const first = await clock();
      await secondAfter(first);
      await reader.query(begin);
      const never = await refusal(first);
      expect(never.message).toMatch(/Instants before -infinity can be answered/);
      expect(never.hint).toMatch(/ask the primary in READ COMMITTED/);
      await reader.query("ROLLBACK");

      const { db } = bundle.store;
      const { sourceId } = bundle;
      const what = { meter: "traces", purpose: "load", groupBy: "project" } as const;
      const requested = { ...what, sourceId, window, workspaces: 1 };
      const fetchToken = await beginFetch(db, requested);
      await finishFetch(db, fetchToken, { outcome: "loaded" });
      await beginFetch(db, requested);
      const load6 = await standing(6);
      await secondAfter(load6.fetchToken);
      await reader.query(begin);
      await load6.commit();
      expect(await asOf(first)).toBe(5);
      await expect(asOf(load6.fetchToken)).rejects.toThrow(REFUSED);
      await reader.query("ROLLBACK");
      expect(await asOf(load6.fetchToken)).toBe(6);
    },
  );
});

test.each(["project", "workspace"])(
  "a response by %s is refused if its history is pruned while it is read",
  async (by) => {
    await load(5);
    const at = await clock();
    await secondAfter(at);
    const pruning = await connect();
    await pruning.query("BEGIN; LOCK TABLE usage.became_final");
    const query = one(reader, `SELECT count(*) FROM reporting_detail.usage_daily_as_of($1, $2)`, [at, by]);
    void query.catch(() => {});
    await poll(() =>
      one(bundle.reader, "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'relation' AND NOT granted"),
    );
    await pruning.query("UPDATE usage.source SET history_since = clock_timestamp(); COMMIT");
    await expect(query).rejects.toThrow(/the history begins at/);
  },
);
