import type { EventEmitter } from "node:events";
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { checkRedis, openQueue, producerConnection, workerConnection } from "../../../jobs/queues.ts";
import { readRedis } from "../../../src/core/base/config.ts";
import { messageOf } from "../../../src/core/base/redis-connect.ts";
import type { RedisServer } from "../../../src/core/base/redis-server.ts";
import { poll } from "../../support/poll.ts";
import { PASSWORD, type RedisKind, startCluster, startSentinel } from "../../support/redis-kinds.ts";
import { secretFolder } from "../../support/secret-folder.ts";
import { startRedis } from "../../support/service.ts";

/** Logins of Redis from files, which change while queues are in use. */

const PREFIX = "team-a";
const JOBS = 400;

async function startSingle(): Promise<Pick<RedisKind, "environment" | "rotate">> {
  const url = new URL(await startRedis());
  const admin = new Redis(url.href);
  onTestFinished(() => admin.disconnect());
  await admin.acl("SETUSER", "default", "resetpass", `>${PASSWORD}`);
  url.password = "";
  return {
    environment: { REDIS_URL: url.href, REDIS_PASSWORD: PASSWORD },
    rotate: async (password) => {
      await admin.acl("SETUSER", "default", "resetpass", `>${password}`);
      await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    },
  };
}

test.each([
  ["one server", startSingle],
  ["cluster", () => startCluster(`{${PREFIX}}`)],
  ["Sentinel", startSentinel],
])("%s: a password is rotated under load, twice, and each job is done", async (_kind, startKind) => {
  const { environment, rotate } = await startKind();
  const secrets = secretFolder();
  secrets.put("password", PASSWORD);
  const file = secrets.path("password");
  const ofSentinels =
    "REDIS_SENTINEL_PASSWORD" in environment
      ? { REDIS_SENTINEL_PASSWORD: "", REDIS_SENTINEL_PASSWORD_FILE: file }
      : {};
  const server = readRedis({
    ...environment,
    REDIS_PREFIX: PREFIX,
    REDIS_PASSWORD: "",
    REDIS_PASSWORD_FILE: file,
    ...ofSentinels,
  }) as RedisServer;
  const { prefix } = server;
  const producer = producerConnection(server);
  const connection = workerConnection(server);
  const queue = openQueue("fetch", "test", producer, { prefix });
  const done: string[] = [];
  const refusals: string[] = [];
  const note = (error: Error) => {
    if (/WRONGPASS/.test(messageOf(error))) refusals.push(messageOf(error));
  };
  const worker = new Worker(
    queue.name,
    async ({ id = "" }) => {
      await new Promise((next) => setTimeout(next, 20));
      done.push(id);
    },
    // A job whose end could not be told is done again soon.
    {
      connection,
      prefix,
      concurrency: 4,
      lockDuration: 3_000,
      stalledInterval: 1_000,
      maxStalledCount: 20,
    },
  );
  for (const emitter of [producer, connection, queue] as EventEmitter[]) emitter.on("error", note);
  // A cluster's connection tells of its nodes.
  connection.on("node error", note);
  worker.on("error", note);
  onTestFinished(async () => {
    await worker.close(true).catch(() => {});
    for (const one of [producer, connection]) one.disconnect();
    await queue.close().catch(() => {});
  });
  await queue.addBulk(
    Array.from({ length: JOBS }, (_, i) => ({
      name: "job",
      data: {},
      opts: { jobId: `j${i}`, attempts: 8 },
    })),
  );

  for (const [password, share] of [
    ["second-password", 0.2],
    ["third-password", 0.6],
  ] as const) {
    await poll(() => done.length > JOBS * share, { deadlineMs: 30_000 });
    const before = refusals.length;
    // The servers have the new one first.
    await rotate(password);
    await poll(() => refusals.length > before, { deadlineMs: 20_000 });
    secrets.put("password", password);
  }
  await poll(async () => new Set(done).size === JOBS, { deadlineMs: 60_000, everyMs: 50 });
  // Redis rejects the ends of jobs meanwhile, which uses an attempt. Those that were under way may have been done twice.
  const left = () => queue.getJobCounts("waiting", "active", "delayed", "failed", "completed");
  await poll(async () => (await left()).completed === JOBS, { deadlineMs: 30_000, everyMs: 100 });
  expect(await left()).toMatchObject({ waiting: 0, active: 0, delayed: 0, failed: 0 });
  expect(await checkRedis(server)).toHaveLength(_kind === "one server" ? 1 : 0);
});
