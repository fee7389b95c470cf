import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { table } from "../../src/cli/report/output.ts";
import { resolvePostgres, resolveRedis } from "../../src/local/servers/resolve.ts";
import { startStandin } from "../../src/local/standin/server.ts";
import { hand, measureOf } from "./measures.ts";

/**
 * `npm run bench:start [-- ROUNDS]`: how long commands and roles of the service take to start, and what memory they take at
 * rest, as the package's program and `npm run` start them. Linux only: it reads /proc.
 */

const CLI = fileURLToPath(new URL("../../src/cli.ts", import.meta.url));
const ROLES = ["worker", "scheduler", "http", "all"];
/** Until a process has given back what starting took: it looks every 30 s, and the system takes memory back a little later. */
const REST_MS = 65_000;
const rounds = Number(process.argv[2] ?? 7);

const postgres = await resolvePostgres();
const redis = await resolveRedis();
const dataStart = new Date(Date.now() - 7 * 86_400_000).toISOString().slice(0, 10);
const standin = await startStandin({ dataStart, scale: 0.2 });
const environment = {
  PATH: `${fileURLToPath(new URL("../../node_modules/.bin", import.meta.url))}:${process.env.PATH}`,
  ...{ DATABASE_URL: postgres.url, REDIS_URL: redis.url, HTTP_PORT: "0", USAGE_ENV_FILE: "/dev/null" },
  ...{ USAGE_BASE_URL: standin.url, USAGE_API_KEY: standin.apiKey, USAGE_DATA_START: dataStart },
};
try {
  for (const args of [["migrate"], ["sync", "--inline"], ["status"]]) await run(args);
  const commands = [];
  for (const args of [["--help"], ["config"], ["status"], ["coverage"]]) {
    await run(args);
    const all: Awaited<ReturnType<typeof run>>[] = [];
    for (let round = 0; round < rounds; round++) all.push(await run(args));
    const cpu = all.map(({ cpuMs }) => cpuMs);
    hand([measureOf(`start of \`${args.join(" ")}\``, "ms of CPU", cpu)]);
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
    hand([
      measureOf(
        `start of ${name}`,
        "ms of CPU",
        all.map(({ cpuMs }) => cpuMs),
      ),
      measureOf(`${name} at rest`, "MB", [restMb]),
    ]);
    const times = (["ms", "cpuMs", "readyMb"] as const).map((key) => shown(all, key));
    roles.push([`serve --role ${role}`, ...times, Math.round(restMb), Math.round(ownMb)]);
  }
  process.stdout.write(
    `${table(["command", "ms", "CPU ms", "peak MB"], commands)}\n\n` +
      `${table(["process", "ready ms", "CPU ms", "ready MB", "at rest MB", "of these its own"], roles)}\n\n` +
      `Medians of ${rounds} starts. Node ${process.version}. CPU is of the process alone, without Postgres. "Its own" is what it does ` +
      `not share with other processes: the rest is Node's program file.\n`,
  );
} finally {
  await standin.close();
  await redis.close();
  await postgres.close();
}

function shown<K extends string>(all: readonly Record<K, number>[], key: K): number {
  return Math.round(all.map((one) => one[key]).sort((a, b) => a - b)[all.length >> 1] as number);
}

/** A command to its end. Its processor time is what this process's ended children took meanwhile. */
async function run(args: readonly string[]) {
  const startedAt = performance.now();
  const before = await childrenCpuMs();
  const child = spawn(CLI, args, { env: environment, stdio: ["ignore", "ignore", "ignore"] });
  let peakMb = 0;
  const look = setInterval(() => {
    memoryOf(child).then(
      ({ peak }) => {
        peakMb = Math.max(peakMb, peak);
      },
      () => {},
    );
  }, 5);
  await once(child, "exit");
  clearInterval(look);
  return { ms: performance.now() - startedAt, cpuMs: (await childrenCpuMs()) - before, peakMb };
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
  const cpuMs = cpuOf(await readFile(`/proc/${child.pid}/stat`, "utf8"), [11, 12]);
  const { now: readyMb } = await memoryOf(child);
  if (restMs > 0) await pause(restMs);
  const { now: restMb, own: ownMb } = await memoryOf(child);
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  await gone;
  return { ms, cpuMs, readyMb, restMb, ownMb };
}

async function memoryOf({ pid }: ChildProcess): Promise<{ now: number; own: number; peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const field = (name: string) =>
    (Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) * 1024) / 1e6;
  return { now: field("VmRSS"), own: field("RssAnon"), peak: field("VmHWM") };
}

async function childrenCpuMs(): Promise<number> {
  return cpuOf(await readFile("/proc/self/stat", "utf8"), [13, 14]);
}

/** User and system time stand in hundredths of a second. */
function cpuOf(stat: string, fields: readonly number[]): number {
  const values = stat.split(") ")[1]?.split(" ") ?? [];
  return fields.reduce((sum, field) => sum + Number(values[field]) * 10, 0);
}
