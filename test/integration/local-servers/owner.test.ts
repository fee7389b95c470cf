import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { poll } from "../../support/poll.ts";

const OWNER = join(import.meta.dirname, "../../support/services-owner.ts");
const env: NodeJS.ProcessEnv = { ...process.env, DATABASE_URL: undefined, REDIS_URL: undefined };

interface Owned {
  readonly process: ChildProcess;
  readonly postgres: string;
  readonly redis: string;
}

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

test("an owner that ends without closing takes its servers with it", async () => {
  const owned = await owner();
  owned.process.kill("SIGTERM");
  await gone(owned);
});

async function owner(): Promise<Owned> {
  const child = spawn(process.execPath, [OWNER], { stdio: ["ignore", "pipe", "inherit"], env });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = (await once(createInterface(child.stdout as NodeJS.ReadableStream), "line")) as [string];
  const urls = JSON.parse(line) as { postgres: string; redis: string };
  expect(urls).toEqual({ postgres: expect.any(String), redis: expect.any(String) });
  return { process: child, ...urls };
}

async function inPostgres(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  const { rows } = await client.query(text);
  await client.end();
  return rows;
}

async function inRedis<T>(url: string, request: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { retryStrategy: null });
  const response = await request(redis);
  await redis.quit();
  return response;
}

async function gone(owned: Owned): Promise<void> {
  await Promise.all(
    [owned.postgres, owned.redis].map((url) => poll(() => refuses(Number(new URL(url).port)))),
  );
}

function refuses(port: number): Promise<boolean> {
  return new Promise((response) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => response(false)).once("error", () => response(true));
    socket.once("connect", () => socket.destroy());
  });
}
