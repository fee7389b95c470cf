import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { UsageError } from "../../../src/errors.ts";
import { startLocalPostgres } from "../../../src/local/servers/local-postgres.ts";
import { resolvePostgres } from "../../../src/local/servers/resolve.ts";
import { poll } from "../../support/poll.ts";

// A server ends with its owner, however the owner ends. Kept data of Postgres stays for the next owner.

const OWNER = join(import.meta.dirname, "../../support/services-owner.ts");
const env: NodeJS.ProcessEnv = { ...process.env, DATABASE_URL: undefined, REDIS_URL: undefined };

interface Owned {
  readonly process: ChildProcess;
  readonly postgres: string;
  readonly redis: string;
}

let folder: string;
let owners: ChildProcess[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "usage-etl-test-"));
  // If the tests run as root, the user postgres must be able to enter it.
  chmodSync(folder, 0o755);
  owners = [];
});

afterEach(async () => {
  for (const owner of owners) owner.kill("SIGKILL");
  // An owner's watchdogs may still be at work in the folder.
  await poll(() => {
    rmSync(folder, { recursive: true, force: true });
    return !existsSync(folder);
  });
});

test("SIGKILL of the owner stops both servers and removes temporary data", async () => {
  const owned = await owner();
  const [{ data_directory }] = (await inPostgres(owned.postgres, "SHOW data_directory")) as [
    { data_directory: string },
  ];
  const [, redisDir] = (await inRedis(owned.redis, (redis) => redis.config("GET", "dir"))) as [
    string,
    string,
  ];
  owned.process.kill("SIGKILL");
  await gone(owned);
  await poll(() => !existsSync(data_directory) && !existsSync(redisDir));
});

test("the next start after SIGKILL of the owner finds the written data", async () => {
  const owned = await owner(folder);
  await write(owned);
  owned.process.kill("SIGKILL");
  // At once: the servers may still be stopping.
  const postgres = await resolvePostgres(kept());
  expect(await read(postgres.url)).toEqual([{ n: 42 }]);
  await postgres.close();
});

test("the next start recovers after SIGKILL of everything, including the server", async () => {
  const owned = await owner(folder);
  await write(owned);
  const pid = serverPid();
  for (const one of [owned.process.pid as number, parentOf(pid), pid]) process.kill(one, "SIGKILL");
  const postgres = await resolvePostgres(kept());
  expect(await read(postgres.url)).toEqual([{ n: 42 }]);
  await postgres.close();
});

test.runIf(process.platform === "linux")(
  "a server whose watchdog was killed too is stopped by the next start",
  async () => {
    const owned = await owner(folder);
    await write(owned);
    for (const pid of [owned.process.pid as number, parentOf(serverPid())]) process.kill(pid, "SIGKILL");
    const said: string[] = [];
    const say = (line: string) => void said.push(line);
    const postgres = await resolvePostgres({ ...kept(), say });
    expect(said.join("\n")).toMatch(/Waiting for the Postgres of an earlier run/);
    expect(await read(postgres.url)).toEqual([{ n: 42 }]);
    await postgres.close();
  },
);

test("a second owner of a data directory gets the process id of the first, which keeps running", async () => {
  const owned = await owner(folder);
  const error = await resolvePostgres(kept()).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UsageError);
  expect(error).toMatchObject({
    code: "data_directory_in_use",
    message: expect.stringContaining(`in use by process ${owned.process.pid}`),
    next: expect.stringContaining(`kill ${owned.process.pid}`),
  });
  await write(owned);
  expect(await read(owned.postgres)).toEqual([{ n: 42 }]);
});

test("of two owners that start at once on a new directory, one gets it", async () => {
  const input = { dataDir: folder, say: () => {}, env };
  const both = await Promise.allSettled([startLocalPostgres(input), startLocalPostgres(input)]);
  const got = both.flatMap((one) =>
    one.status === "fulfilled" && one.value !== undefined ? [one.value] : [],
  );
  const lost = both.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  await Promise.all(got.map((one) => one.close()));
  expect(got).toHaveLength(1);
  expect(lost).toEqual([expect.objectContaining({ code: "data_directory_in_use" })]);
});

test("an owner that ends without closing takes its servers with it", async () => {
  const owned = await owner(folder);
  owned.process.kill("SIGTERM");
  await gone(owned);
});

test.runIf(process.getuid?.() === 0)(
  "root can use a data directory that the user postgres cannot enter",
  async () => {
    chmodSync(folder, 0o700);
    const input = { dataDir: join(folder, "under"), say: () => {}, env };
    const first = await startLocalPostgres(input);
    const [{ data_directory: place }] = (await inPostgres(String(first?.url), "SHOW data_directory")) as [
      { data_directory: string },
    ];
    await inPostgres(String(first?.url), "CREATE TABLE answer AS SELECT 42 AS n");
    await first?.close();
    const second = await startLocalPostgres(input);
    expect(await inPostgres(String(second?.url), "SELECT n FROM answer")).toEqual([{ n: 42 }]);
    await second?.close();
    rmSync(place, { recursive: true });
  },
);

function kept() {
  return { dataDir: folder, env, say: () => {} };
}

async function owner(dataDir?: string): Promise<Owned> {
  const child = spawn(process.execPath, [OWNER, ...(dataDir === undefined ? [] : [dataDir])], {
    stdio: ["ignore", "pipe", "inherit"],
    env,
  });
  owners.push(child);
  const [line] = (await once(createInterface(child.stdout as NodeJS.ReadableStream), "line")) as [string];
  const urls = JSON.parse(line) as { postgres: string; redis: string };
  expect(urls).toEqual({ postgres: expect.any(String), redis: expect.any(String) });
  return { process: child, ...urls };
}

async function write(owned: Owned): Promise<void> {
  await inPostgres(owned.postgres, "CREATE TABLE answer AS SELECT 42 AS n");
}

function read(url: string): Promise<unknown[]> {
  return inPostgres(url, "SELECT n FROM answer");
}

async function inPostgres(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  const { rows } = await client.query(text);
  await client.end();
  return rows;
}

async function inRedis<T>(url: string, ask: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { retryStrategy: null });
  const answer = await ask(redis);
  await redis.quit();
  return answer;
}

/** Both ports refuse. */
async function gone(owned: Owned): Promise<void> {
  await Promise.all(
    [owned.postgres, owned.redis].map((url) => poll(() => refuses(Number(new URL(url).port)))),
  );
}

function refuses(port: number): Promise<boolean> {
  return new Promise((answer) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => answer(false)).once("error", () => answer(true));
    socket.once("connect", () => socket.destroy());
  });
}

function serverPid(): number {
  return Number.parseInt(readFileSync(join(folder, "postgres/data/postmaster.pid"), "utf8"), 10);
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}
