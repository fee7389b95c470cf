import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { openStore } from "../../../src/core/store/db/database.ts";
import { migrate } from "../../../src/core/store/migrate.ts";
import {
  pingPostgres,
  postgresCommand,
  postgresPrograms,
  SERVER_USER,
} from "../../../src/features/servers/postgres.ts";
import { pingRedis, redisProgram } from "../../../src/features/servers/redis.ts";
import { freePort } from "../../../src/features/servers/start-server.ts";
import { clockVariables } from "../../support/cli.ts";
import { now } from "../../support/clock.ts";
import { buildClock } from "../../support/clock-library.ts";
import { poll } from "../../support/poll.ts";

/** Postgres and Redis that a test may kill, freeze and start again. They keep port, password and data. */

export const PASSWORD = "chaos-server-password";

const BASE = "/tmp";
const INPUT = { say: () => {}, env: { PATH: process.env.PATH ?? "" } };

export interface Server {
  readonly port: number;
  readonly dir: string;
  readonly url: string;
  start(): Promise<void>;
  kill(): Promise<void>;
  /** Alive, but it does nothing. */
  freeze(): void;
  thaw(): void;
}

interface ServerInput {
  readonly dir: string;
  readonly port: number;
  readonly url: string;
  readonly command: readonly string[];
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  readonly ping: (url: string) => Promise<void>;
}

function serverOf({ dir, port, url, command, user, ping }: ServerInput): Server {
  let child: ChildProcess | undefined;
  const [program = "", ...args] = command;
  const kill = async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    const children = childrenOf(child.pid as number);
    child.kill("SIGKILL");
    await gone;
    // A process of Postgres that is at work may still respond a moment after it.
    await poll(() => !children.some(isAlive), { deadlineMs: 30_000 });
  };
  onTestFinished(async () => {
    await kill();
    rmSync(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });
  return {
    dir,
    port,
    url,
    kill,
    start: async () => {
      const deadline = performance.now() + 60_000;
      const isUp = () =>
        ping(url).then(
          () => true,
          () => false,
        );
      // The processes of a killed Postgres end a moment after it, and a new one refuses to start until then.
      for (;;) {
        const log = openSync(join(dir, "server.log"), "a");
        const started = spawn(program, args, {
          cwd: "/",
          env: { LC_ALL: "C", ...clockVariables() },
          stdio: ["ignore", log, log],
          ...user,
        });
        child = started;
        for (; started.exitCode === null && performance.now() < deadline; await pause(20))
          if (await isUp()) return;
        if (performance.now() > deadline) throw new Error(`${program} does not start: see ${dir}/server.log`);
        await pause(100);
      }
    },
    freeze: () => void child?.kill("SIGSTOP"),
    thaw: () => void child?.kill("SIGCONT"),
  };
}

function childrenOf(parent: number): number[] {
  const pids = existsSync("/proc/self/stat") ? readdirSync("/proc").map(Number).filter(Number.isInteger) : [];
  return pids.filter((pid) => statOf(pid)?.parent === parent);
}

function isAlive(pid: number): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.state !== "Z";
}

function statOf(pid: number) {
  try {
    const [state = "", parent] =
      readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

/** Crashes must not lose what was committed, so commits are written. */
const DURABLE = ["fsync=off", "synchronous_commit=on", "max_connections=60", "shared_buffers=64MB"];

interface PostgresOptions {
  readonly base?: string;
  readonly standbyOf?: { readonly port: number };
  readonly settings?: readonly string[];
}

/** A migrated Postgres, not started. All of a run begin as copies of one cluster, so each can be a standby of another. */
export async function createPostgres({
  base = BASE,
  standbyOf,
  settings = [],
}: PostgresOptions = {}): Promise<Server> {
  const { template, programs } = await cluster();
  const dir = mkdtempSync(join(base, "usage-etl-chaos-postgres-"));
  if (SERVER_USER !== undefined) chownSync(dir, SERVER_USER.uid, SERVER_USER.gid);
  run("cp", "-a", join(template, "data"), dir);
  if (standbyOf !== undefined) {
    const data = join(dir, "data");
    writeFileSync(join(data, "standby.signal"), "");
    const from = `host=127.0.0.1 port=${standbyOf.port} user=postgres password=${PASSWORD}`;
    appendFileSync(join(data, "postgresql.auto.conf"), `primary_conninfo = '${from}'\n`);
    run("chown", "--reference", data, join(data, "standby.signal"));
  }
  const port = await freePort();
  const command = commandOf(programs, dir, port, settings);
  return serverOf({ dir, port, url: urlOf(port), command, user: SERVER_USER, ping: pingPostgres });
}

function urlOf(port: number): string {
  return `postgresql://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
}

function commandOf(programs: string, dir: string, port: number, settings: readonly string[] = []): string[] {
  const place = { dir, port, password: PASSWORD, secretFile: join(dir, "password") };
  return postgresCommand(programs, place, [...DURABLE, ...settings]);
}

let made: ReturnType<typeof createCluster> | undefined;

function cluster() {
  made ??= createCluster();
  return made;
}

async function createCluster() {
  const programs = await postgresPrograms(INPUT);
  const template = mkdtempSync(join(BASE, "usage-etl-chaos-cluster-"));
  process.on("exit", () => rmSync(template, { recursive: true, force: true }));
  const password = join(template, "password");
  writeFileSync(password, PASSWORD);
  for (const path of [template, password])
    if (SERVER_USER !== undefined) chownSync(path, SERVER_USER.uid, SERVER_USER.gid);
  const port = await freePort();
  const url = urlOf(port);
  const [program = "", ...args] = commandOf(programs, template, port);
  const server = spawn(program, args, { cwd: "/", stdio: "ignore", ...SERVER_USER });
  await poll(() => pingPostgres(url).then(() => true), { deadlineMs: 60_000, everyMs: 20 });
  const store = openStore({ url });
  await migrate(store);
  await store.close();
  const gone = once(server, "exit");
  server.kill("SIGINT");
  await gone;
  return { template, programs };
}

export async function createRedis({ aof = true }: { aof?: boolean } = {}): Promise<Server> {
  const program = await redisProgram(INPUT);
  const dir = mkdtempSync(join(BASE, "usage-etl-chaos-redis-"));
  const port = await freePort();
  const config = join(dir, "redis.conf");
  const lines = [
    "bind 127.0.0.1",
    `port ${port}`,
    `requirepass ${PASSWORD}`,
    `dir ${dir}`,
    'save ""',
    `appendonly ${aof ? "yes" : "no"}`,
    "maxmemory-policy noeviction",
  ];
  writeFileSync(config, `${lines.join("\n")}\n`);
  const url = `redis://default:${PASSWORD}@127.0.0.1:${port}`;
  return serverOf({ dir, port, url, command: [program, config], ping: pingRedis });
}

export function cutAppendOnlyFile(server: Server, bytes: number): void {
  const folder = join(server.dir, "appendonlydir");
  const [last] = readdirSync(folder)
    .filter((name) => name.endsWith(".incr.aof"))
    .sort()
    .reverse();
  if (last === undefined) throw new Error("no append-only file");
  const path = join(folder, last);
  truncateSync(path, Math.max(0, statSync(path).size - bytes));
}

/** The folder of a disk that holds so much, as mount's option says it. */
export function smallDisk(size: string): string {
  const disk = mkdtempSync(join(BASE, "usage-etl-chaos-disk-"));
  run("mount", "-t", "tmpfs", "-o", `size=${size},mode=0777`, "none", disk);
  onTestFinished(() => {
    spawnSync("umount", ["-l", disk]);
    rmSync(disk, { recursive: true, force: true });
  });
  return disk;
}

export function fill(file: string): void {
  spawnSync("dd", ["if=/dev/zero", `of=${file}`, "bs=64k", "conv=notrunc", "oflag=append"]);
  spawnSync("dd", ["if=/dev/zero", `of=${file}`, "bs=1k", "conv=notrunc", "oflag=append"]);
}

function run(...command: string[]): void {
  const [program = "", ...args] = command;
  const { status, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command.join(" ")}: ${error?.message ?? stderr}`);
}

export function clockOff(seconds: number): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-chaos-clock-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  const library = buildClock(folder);
  if (library === undefined) throw new Error("the clock cannot be compiled: install a C compiler (`cc`)");
  return { LD_PRELOAD: library, CLOCK_OFFSET: `${Math.round(seconds)}` };
}

/** Moves the clock of every process that the test starts from here on, so that it shows `at` (epoch milliseconds) now. */
export function moveClocks(at: number): void {
  const moved = clockOff((at - now()) / 1_000);
  Object.assign(process.env, moved);
  onTestFinished(() => {
    for (const name of Object.keys(moved)) delete process.env[name];
  });
}
