import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { UnreachableError } from "../../../src/core/base/errors.ts";
import { checkReachable, openStore } from "../../../src/core/store/db/database.ts";
import { pingPostgres, resolvePostgres, startLocalPostgres } from "../../../src/features/servers/postgres.ts";
import { pingRedis, resolveRedis, startLocalRedis } from "../../../src/features/servers/redis.ts";
import { type Service, startServer } from "../../../src/features/servers/start-server.ts";
import { poll } from "../../support/poll.ts";
import { temporaryFolder } from "../../support/temporary.ts";

// Local servers, even if DATABASE_URL and REDIS_URL name others.
const env: NodeJS.ProcessEnv = { ...process.env, DATABASE_URL: undefined, REDIS_URL: undefined };
const said: string[] = [];
const input = { say: (line: string) => void said.push(line), env };

test("a temporary Postgres listens on 127.0.0.1 only, takes further settings, and is removed with its data on close", async () => {
  const service = await started(startLocalPostgres({ ...input, settings: ["timezone=America/St_Johns"] }));
  const shown = await query<Record<string, string>>(
    service,
    `SELECT current_setting('listen_addresses') AS listens, current_setting('unix_socket_directories') AS sockets,
            current_setting('TimeZone') AS zone, current_setting('data_directory') AS dir, 'a' < 'B' AS english`,
  );
  expect(shown).toMatchObject({ listens: "127.0.0.1", sockets: "", zone: "America/St_Johns", english: true });
  expect(existsSync(String(shown?.dir))).toBe(true);
  await service.close();
  expect(existsSync(String(shown?.dir))).toBe(false);
  await expect(query(service, "SELECT 1")).rejects.toThrow("ECONNREFUSED");
});

test("a temporary Redis listens on 127.0.0.1 only, never evicts, and is removed on close", async () => {
  const service = await started(startLocalRedis(input));
  const client = new Redis(service.url, { retryStrategy: null });
  const shown = await client.config("GET", "bind", "maxmemory-policy", "appendonly", "dir");
  await client.quit();
  const facts = Object.fromEntries(
    Array.from({ length: 4 }, (_, at) => shown.slice(2 * at, 2 * at + 2)),
  ) as Record<string, string>;
  expect(facts).toMatchObject({ bind: "127.0.0.1", "maxmemory-policy": "noeviction", appendonly: "no" });
  await service.close();
  expect(existsSync(String(facts.dir))).toBe(false);
});

const KINDS = {
  Postgres: { start: startLocalPostgres, resolve: resolvePostgres, variable: "DATABASE_URL" },
  Redis: { start: startLocalRedis, resolve: resolveRedis, variable: "REDIS_URL" },
};

test.each(["Postgres", "Redis"] as const)("a named %s is used as it is and keeps running", async (kind) => {
  const { start, resolve, variable } = KINDS[kind];
  const server = await started(start(input));
  const named = () => resolve({ env: { ...env, [variable]: server.url } });
  await (await named()).close();
  expect(await named()).toMatchObject({ url: server.url, origin: "named" });
  await (kind === "Postgres" ? pingPostgres : pingRedis)(server.url);
});

test("a wrong password is reported as such, without it", async () => {
  const [postgres, redis] = await Promise.all([
    started(startLocalPostgres(input)),
    started(startLocalRedis(input)),
  ]);
  const wrong = ({ url }: Service) => Object.assign(new URL(url), { password: "wrong-password" }).href;
  const store = openStore({ url: wrong(postgres) });
  onTestFinished(() => store.close());
  const message = expect.not.stringContaining("wrong-password");
  await expect(checkReachable(store)).rejects.toMatchObject({ code: "postgres_refused", message });
  const refused = resolveRedis({ env: { ...env, REDIS_URL: wrong(redis) } });
  await expect(refused).rejects.toMatchObject({ code: "redis_refused", message });
});

test("a server that does not stop in time is killed", async () => {
  const pidFile = join(temporaryFolder(), "pid");
  const program = `trap "" TERM; echo $$ >"${pidFile}"; while :; do sleep 1; done`;
  const ping = async () => expect(existsSync(pidFile)).toBe(true);
  const at = () => ({ secrets: "", command: ["/bin/sh", "-c", program], url: "" });
  const service = await startServer({ name: "Redis", signal: "TERM", at, ping, stopMs: 300 });
  const pid = Number(readFileSync(pidFile, "utf8"));
  await service.close();
  const state = () => spawnSync("ps", ["-o", "stat=", "-p", `${pid}`], { encoding: "utf8" }).stdout;
  await poll(() => /^(Z.*)?$/.test(state().trim()));
});

test("without any Redis, one message says what to set and what to install", async () => {
  const error = await resolveRedis({ env: { PATH: "/nowhere" } }).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UnreachableError);
  expect(error).toMatchObject({
    code: "redis_unreachable",
    message: expect.stringMatching(
      /REDIS_URL is not set.*Docker does not respond.*redis-server nor valkey-server/,
    ),
    next: expect.stringMatching(/Set REDIS_URL.*install/),
  });
});

async function started(starting: Promise<Service>): Promise<Service> {
  const service = await starting;
  onTestFinished(() => service.close());
  return service;
}

async function query<Row extends object>(service: Service, text: string): Promise<Row | undefined> {
  const client = new pg.Client(service.url);
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows[0];
  } finally {
    await client.end();
  }
}
