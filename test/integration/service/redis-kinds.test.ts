import { once } from "node:events";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { checkRedis } from "../../../jobs/queues.ts";
import { readRedis } from "../../../src/core/base/config.ts";
import type { EtlError } from "../../../src/core/base/errors.ts";
import { connectRedis } from "../../../src/core/base/redis-connect.ts";
import type { RedisServer } from "../../../src/core/base/redis-server.ts";
import { usageEtl } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { type RedisKind, startCluster, startSentinel } from "../../support/redis-kinds.ts";
import {
  daysAgo,
  lateUsageArrives,
  logOf,
  request,
  setupService,
  startRedis,
  syncsGoOn,
} from "../../support/service.ts";
import { setupMigrated } from "../../support/store.ts";

const PREFIX = "team-a";
const OPERATOR = "a-token-of-the-board";

test.each([
  ["cluster", () => startCluster(`{${PREFIX}}`)],
  ["sentinel", startSentinel],
])(
  "%s: wrong settings are named; the primary is killed under load and nothing is lost",
  async (kind, startKind) => {
    const redis = await startKind();
    await namesWrongSettings(redis, kind);

    const { store, url: databaseUrl } = await setupMigrated();
    const servers = { store, databaseUrl, redisUrl: "redis://127.0.0.1:1" };
    const environment = { ...redis.environment, REDIS_PREFIX: PREFIX, USAGE_WEB_TOKEN: OPERATOR };
    const bench = await setupService({ servers, environment, days: 5, workspaces: 2 });
    const service = await bench.serve();
    await poll(async () => (await bench.count("SELECT count(*) FROM usage.fetch")) > 3, {
      deadlineMs: 60_000,
    });
    await redis.killPrimary(PREFIX);
    await poll(async () => (await request(service, "/readyz")).status === 200, {
      deadlineMs: 45_000,
      everyMs: 100,
    });
    await bench.loaded(60_000);
    await syncsGoOn(service, 2);
    await lateUsageArrives(bench);

    expect(logOf(service).filter(({ msg, name }) => msg === "job failed" && name === "extract")).toEqual([]);
    const range = ["--from", daysAgo(5), "--to", daysAgo(4), "--stride", "day"];
    const reconciled = await usageEtl(["reconcile", ...range, "--json"], bench.environment);
    expect([reconciled.code, reconciled.stderr]).toEqual([0, expect.any(String)]);
    const names = await redis.keys();
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !name.startsWith(`{${PREFIX}}:`))).toEqual([]);

    const [, address = ""] = /health and metrics on (\S+);/.exec(service.said.stderr) ?? [];
    const authorization = `Basic ${Buffer.from(`x:${OPERATOR}`).toString("base64")}`;
    const board = await fetch(`${address}/queues/api/queues?activeQueue=fetch-default&page=1`, {
      headers: { authorization },
    });
    expect([board.status, await board.text()]).toEqual([200, expect.stringContaining('"fetch-default"')]);
    const doctor = await usageEtl(["doctor", "--json"], bench.environment);
    const checks = JSON.parse(doctor.stdout) as { check: string; status: string; finding: string }[];
    const find = (check: string) => checks.find((one) => one.check === check);
    expect(checks.filter(({ status }) => status === "fail")).toEqual([]);
    expect(find("redis")?.finding).toContain(`(${kind})`);
    expect(find("workers")?.finding).toBe("1 worker seen");
    expect(find("schedules")?.finding).toContain("kept by 1 scheduler");
  },
);

test("whoever connects to a cluster during its failover is connected after it", async () => {
  const redis = await startCluster(`{${PREFIX}}`);
  const server = readRedis({ ...redis.environment, REDIS_PREFIX: PREFIX }) as RedisServer;
  await redis.killPrimary(PREFIX);
  const until = performance.now() + 6_000;
  while (performance.now() < until) {
    const connection = connectRedis(server, { lazyConnect: true, retryStrategy: () => 100 });
    onTestFinished(() => connection.disconnect());
    connection.on("error", () => {});
    const late = once(AbortSignal.timeout(20_000), "abort").then(() => "late");
    expect(await Promise.race([connection.connect().then(() => "connected"), late])).toBe("connected");
    connection.disconnect();
  }
});

test.each([
  ["-bzpopmin", "'bzpopmin'"],
  ["-eval", "'eval'"],
  ["-xadd", "executing the script"],
])("a Redis that bans %s is refused in one clear line", async (ban, named) => {
  const url = new URL(await startRedis());
  const admin = new Redis(url.href);
  onTestFinished(() => admin.disconnect());
  await admin.acl("SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", ban);
  [url.username, url.password] = ["limited", "secret"];
  const server = readRedis({ REDIS_URL: url.href }) as RedisServer;
  await expect(checkRedis(server)).rejects.toMatchObject({
    code: "redis_unsuitable",
    message: expect.stringMatching(new RegExp(`^Redis refuses what queues need .*${named}`)),
  });
  const doctor = await usageEtl(["doctor", "--json"], { REDIS_URL: url.href });
  const checks = JSON.parse(doctor.stdout) as { check: string; status: string; finding: string }[];
  expect(checks.find(({ check }) => check === "redis_commands")).toMatchObject({
    status: "fail",
    code: "redis_unsuitable",
    finding: expect.not.stringContaining("\n"),
  });
});

async function namesWrongSettings({ environment, otherCa }: RedisKind, kind: string): Promise<void> {
  const problemWith = async (changed: Record<string, string>) => {
    const server = readRedis({ ...environment, REDIS_PREFIX: PREFIX, ...changed }) as RedisServer;
    const { code, message, next } = await checkRedis(server).then(
      () => ({ code: "none", message: "", next: "" }),
      (error: EtlError) => error,
    );
    return [code, `${message} ${next}`] as const;
  };
  expect(await problemWith({})).toEqual(["none", " "]);
  const untrusted = [
    "redis_tls",
    expect.stringMatching(/certificate that is not trusted.*Set REDIS_CA_FILE/),
  ];
  expect(await problemWith({ REDIS_CA_FILE: otherCa })).toEqual(untrusted);
  expect(await problemWith({ REDIS_CA_FILE: "" })).toEqual(untrusted);
  const refused = ["redis_refused", expect.stringMatching(/refuses the login.*REDIS_PASSWORD/)];
  expect(await problemWith({ REDIS_PASSWORD: "wrong" })).toEqual(refused);
  if (kind === "cluster") {
    const [, ...nodes] = (environment.REDIS_URL ?? "").replace("rediss://", "").split(",");
    const found = await Promise.all(nodes.map((node) => problemWith({ REDIS_URL: `rediss://${node}` })));
    const isCluster = ["redis_is_cluster", expect.stringMatching(/node of a Redis cluster.*redis\+cluster:/)];
    expect(found.filter(([code]) => code !== "none")).toEqual([isCluster, isCluster]);
    expect(await problemWith({ REDIS_URL: `rediss+cluster://${nodes[0]}` })).toEqual(["none", " "]);
    return;
  }
  expect(await problemWith({ REDIS_SENTINEL_PASSWORD: "wrong" })).toEqual(refused);
  const other = (environment.REDIS_URL ?? "").replace(/usage$/, "other");
  expect(await problemWith({ REDIS_URL: other })).toEqual([
    "redis_no_primary",
    expect.stringMatching(/has no primary.*watch no primary "other"/),
  ]);
}
