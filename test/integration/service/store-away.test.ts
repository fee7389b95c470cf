import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { startLocalPostgres } from "../../../src/local/servers/local-postgres.ts";
import { openStore } from "../../../src/store/db/database.ts";
import { migrate } from "../../../src/store/db/migrate.ts";
import { poll } from "../../support/poll.ts";
import { ask, daysAgo, logOf, setupService, startRedis } from "../../support/service.ts";

/** A Postgres that cannot keep an answer: refused connections, read-only, a full disk. */

/** Mounts a small disk; undefined where this machine does not allow it. */
function mountSmallDisk(): string | undefined {
  const dir = mkdtempSync(join(tmpdir(), "usage-etl-disk-"));
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=400m,mode=755", "tmpfs", dir]);
  onTestFinished(() => {
    spawnSync("umount", ["-l", dir]);
    rmSync(dir, { recursive: true, force: true });
  });
  return status === 0 ? dir : undefined;
}

/** A port of this host that leads to another, and refuses connections while it is closed. */
async function startDoor(port: number) {
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  const listen = (at: number) => new Promise<void>((done) => server.listen(at, "127.0.0.1", done));
  await listen(0);
  const { port: own } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    for (const socket of open) socket.destroy();
  };
  onTestFinished(close);
  return { port: own, close, open: () => listen(own) };
}

async function setupServers(base?: string) {
  const { PATH = "" } = process.env;
  const postgres = await startLocalPostgres({ base, say: () => {}, env: { PATH } });
  if (postgres === undefined) return undefined;
  onTestFinished(() => postgres.close());
  // The test looks past the door.
  const store = openStore({ url: postgres.url });
  onTestFinished(() => store.close());
  await migrate(store);
  const admin = new pg.Client({ connectionString: postgres.url, application_name: "test" });
  await admin.connect();
  onTestFinished(() => admin.end());
  const url = new URL(postgres.url);
  const door = await startDoor(Number(url.port));
  url.port = String(door.port);
  return { store, admin, door, databaseUrl: url.href, redisUrl: await startRedis() };
}

test("while Postgres cannot keep an answer the platform is not asked, and work goes on within 30 s afterwards", async (context) => {
  const disk = mountSmallDisk();
  const servers = await setupServers(disk);
  if (servers === undefined) return context.skip("no Postgres can be started here");
  const { admin, door } = servers;
  const bench = await setupService({
    days: 90,
    workspaces: 2,
    // Answers large enough to fill the room that a full disk leaves.
    standin: { scale: 1 },
    // Some four requests a second, so that work is left in every part of the test.
    environment: {
      USAGE_RATE_LIMIT: "40",
      USAGE_SYNC_EVERY: "PT5M",
      USAGE_HOURLY_FOR: "P1D",
      // Shows that it looked for tasks, also where there are none.
      USAGE_LOG_LEVEL: "debug",
    },
    servers,
  });
  const service = await bench.serve();
  await bench.enterBackfill("--from", daysAgo(88), "--to", daysAgo(5), "--stride", "hour");

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
    // One answer for each place of the worker may be under way.
    const before = bench.standin.requests.count;
    // It comes every ten seconds, and fails or not.
    const sweeps = said({ name: "requeue" });
    await poll(() => said({ name: "requeue" }) >= sweeps + 2, { deadlineMs: 60_000, everyMs: 50 });
    expect(bench.standin.requests.count - before).toBeLessThanOrEqual(4);
    const health = await ask(service, "/readyz");
    expect([health.status, await health.json()]).toMatchObject([
      503,
      { checks: { store: expect.stringContaining("Postgres: ") } },
    ]);
    await end();
    const since = performance.now();
    await goesOn(60_000);
    expect(performance.now() - since).toBeLessThan(30_000);
    await poll(() => said({ fault: code, msg: "store writes again" }) > 0);
    await poll(async () => (await ask(service, "/readyz")).status === 200, { deadlineMs: 10_000 });
  };

  await sitThrough("postgres_unreachable", door.close, door.open);

  const endSessions =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'usage-etl'";
  const setReadOnly = async (value: "on" | "off") => {
    await admin.query("SET default_transaction_read_only = off");
    await admin.query(`ALTER DATABASE postgres SET default_transaction_read_only = ${value}`);
    await admin.query(endSessions);
  };
  await sitThrough(
    "postgres_read_only",
    () => setReadOnly("on"),
    () => setReadOnly("off"),
  );

  if (disk !== undefined) {
    const ballast = join(disk, "ballast");
    const fill = async () => {
      // A log that has to begin a file on a full disk would stop Postgres itself.
      await admin.query("SELECT pg_switch_wal()");
      await admin.query("CHECKPOINT");
      const { bavail, bsize } = statfsSync(disk);
      writeFileSync(ballast, Buffer.alloc(bavail * bsize - 300_000));
    };
    await sitThrough("postgres_full", fill, () => rmSync(ballast));
  }

  expect(await bench.count("SELECT count(*) FROM usage.failure")).toBe(0);
  const claims = "SELECT sum(open_claims) FROM usage.fetch_task WHERE state = 'waiting'";
  expect(await bench.count(claims)).toBe(0);
  const codes = logOf(service).flatMap(({ code }) => (typeof code === "string" ? [code] : []));
  expect(codes).not.toContain("failed");
  const minutes = Math.ceil((Date.now() - Date.parse(String(logOf(service)[0]?.time))) / 60_000);
  for (const code of new Set(codes)) {
    expect(codes.filter((one) => one === code).length).toBeLessThanOrEqual(20 * minutes);
  }
});
