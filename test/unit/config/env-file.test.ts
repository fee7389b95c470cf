import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { expect, test } from "vitest";
import { readConfig } from "../../../src/config/config.ts";
import { fitsEnvFile, toEnvFile, withEnvFile } from "../../../src/config/env-file.ts";
import { temporaryFile } from "../../support/temporary.ts";

test("the environment goes before the env file, as NAME and as NAME_FILE, and a blank value counts as not set", () => {
  const path = temporaryFile(
    "USAGE_API_KEY=a\nDATABASE_URL=b\nREDIS_URL_FILE=c\nUSAGE_SYNC_EVERY=PT5M\nUSAGE_RATE_LIMIT=7\n",
  );
  const environment = { USAGE_ENV_FILE: path, USAGE_API_KEY_FILE: "x", DATABASE_URL: " ", REDIS_URL: "y" };
  expect(withEnvFile({ ...environment, USAGE_SYNC_EVERY: "PT1M" })).toEqual({
    ...environment,
    DATABASE_URL: "b",
    USAGE_SYNC_EVERY: "PT1M",
    USAGE_RATE_LIMIT: "7",
  });
});

test("of an env file only settings are read, and one that is misspelled is refused", () => {
  const path = temporaryFile("PATH=/nowhere\nPOSTGRES_PASSWORD=secret\nUSAGE_SYNC_EVRY=PT5M\n");
  const merged = withEnvFile({ USAGE_ENV_FILE: path, PATH: "" });
  expect(merged).toEqual({ USAGE_ENV_FILE: path, PATH: "", USAGE_SYNC_EVRY: "PT5M" });
  expect(() => readConfig(merged)).toThrow("did you mean USAGE_SYNC_EVERY?");
});

test("a systemd credential stands above the environment", () => {
  const path = temporaryFile("key of the credential\n", "USAGE_API_KEY");
  const folder = dirname(path);
  writeFileSync(join(folder, "PATH"), "not a setting");
  writeFileSync(join(folder, "USAGE_ROUTE_SEARCH"), "https://hooks.example/search");
  const environment = {
    CREDENTIALS_DIRECTORY: folder,
    USAGE_API_KEY: "other",
    USAGE_ROUTE_SEARCH: "https://hooks.example/other",
    DATABASE_URL_FILE: "/elsewhere",
  };
  expect(withEnvFile(environment)).toEqual({
    CREDENTIALS_DIRECTORY: folder,
    USAGE_API_KEY_FILE: path,
    USAGE_ROUTE_SEARCH_FILE: join(folder, "USAGE_ROUTE_SEARCH"),
    DATABASE_URL_FILE: "/elsewhere",
  });
});

test("Node and a shell read what is written", () => {
  const values = {
    PLAIN: "postgres://user:p%40ss@host:5432/usage",
    ODD: 'a b#c $HOME `id` "quoted" \\n & ; ?x=1',
    EMPTY: "",
  };
  const path = temporaryFile(toEnvFile(values, "# head\n"));
  expect(parseEnv(toEnvFile(values, "# head\n"))).toEqual(values);
  const names = Object.keys(values);
  const script = `set -a; . ${path}; printf '%s\\n' ${names.map((name) => `"$${name}"`).join(" ")}`;
  expect(execFileSync("sh", ["-c", script], { encoding: "utf8" })).toBe(
    `${Object.values(values).join("\n")}\n`,
  );
  expect(["it's", "two\nlines"].filter(fitsEnvFile)).toEqual([]);
});
