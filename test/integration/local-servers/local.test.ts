import { existsSync } from "node:fs";
import { Redis } from "ioredis";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { checkReachable, openStore } from "../../../src/core/store/db/database.ts";
import { startLocalPostgres } from "../../../src/features/servers/postgres.ts";
import { resolveRedis, startLocalRedis } from "../../../src/features/servers/redis.ts";
import type { Service } from "../../../src/features/servers/start-server.ts";

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
