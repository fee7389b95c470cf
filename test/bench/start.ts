import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { resolveRedis } from "../../src/features/servers/redis.ts";
import { startStandin } from "../../src/features/standin/server.ts";
import { table } from "../../src/terminal/output.ts";
import { now } from "../support/clock.ts";
import { resolveTestPostgres } from "../support/test-postgres.ts";
import { hand, median } from "./harness.ts";
import { CLI, countedOf, end, memoryOf } from "./processes.ts";

/**
 * `npm run bench:start [-- ROUNDS]`: how long commands and roles of the service take to start, what memory they take at rest, and
 * how many commands an idle service sends to Redis, since some servers bill by command. Linux only: it reads /proc.
 */

const ROLES = ["worker", "scheduler", "http", "all"];
/** Until a process has given back what starting took: it looks every 30 s, and the system takes memory back a little later. */
const REST_MS = 65_000;
const IDLE_MS = 60_000;
const rounds = Number(process.argv[2] ?? 7);

const postgres = await resolveTestPostgres();
const redis = await resolveRedis();
const dataStart = new Date(now() - 7 * 86_400_000).toISOString().slice(0, 10);
const standin = await startStandin({ dataStart, scale: 0.2 });
const environment = {
  PATH: `${fileURLToPath(new URL("../../node_modules/.bin", import.meta.url))}:${process.env.PATH}`,
  DATABASE_URL: postgres.url,
  REDIS_URL: redis.url,
  HTTP_PORT: "0",
  USAGE_ENV_FILE: "/dev/null",
  USAGE_BASE_URL: standin.url,
  USAGE_API_KEY: standin.apiKey,
  USAGE_DATA_START: dataStart,
};
try {
  for (const args of [["migrate"], ["sync", "--inline"], ["status"]]) await run(args);
  const commands = [];
  for (const args of [["--help"], ["config"], ["status"], ["coverage"]]) {
    await run(args);
    const all: Awaited<ReturnType<typeof run>>[] = [];
    for (let round = 0; round < rounds; round++) all.push(await run(args));
    const cpu = all.map(({ cpuMs }) => cpuMs);
    hand(`start of \`${args.join(" ")}\``, "ms of CPU", cpu);
    commands.push([args.join(" "), ...(["ms", "cpuMs", "peakMb"] as const).map((key) => shown(all, key))]);
  }
  const roles = [];
  for (const role of ROLES) {
    await serve(role, 0);
    const ready = [];
    for (let round = 1; round < rounds; round++) ready.push(await serve(role, 0));
    const rested = await serve(role, REST_MS);
    const { restMb = 0, ownMb = 0 } = rested;
    const all = [...ready, rested];
    const name = `\`serve --role ${role}\``;
    const cpu = all.map(({ cpuMs }) => cpuMs);
    hand(`start of ${name}`, "ms of CPU", cpu);
    hand(`${name} at rest`, "MB", [restMb]);
    const times = (["ms", "cpuMs", "readyMb"] as const).map((key) => shown(all, key));
    roles.push([`serve --role ${role}`, ...times, Math.round(restMb), Math.round(ownMb)]);
  }
  const sent = await commandsASecond();
  hand("Redis commands of an idle service with a source", "a second", [sent]);
  process.stdout.write(
    `${table(["command", "ms", "CPU ms", "peak MB"], commands)}\n\n` +
      `${table(["process", "ready ms", "CPU ms", "ready MB", "at rest MB", "of these its own"], roles)}\n\n` +
      `An idle service with a source sends ${sent.toFixed(2)} commands a second to Redis.\n` +
      `Medians of ${rounds} starts. Node ${process.version}. CPU is of the process alone, without Postgres. "Its own" is what it does ` +
      `not share with other processes: the rest is Node's program file.\n`,
  );
} finally {
  await standin.close();
  await redis.close();
  await postgres.close();
}

function shown<K extends string>(all: readonly Record<K, number>[], key: K): number {
  return Math.round(median(all.map((one) => one[key])));
}

/** A command to its end. Its processor time is what this process's ended children took meanwhile. */
async function run(args: readonly string[]) {
  const startedAt = performance.now();
  const before = countedOf("self").ended;
  const child = spawn(CLI, args, { env: environment, stdio: ["ignore", "ignore", "ignore"] });
  let peakMb = 0;
  const look = setInterval(() => {
    peakMb = Math.max(peakMb, memoryOf(child).peak);
  }, 5);
  await once(child, "exit");
  clearInterval(look);
  return { ms: performance.now() - startedAt, cpuMs: countedOf("self").ended - before, peakMb };
}

/** The service, until it says that it serves, and for `restMs` more. */
async function serve(role: string, restMs: number) {
  const startedAt = performance.now();
  const child = spawn(CLI, ["serve", "--role", role], {
    env: { ...environment, USAGE_LOG_LEVEL: "warn" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  for await (const piece of child.stderr) if (/serving as/.test(String(piece))) break;
  const ms = performance.now() - startedAt;
  const cpuMs = countedOf(child.pid).own;
  const { now: readyMb } = memoryOf(child);
  if (restMs > 0) await pause(restMs);
  const { now: restMb, own: ownMb } = memoryOf(child);
  await end(child);
  return { ms, cpuMs, readyMb, restMb, ownMb };
}

/** Commands that all roles together send to Redis while nothing is to be done. What scripts run inside Redis does not count. */
async function commandsASecond(): Promise<number> {
  const client = new Redis(redis.url);
  const child = spawn(CLI, ["serve"], { env: environment, stdio: "ignore" });
  await pause(REST_MS);
  let sent = 0;
  const monitor = await client.monitor();
  monitor.on("monitor", (_time: string, _command: string[], source: string) => {
    if (source !== "lua") sent++;
  });
  await pause(IDLE_MS);
  monitor.disconnect();
  client.disconnect();
  await end(child);
  return sent / (IDLE_MS / 1000);
}
