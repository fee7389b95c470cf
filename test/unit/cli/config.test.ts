import { expect, test } from "vitest";
import { describeConfig } from "../../../src/cli/commands/config.ts";
import { temporaryFile } from "../../support/temporary.ts";

/** Settings as they were given, and nothing that is secret. */

const shown = (name: string, environment: Record<string, string>) => {
  const found = describeConfig(environment).find(({ setting }) => setting === name);
  return [found?.value, found?.from];
};

test("defaults, files, and what is not set", () => {
  const key = temporaryFile("secret");
  for (const name of ["USAGE_API_KEY", "USAGE_WEB_TOKEN"])
    expect(shown(name, { [name]: "secret-secret-secret" })).toEqual(["[redacted]", "environment"]);
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
