import { expect, test } from "vitest";
import { describeConfig } from "../../../src/cli/commands/config.ts";
import { temporaryFile } from "../../support/temporary.ts";

/** Settings as they were given, and nothing that is secret. */

const shown = (name: string, environment: Record<string, string>) => {
  const found = describeConfig(environment).find(({ setting }) => setting === name);
  return [found?.value, found?.from];
};

test.each([
  [
    "DATABASE_URL",
    "postgres://me:secret@db:5432/usage?sslmode=require",
    "postgres://me:[redacted]@db:5432/usage",
  ],
  ["DATABASE_URL", "postgres://db/usage", "postgres://db/usage"],
  ["DATABASE_URL", "postgres://usage:42#secretpart@db/usage", "(not valid)"],
  ["REDIS_URL", "redis://:secret@cache:6379/1", "redis://:[redacted]@cache:6379/1"],
  ["REDIS_URL", "redis+cluster://:secret@cache", "The Redis cluster of cache:6379"],
  ["REDIS_URL", "redis+sentinel://:secret@a,b:1/usage", 'Redis "usage" of the Sentinels a:26379, b:1'],
  ["REDIS_URL", "secret", "(not valid)"],
  ["USAGE_API_KEY", "secret", "[redacted]"],
  ["USAGE_ALERT_WEBHOOK_URL", "https://hooks.example/services/secret", "https://hooks.example/[redacted]"],
  ["USAGE_WEB_TOKEN", "secret-secret-secret", "[redacted]"],
  ["USAGE_BASE_URL", "https://me:secret@host", "(not valid)"],
  ["USAGE_SOURCES_FILE", '[{"apiKey":"secret"}]', "(not valid)"],
  ["USAGE_SETTLE_AFTER", "P5D", "P5D"],
])("%s of the environment: %s is shown as %s", (name, given, value) => {
  expect(shown(name, { [name]: given })).toEqual([value, "environment"]);
});

test("defaults, files, and what is not set", () => {
  const key = temporaryFile("secret");
  expect(shown("USAGE_API_KEY", { USAGE_API_KEY_FILE: key })).toEqual(["[redacted]", "file"]);
  expect(shown("USAGE_API_KEY", { USAGE_API_KEY_FILE: "secret" })).toEqual(["(not valid)", "file"]);
  expect(shown("USAGE_SOURCES_FILE", { USAGE_SOURCES_FILE: key })).toEqual([key, "environment"]);
  expect(shown("USAGE_SYNC_EVERY", { USAGE_SYNC_EVERY: "" })).toEqual(["PT15M", "default"]);
  expect(shown("HTTP_PORT", {})).toEqual(["9464", "default"]);
  expect(shown("USAGE_WORKSPACE_IDS", {})).toEqual([null, "unset"]);
  expect(shown("USAGE_EXPORT_DIR", {})).toEqual([null, "unset"]);
});

test("what the env file sets beneath the environment", () => {
  const merged = { USAGE_SYNC_EVERY: "PT5M", USAGE_SETTLE_AFTER: "P4D" };
  const settings = describeConfig(merged, { USAGE_SYNC_EVERY: "PT5M" });
  const from = Object.fromEntries(settings.map((one) => [one.setting, one.from]));
  expect([from.USAGE_SYNC_EVERY, from.USAGE_SETTLE_AFTER]).toEqual(["environment", "env file"]);
});
