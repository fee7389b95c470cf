import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readConfig } from "../../../src/core/base/config.ts";
import { Secret } from "../../../src/core/base/secret.ts";
import { announceDemo, commandEnvironment } from "../../../src/terminal/running-demo.ts";
import { temporaryFolder } from "../../support/temporary.ts";

const DEMO = {
  databaseUrl: "postgresql://postgres:a-password@127.0.0.1:9/postgres",
  redisUrl: "redis://127.0.0.1:9",
  sources: [
    {
      slug: "demo",
      baseUrl: "http://127.0.0.1:9",
      apiKey: new Secret("a-key"),
      workspaceIds: [],
      dataStart: "2026-01-05",
      rateLimit: 1000,
    },
  ],
  pages: "http://127.0.0.1:9464/",
  syncEvery: "PT30S",
  environment: { USAGE_HOURLY_FOR: "P5D", HTTP_PORT: "80", USAGE_SYNC_EVERY: "PT1H", PATH: "/bin" },
};

test("where nothing is configured, a command has the servers, sources and settings of the demo that runs", async () => {
  const dir = temporaryFolder();
  const announced = await announceDemo(dir, DEMO);
  for (const name of ["demo.env", "sources.json"]) {
    expect([name, (statSync(join(dir, name)).mode & 0o777).toString(8)]).toEqual([name, "600"]);
  }
  const { environment, demo, note } = await commandEnvironment({ REDIS_URL: " ", PATH: "/bin" }, dir);
  expect([demo, note]).toEqual([
    "runs",
    `Nothing is configured here, so this uses the running demo (process ${process.pid}). Its pages: ${DEMO.pages}`,
  ]);
  const config = readConfig(environment);
  expect(config.databaseUrl?.reveal()).toBe(DEMO.databaseUrl);
  expect(config.redisUrl?.reveal()).toBe(DEMO.redisUrl);
  expect(config.sources).toMatchObject([{ slug: "demo", baseUrl: "http://127.0.0.1:9", rateLimit: 1000 }]);
  expect(config.sources[0]?.apiKey.reveal()).toBe("a-key");
  expect([config.syncEveryMs, config.hourlyForMs, config.httpPort]).toEqual([30_000, 5 * 86_400_000, 9464]);
  // The same env file may be named, from any folder.
  expect(
    (await commandEnvironment({ USAGE_ENV_FILE: announced?.file }, "/nowhere")).environment,
  ).toMatchObject({
    DATABASE_URL: DEMO.databaseUrl,
  });
  expect(await announceDemo(dir, DEMO)).toBeUndefined();
  announced?.invalidate();
  expect(readdirSync(dir)).toEqual(["demo.lock"]);
  expect(await commandEnvironment({}, dir)).toEqual({ environment: {}, demo: undefined });
});

test("a demo never stands in for anything that is configured", async () => {
  const dir = temporaryFolder();
  const announced = await announceDemo(dir, DEMO);
  onTestFinished(() => announced?.invalidate());
  const envFile = join(dir, "usage-etl.env");
  writeFileSync(envFile, "USAGE_SYNC_EVERY=PT5M\n");
  writeFileSync(join(dir, "DATABASE_URL"), "postgres://there/usage");
  for (const [name, value] of [
    ["DATABASE_URL", "postgres://there/usage"],
    ["DATABASE_URL_FILE", "/run/secrets/database"],
    ["USAGE_BASE_URL", "https://there"],
    ["USAGE_API_KEY", "key"],
    ["USAGE_API_KEY_FILE", "/run/secrets/key"],
    ["USAGE_SOURCES_FILE", "sources.json"],
    ["USAGE_ENV_FILE", envFile],
    ["CREDENTIALS_DIRECTORY", dir],
  ] as const) {
    const { environment, demo } = await commandEnvironment({ [name]: value }, dir);
    expect([name, demo, environment.USAGE_HOURLY_FOR]).toEqual([name, undefined, undefined]);
  }
});
