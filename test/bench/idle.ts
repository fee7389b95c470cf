import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { table } from "../../src/cli/report/output.ts";
import { resolvePostgres, resolveRedis } from "../../src/local/servers/resolve.ts";
import { startStandin } from "../../src/local/standin/server.ts";
import { openStore } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { hand, value } from "./harness.ts";
import { startService } from "./processes.ts";

/**
 * `npm run bench:idle [-- SECONDS]`: what a service that has nothing to do asks of Redis, over a minute: `serve` with all
 * roles and one source whose usage is loaded. Servers that bill by command count what clients send; `INFO commandstats` also
 * counts what scripts run inside Redis.
 */

const seconds = Number(process.argv[2] ?? 60);
const WORK = "SELECT count(*) FROM usage.fetch_task WHERE state IN ('waiting', 'queued')";
const LOADED = "SELECT count(*) FROM usage.coverage";

const postgres = await resolvePostgres();
const redis = await resolveRedis();
const dataStart = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10);
const standin = await startStandin({ dataStart, scale: 0.2 });
const client = new Redis(redis.url);
const store = openStore({ url: postgres.url });
await migrate(store);
await store.close();
const service = startService({
  DATABASE_URL: postgres.url,
  REDIS_URL: redis.url,
  USAGE_BASE_URL: standin.url,
  USAGE_API_KEY: standin.apiKey,
  USAGE_DATA_START: dataStart,
});

async function calls(): Promise<Map<string, number>> {
  const stats = await client.info("commandstats");
  return new Map(
    [...stats.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)].map(([, name = "", n]) => [name, Number(n)]),
  );
}

try {
  while ((await value(postgres.url, LOADED)) === 0 || (await value(postgres.url, WORK)) > 0) await pause(500);
  await pause(5_000);
  const sent = new Map<string, number>();
  const monitor = await client.monitor();
  monitor.on("monitor", (_time: string, [name = ""]: string[], source: string) => {
    if (source !== "lua") sent.set(name.toLowerCase(), (sent.get(name.toLowerCase()) ?? 0) + 1);
  });
  const before = await calls();
  await pause(seconds * 1000);
  const after = await calls();
  monitor.disconnect();
  sent.delete("info");
  const rows = [...after]
    .map(([name, n]) => [name, sent.get(name) ?? 0, n - (before.get(name) ?? 0)] as const)
    .filter(([name, , n]) => n > 0 && !/^(info|monitor)$/.test(name))
    .sort((a, b) => b[2] - a[2]);
  const sum = (column: 1 | 2) => rows.reduce((all, row) => all + row[column], 0);
  process.stdout.write(
    `${table(
      ["command", "sent by clients", "with those in scripts"],
      rows.map((row) => [...row]),
    )}\n`,
  );
  const rate = (total: number) =>
    `${(total / seconds).toFixed(2)} a second, ${Math.round((total / seconds) * 3600).toLocaleString("en-US")} an hour`;
  hand("Redis commands of an idle service with a source", "a second", [sum(1) / seconds]);
  process.stdout.write(`\nsent by clients: ${rate(sum(1))}\nwith those in scripts: ${rate(sum(2))}\n`);
} finally {
  await service.close();
  client.disconnect();
  await standin.close();
  await redis.close();
  await postgres.close();
}
