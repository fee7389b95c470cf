import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { now } from "../../support/clock.ts";
import { pastPooler } from "../../support/database.ts";
import { poll } from "../../support/poll.ts";
import { openRelay } from "../../support/relay.ts";
import { daysAgo, logOf, request, setupService } from "../../support/service.ts";

/** A Postgres that cannot keep a response: it cannot be reached, or is read-only. A full disk is a fault of `npm run chaos`. */

test("while Postgres cannot keep a response the platform is not asked, and work goes on within 30 s afterwards", async () => {
  const bench = await setupService({
    days: 90,
    workspaces: 2,
    // Some four requests a second, so that work is left in every part of the test. The log shows that it looked for tasks.
    environment: { USAGE_RATE_LIMIT: "40", USAGE_SYNC_EVERY: "PT5M", USAGE_LOG_LEVEL: "debug" },
  });
  const proxy = await openRelay(bench.databaseUrl);
  const admin = new pg.Client({
    connectionString: await pastPooler(bench.databaseUrl),
    application_name: "test",
  });
  await admin.connect();
  onTestFinished(() => admin.end());
  const service = await bench.serve({ environment: { DATABASE_URL: proxy.through(bench.databaseUrl) } });
  await bench.createBackfill("--from", daysAgo(88), "--to", daysAgo(5), "--stride", "hour");

  const said = (of: Record<string, string>) =>
    logOf(service).filter((line) => Object.entries(of).every(([key, value]) => line[key] === value)).length;
  const loads = async () => {
    const { rows } = await admin.query<{ n: number }>(
      "SELECT count(*)::integer AS n FROM usage.fetch WHERE outcome = 'loaded'",
    );
    return rows[0]?.n ?? 0;
  };
  const goesOn = async (deadlineMs: number) => {
    const before = await loads();
    await poll(async () => (await loads()) > before + 1, { deadlineMs, everyMs: 100 });
  };
  const sitThrough = async (code: string, begin: () => unknown, end: () => unknown) => {
    await goesOn(60_000);
    await begin();
    await poll(() => said({ code }) > 0, { deadlineMs: 30_000, everyMs: 50 });
    // One response for each place of the worker may be under way.
    const before = bench.standin.requests.count;
    const sweeps = said({ name: "requeue" });
    await poll(() => said({ name: "requeue" }) >= sweeps + 2, { deadlineMs: 60_000, everyMs: 50 });
    expect(bench.standin.requests.count - before).toBeLessThanOrEqual(4);
    const health = await request(service, "/readyz");
    expect([health.status, await health.json()]).toMatchObject([
      503,
      { checks: { store: expect.stringContaining("Postgres") } },
    ]);
    await end();
    const since = performance.now();
    await goesOn(60_000);
    expect(performance.now() - since).toBeLessThan(30_000);
    await poll(() => said({ fault: code, msg: "store writes again" }) > 0);
    await poll(async () => (await request(service, "/readyz")).status === 200, { deadlineMs: 10_000 });
  };

  await sitThrough(
    "postgres_unreachable",
    () => proxy.cut({ newOnes: true }),
    () => void Object.assign(proxy, { accepts: "all" }),
  );

  const database = new URL(bench.databaseUrl).pathname.slice(1);
  const setReadOnly = async (value: "on" | "off") => {
    await admin.query("SET default_transaction_read_only = off");
    await admin.query(`ALTER DATABASE "${database}" SET default_transaction_read_only = ${value}`);
    await admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
  };
  await sitThrough(
    "postgres_read_only",
    () => setReadOnly("on"),
    () => setReadOnly("off"),
  );

  expect(await bench.count("SELECT count(*) FROM usage.failure")).toBe(0);
  const claims = "SELECT sum(open_claims) FROM usage.fetch_task WHERE state = 'waiting'";
  expect(await bench.count(claims)).toBe(0);
  const codes = logOf(service).flatMap(({ code }) => (typeof code === "string" ? [code] : []));
  expect(codes).not.toContain("failed");
  const minutes = Math.ceil((now() - Date.parse(String(logOf(service)[0]?.time))) / 60_000);
  for (const code of new Set(codes)) {
    expect(codes.filter((one) => one === code).length).toBeLessThanOrEqual(20 * minutes);
  }
});
