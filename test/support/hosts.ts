import { spawnSync } from "node:child_process";
import { appendFileSync, writeFileSync } from "node:fs";
import { sql } from "kysely";
import { onTestFinished } from "vitest";
import { openStore } from "../../src/core/store/db/database.ts";
import { migrate } from "../../src/core/store/migrate.ts";
import { startLocalPostgres } from "../../src/features/servers/postgres.ts";
import { startLocalRedis } from "../../src/features/servers/redis.ts";

/**
 * Hosts beside this one, as network namespaces: sessions between them and this one's servers are TCP from end to end,
 * so that a cut link is to both ends what it is on a real network. Needs root and iproute2.
 */

/** Differs by process: several runs may go on at once, and a killed run leaves its links behind. */
const NET = `10.${64 + ((process.pid >> 8) % 128)}.${process.pid % 256}`;

function ip(...args: string[]): void {
  const { status, stderr, error } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${error?.message ?? stderr.trim()}`);
}

/** Why this machine cannot create hosts; undefined where it can. */
export function withoutHosts(): string | undefined {
  const closers: (() => void)[] = [];
  try {
    createHost(63, (close) => closers.push(close));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    for (const close of closers.reverse()) close();
  }
}

export interface Host {
  readonly address: string;
  readonly within: readonly string[];
  cutOff(): void;
  reconnect(): void;
}

export function addHost(index: number): Host {
  return createHost(index, onTestFinished);
}

function createHost(index: number, onEnd: (close: () => void) => void): Host {
  const name = `usage-${process.pid}-${index}`;
  const link = `u${process.pid}h${index}`;
  const [here, there] = [`${NET}.${index * 4 + 1}`, `${NET}.${index * 4 + 2}`];
  onEnd(() => {
    spawnSync("ip", ["link", "del", link]);
    spawnSync("ip", ["netns", "del", name]);
  });
  ip("netns", "add", name);
  ip("link", "add", link, "type", "veth", "peer", "name", "up0", "netns", name);
  ip("addr", "add", `${here}/30`, "dev", link);
  ip("link", "set", link, "up");
  ip("-n", name, "addr", "add", `${there}/30`, "dev", "up0");
  ip("-n", name, "link", "set", "up0", "up");
  writeFileSync(`/proc/sys/net/ipv4/conf/${link}/route_localnet`, "1");
  ip("netns", "exec", name, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/up0/route_localnet");
  ip("-n", name, "route", "add", "127.0.0.1/32", "via", here, "dev", "up0", "src", there);
  return {
    address: there,
    within: ["ip", "netns", "exec", name],
    cutOff: () => ip("link", "set", link, "down"),
    reconnect: () => ip("link", "set", link, "up"),
  };
}

export async function startServersForHosts() {
  const { PATH = "" } = process.env;
  const input = { say: () => {}, env: { PATH } };
  const [postgres, redis] = await Promise.all([startLocalPostgres(input), startLocalRedis(input)]);
  for (const service of [postgres, redis]) onTestFinished(() => service.close());
  const store = openStore({ url: postgres.url });
  onTestFinished(() => store.close());
  const { rows } = await sql<{ file: string }>`select current_setting('hba_file') as file`.execute(store.db);
  appendFileSync(rows[0]?.file as string, `host all all ${NET}.0/24 scram-sha-256\n`);
  await sql`select pg_reload_conf()`.execute(store.db);
  await migrate(store);
  return { store, databaseUrl: postgres.url, redisUrl: redis.url };
}
