import { rmSync, writeFileSync } from "node:fs";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { usageEtl } from "../../support/cli.ts";
import { now } from "../../support/clock.ts";
import { pastPooler } from "../../support/database.ts";
import { poll } from "../../support/poll.ts";
import { secretFolder } from "../../support/secret-folder.ts";
import { daysAgo, logOf, request, setupService } from "../../support/service.ts";

/** A login of the test's own on the server, whose password it may change. */
async function loginOn(databaseUrl: string, password: string) {
  const admin = new pg.Client({ connectionString: databaseUrl, application_name: "test" });
  await admin.connect();
  const role = `rotated_${now().toString(36)}`;
  await admin.query(`CREATE ROLE ${role} LOGIN SUPERUSER PASSWORD '${password}'`);
  const endSessions = () =>
    admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [role]);
  onTestFinished(async () => {
    await endSessions();
    await admin.query(`DROP ROLE ${role}`);
    await admin.end();
  });
  const urlWith = (given: string) => {
    const url = new URL(databaseUrl);
    [url.username, url.password] = [role, given];
    return url.href;
  };
  return { urlWith, endSessions, change: (to: string) => admin.query(`ALTER ROLE ${role} PASSWORD '${to}'`) };
}

test("rotated passwords, users and keys stop the service only until their files follow", async () => {
  const bench = await setupService({
    days: 40,
    workspaces: 1,
    environment: { USAGE_RATE_LIMIT: "100", USAGE_SYNC_EVERY: "PT30M" },
  });
  const login = await loginOn(await pastPooler(bench.databaseUrl), "first-password");
  const redisLogin = async (name: string, password: string) => {
    await bench.redis.acl("SETUSER", name, "on", "resetpass", `>${password}`, "~*", "&*", "+@all");
    const url = new URL(bench.redisUrl);
    [url.username, url.password] = [name, password];
    return url.href;
  };
  const secrets = secretFolder();
  secrets.put("url", login.urlWith("first-password"));
  secrets.put("redis", await redisLogin("ada", "first-of-redis"));
  secrets.put("key", bench.standin.apiKey);
  const { DATABASE_URL: _url, USAGE_API_KEY: key = "", ...rest } = bench.environment;
  const service = await bench.serve({
    environment: {
      ...rest,
      DATABASE_URL: "",
      USAGE_API_KEY: "",
      REDIS_URL: "",
      DATABASE_URL_FILE: secrets.path("url"),
      REDIS_URL_FILE: secrets.path("redis"),
      USAGE_API_KEY_FILE: secrets.path("key"),
    },
  });
  await bench.createBackfill("--from", daysAgo(39), "--to", daysAgo(5), "--stride", "hour");
  const loads = () => bench.count("SELECT count(*) FROM usage.fetch WHERE outcome = 'loaded'");
  // With work of its own: a fast machine may have done the rest.
  const again = ["--from", daysAgo(8), "--to", daysAgo(5), "--reprocess", "all", "--detach"];
  const goesOn = async () => {
    const before = await loads();
    const environment = { ...bench.environment, USAGE_API_KEY: bench.standin.access.apiKey };
    expect((await usageEtl(["backfill", ...again], environment)).code).toBe(0);
    await poll(async () => (await loads()) > before + 1, { deadlineMs: 40_000, everyMs: 100 });
  };
  const said = (code: string) => logOf(service).filter((line) => line.code === code).length;
  await goesOn();

  await login.change("second-password");
  await login.endSessions();
  await poll(() => said("postgres_login_refused") > 0, { deadlineMs: 30_000 });
  const isAway = async (why: string) => {
    const away = await request(service, "/readyz");
    expect([away.status, await away.text()]).toEqual([503, expect.stringContaining(why)]);
  };
  const isBack = () =>
    poll(async () => (await request(service, "/readyz")).status === 200, { deadlineMs: 30_000 });
  await isAway("password authentication");
  secrets.put("url", login.urlWith("second-password"));
  await goesOn();
  await isBack();

  const next = await redisLogin("grace", "second-of-redis");
  await bench.redis.acl("DELUSER", "ada");
  await poll(() => said("redis_refused") > 0, { deadlineMs: 30_000 });
  await isAway("refuses the login");
  secrets.put("redis", next);
  await goesOn();
  await isBack();

  bench.standin.access.apiKey = "rotated-key-1234567890";
  const refused = "SELECT count(*) FROM usage.source WHERE refused_at IS NOT NULL";
  await poll(async () => (await bench.count(refused)) > 0, { deadlineMs: 30_000 });
  secrets.put("key", "rotated-key-1234567890");
  // Responses that came before may still be loaded meanwhile.
  await poll(async () => (await bench.count(refused)) === 0, { deadlineMs: 30_000 });
  await goesOn();

  writeFileSync(secrets.path("key"), "");
  rmSync(secrets.path("url"));
  await poll(() => said("secret_unreadable") === 2, { deadlineMs: 20_000 });
  await goesOn();
  expect((await request(service, "/readyz")).status).toBe(200);

  expect(await bench.count("SELECT count(*) FROM usage.failure")).toBe(0);
  expect(await bench.count("SELECT count(*) FROM usage.fetch_task WHERE state = 'failed'")).toBe(0);
  expect(await bench.count("SELECT coalesce(max(open_claims), 0) FROM usage.fetch_task")).toBeLessThan(2);
  expect(service.process.exitCode).toBeNull();
  const output = service.said.stdout + service.said.stderr;
  const passwords = ["first-password", "second-password", "first-of-redis", "second-of-redis"];
  for (const secret of [...passwords, key, "rotated-key-1234567890"]) expect(output).not.toContain(secret);
});
