import { sql } from "kysely";
import { expect, test } from "vitest";
import { createMetrics } from "../../../src/service/http/metrics.ts";
import { storeNow } from "../../../src/store/load/fetch-ledger.ts";
import { usageEtl } from "../../support/cli.ts";
import { setupPages } from "../../support/pages.ts";
import { poll } from "../../support/poll.ts";
import { MAX_LAG_MS, setupReplica } from "../../support/replica.ts";
import { addSource, WORKSPACES } from "../../support/reporting.ts";
import { loadRows, windowOf } from "../../support/store.ts";

/** A real streaming replica, whose replay is paused. */

const [WORKSPACE] = WORKSPACES;
const OLD = ["/", "/coverage", "/usage", "/owners", "/differences", "/months", "/timeline", "/backfills"];
const NEW = [
  ...["/backfills/new?source=default", "/months/2026-03"],
  // Of a month that is open it says why, with 409.
  "/months/2026-03/close",
  `/cell?source=default&workspace=${WORKSPACE}&from=2026-03-01&to=2026-03-02`,
];
const STANDIN = { url: "http://platform.test", apiKey: "key-of-a-test" };
const FROM_REPLICA = /<p class="as-of"[^>]*data-lag="(\d+)"[^>]*>As of .*, from a replica<\/p>/;

async function setup(options?: Parameters<typeof setupReplica>[0]) {
  const bench = await setupReplica(options);
  const { store, primary, replica } = bench;
  const sourceId = await addSource(store, { slug: "default", workspaceIds: [WORKSPACE] });
  const load = (traces: number) =>
    loadRows(store, {
      ...{ sourceId, workspaceId: WORKSPACE, groupBy: "workspace" },
      window: windowOf("day", "2026-03-01", "2026-03-02"),
      rows: [["2026-03-01", WORKSPACE, traces]],
    });
  await load(4711);
  const pages = await setupPages(
    { databaseUrl: primary.url, standin: STANDIN, store },
    { services: { replica } },
  );
  const isUsed = (is = true) => poll(() => replica.seen().isUsed === is, { deadlineMs: 60_000 });
  await isUsed();
  const show = async (path: string) => {
    const { status, text } = await pages.get(path);
    const lag = FROM_REPLICA.exec(text)?.[1];
    return { status, text, lagMs: lag === undefined ? undefined : Number(lag) };
  };
  const usage = "/usage?source=default&from=2026-03-01&to=2026-03-02&by=workspace&per=day";
  return { ...bench, load, show, isUsed, usage };
}

test("pages read the replica and say how old they are; what is ordered from is read on the primary", async () => {
  const { show, load, pause, resume, usage, store, isUsed } = await setup();
  for (const path of OLD) {
    const { status, lagMs } = await show(path);
    expect([path, status, lagMs]).toEqual([path, 200, expect.any(Number)]);
  }
  for (const path of NEW) {
    const { status, lagMs } = await show(path);
    expect([path, status, lagMs]).toEqual([path, path.endsWith("/close") ? 409 : 200, undefined]);
  }

  await pause();
  await addSource(store, { slug: "later", workspaceIds: [WORKSPACES[1]] });
  await load(9000);
  const loadedAt = await storeNow(store.db);
  const old = await show(usage);
  expect(old.text).toContain("4,711");
  expect(old.text).not.toContain("9,000");
  const asOf = Number(/data-as-of="(\d+)"/.exec(old.text)?.[1]);
  expect(asOf).toBeLessThan(loadedAt);
  // What only the primary knows yet is not denied.
  expect((await show("/timeline?source=later")).status).toBe(200);

  // Older than the limit: the primary answers, with what was loaded.
  await isUsed(false);
  const now = await show(usage);
  expect(now).toMatchObject({ status: 200, lagMs: undefined });
  expect(now.text).toContain("9,000");
  await resume();
  await isUsed();
  const again = await show(usage);
  expect(again.lagMs).toBeLessThanOrEqual(MAX_LAG_MS);
  expect(again.text).toContain("9,000");
});

test("a replica that is away is not waited for; it is read again once it is back", async () => {
  const { show, standby, wire, replica, isUsed, logs } = await setup();
  // Open, and without an answer: the first page asks the primary after three seconds, the others at once.
  wire.decide = () => "swallow";
  for (const path of OLD) {
    expect(await show(path)).toMatchObject({ status: 200, lagMs: undefined });
    expect(replica.seen().isUsed).toBe(false);
  }
  wire.decide = () => "pass";
  wire.cut();
  await isUsed();
  expect((await show("/")).lagMs).toEqual(expect.any(Number));

  await standby.kill();
  for (const path of OLD) expect(await show(path)).toMatchObject({ status: 200, lagMs: undefined });
  await isUsed(false);
  await standby.start();
  await isUsed();
  expect((await show("/")).lagMs).toEqual(expect.any(Number));
  expect(logs.map(({ code, replica }) => code ?? replica)).toEqual([
    "used",
    ...["replica_unreachable", "used"],
    ...["replica_unreachable", "used"],
  ]);
});

test("while the primary is away, pages are old and say so, and metrics say that it is down", async () => {
  const { show, primary, replica, store, isUsed } = await setup();
  const metrics = createMetrics(
    store.db,
    async () => [],
    async () => [],
    replica,
  );
  const has = async (line: RegExp) => expect(await metrics.text()).toMatch(line);
  await has(/^usage_etl_database_up 1$/m);
  await has(/^usage_etl_replica_used 1$/m);
  await has(/^usage_etl_replica_lag_seconds \d/m);
  await has(/^usage_etl_last_success_timestamp_seconds\{.*source="default"/m);

  await primary.kill();
  await has(/^usage_etl_database_up 0$/m);
  await isUsed(false);
  const { status, lagMs = 0, text } = await show("/");
  expect(status).toBe(200);
  expect(lagMs).toBeGreaterThan(MAX_LAG_MS);
  expect(text).toContain("Postgres does not answer. This page is from a replica");
  // Nothing is ordered from what is old.
  for (const path of NEW) expect((await show(path)).status).toBe(503);
  await has(/^usage_etl_replica_used 0$/m);
  await primary.start();
  await isUsed();
  expect((await show("/")).text).not.toContain("does not answer");
});

test("what is read of a replica holds all that was committed before the time that it says", async () => {
  // Heartbeats between most commits, so that what is shown often ends near the time that it says.
  const { store, replica, pause, resume, isUsed } = await setup({ everyMs: 4 });
  const { db } = store;
  await store.transaction(({ client }) => client.query("CREATE TABLE usage.written (n integer)"));
  await isUsed();
  const committedAt: number[] = [];
  const read = () =>
    replica.read({ primary: db, mayBeOld: false }, async (reading) => {
      const { rows } = await sql<{ n: number }>`select count(*) as n from usage.written`.execute(reading.db);
      return { written: rows[0]?.n ?? 0, age: reading.age };
    });
  let fromReplica = 0;
  let missed = 0;
  const endsAt = performance.now() + 6_000;
  for (let round = 0; performance.now() < endsAt; round++) {
    if (round % 40 === 10) await pause();
    if (round % 40 === 20) await resume();
    await store.transaction(({ client }) => client.query(`INSERT INTO usage.written VALUES (${round})`));
    committedAt.push(await storeNow(db));
    const { written, age } = await read();
    if (age === undefined) {
      expect(written).toBe(committedAt.length);
      continue;
    }
    fromReplica++;
    missed += committedAt.length - written;
    // Both times are cut to milliseconds: within the same one the commit may have come after the heartbeat.
    const before = committedAt.filter((at) => at < age.asOf).length;
    if (written < before)
      expect.fail(`${written} rows are shown of ${before} that were committed before ${age.asOf}`);
    expect(age.lagMs).toBeLessThanOrEqual(MAX_LAG_MS);
  }
  await resume();
  // It was read, and it was behind.
  expect(fromReplica).toBeGreaterThan(50);
  expect(missed).toBeGreaterThan(0);
});

test("doctor says how soon the replica shows what is written, and that it does not", async () => {
  const { primary, standby, pause } = await setup();
  const replicaLine = async (url: string) => {
    const { stdout } = await usageEtl(["doctor", "--json"], {
      DATABASE_URL: primary.url,
      DATABASE_READ_URL: url,
      USAGE_BASE_URL: "http://127.0.0.1:9",
      USAGE_API_KEY: STANDIN.apiKey,
    });
    const checks = JSON.parse(stdout) as { check: string; status: string; code: string; finding: string }[];
    return checks.find(({ check }) => check === "replica");
  };
  expect(await replicaLine(standby.url)).toMatchObject({
    status: "pass",
    finding: expect.stringMatching(/^showed after .* what was written to the primary$/),
  });
  expect(await replicaLine(primary.url)).toMatchObject({ status: "warn", code: "replica_is_primary" });
  await pause();
  expect(await replicaLine(standby.url)).toMatchObject({
    ...{ status: "warn", code: "replica_behind" },
    finding: expect.stringMatching(/^The replica did not show within 5 s .* is of \d{4}-/),
  });
  await standby.kill();
  expect(await replicaLine(standby.url)).toMatchObject({ status: "warn", code: "postgres_unreachable" });
});
