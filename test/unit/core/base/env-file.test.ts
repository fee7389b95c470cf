import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readConfig } from "../../../../src/core/base/config.ts";
import { fitsEnvFile, toEnvFile, withEnvFile } from "../../../../src/core/base/env-file.ts";
import type { UsageError } from "../../../../src/core/base/errors.ts";
import { seed, times } from "../../../support/drawn.ts";
import { temporaryFile, temporaryFolder } from "../../../support/temporary.ts";

const SEED = seed();

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

function problemsOf(text: string): string[] {
  const path = temporaryFile(text);
  try {
    withEnvFile({ USAGE_ENV_FILE: path });
    return [];
  } catch (error) {
    const { code, message } = error as UsageError;
    expect(code).toBe("configuration_invalid");
    return message
      .split("\n  ")
      .slice(1)
      .map((problem) => problem.replace(`${path} `, ""));
  }
}

const MEANT = /^line 2 sets nothing: write NAME=value, .*; did you mean USAGE_USER_EMAIL\?$/;

test.each([
  ["USAGE_USER_EMAIL: drop", MEANT],
  ["usage_user_email=drop", MEANT],
  ["\u200bUSAGE_USER_EMAIL=drop", MEANT],
  ["USAGE_USER\u00ad_EMAIL=drop", MEANT],
  ["\ufeffUSAGE_USER_EMAIL=drop", MEANT],
  ["\u00a0USAGE_USER_EMAIL=drop", MEANT],
  ["USAGE_USER_EMAIL\u200d=drop", MEANT],
  ["USAGE-USER-EMAIL=drop", MEANT],
  ["export USAGE_USER_EMAIL", MEANT],
  ["set USAGE_USER_EMAIL=drop", /^line 2 sets nothing: write NAME=value/],
  ["hunter2hunter2", /^line 2 sets nothing: write NAME=value, [^;]*$/],
  ["hunter2/hunter2==", /^line 2 sets nothing: write NAME=value, [^;]*$/],
  ["[section]", /^line 2 sets nothing/],
  ["; a comment", /^line 2 sets nothing/],
  ["USAGE_SYNC_EVERY=PT5M", /^line 2 sets USAGE_SYNC_EVERY to another value than line 1; keep one$/],
  ["USAGE_SYNC_EVERY=", /^line 2 sets USAGE_SYNC_EVERY to another value than line 1; keep one$/],
  ["DATABASE_POL_SIZE=5", /^line 2 is no setting; did you mean DATABASE_POOL_SIZE\?$/],
  ["USAGE_ENV_FILE=other.env", /^line 2 sets USAGE_ENV_FILE, which counts in the environment only$/],
  ["DATABASE_URL=postgres://usage:42#hunter2@db/usage", /^line 2 sets DATABASE_URL, but .* within '\.\.\.'/],
  ["REDIS_PASSWORD=#hunter2", /^line 2 sets REDIS_PASSWORD, but/],
  ["REDIS_PASSWORD='hun'ter2", /^line 2 sets REDIS_PASSWORD, but/],
  ["REDIS_PASSWORD='hunter2", /^line 2 sets REDIS_PASSWORD, but/],
  ['REDIS_PASSWORD="hun\\"ter2"', /^line 2 sets REDIS_PASSWORD, but/],
  ['REDIS_PASSWORD="hun\\nter2"', /^line 2 sets REDIS_PASSWORD, but/],
  ["REDIS_PASSWORD=`hunter2`", /^line 2 sets REDIS_PASSWORD, but/],
])("a line that sets nothing, or not what it seems to, is refused and not repeated: %j", (line, problem) => {
  const problems = problemsOf(`USAGE_SYNC_EVERY=PT10M\n${line}\n# the end`);
  expect(problems).toEqual([expect.stringMatching(problem)]);
  expect(problems.join()).not.toMatch(/hunt|ter2|\P{ASCII}/u);
});

test("all lines are refused together, with their numbers, whatever ends them", () => {
  const problems = problemsOf("# head\r\nA: 1\rUSAGE_SYNC_EVERY=PT5M\n\nb\r\nUSAGE_SYNC_EVERY=PT5M\n");
  expect(problems.map((problem) => problem.slice(0, 6))).toEqual(["line 2", "line 5"]);
});

test(`a line that is not refused is read as Node reads it (seed ${SEED})`, () => {
  const part = fc.constantFrom(
    ..."AZ_09az= \t#'\"`\\$:/@\u00a0\u200b\ufeffé".split(""),
    ...["NAME=", "export ", " #", "='", "'", '="', "\n"],
  );
  const text = fc.array(part, { maxLength: 12 }).map((parts) => `NAME=${parts.join("")}`);
  const folder = temporaryFolder();
  let accepted = 0;
  fc.assert(
    fc.property(
      fc.oneof(
        text,
        fc.array(text, { maxLength: 3 }).map((lines) => lines.join("\n")),
      ),
      (drawn) => {
        const given = drawn.replaceAll("NAME=", "USAGE_USER_EMAIL=");
        let read: Record<string, unknown>;
        const path = join(folder, "drawn.env");
        writeFileSync(path, given);
        try {
          read = { ...withEnvFile({ USAGE_ENV_FILE: path }) };
        } catch {
          return;
        }
        accepted++;
        const { USAGE_ENV_FILE: _, ...values } = read;
        // Node takes the next line for the value that a blank would be.
        const ours = Object.entries(parseEnv(given.replace(/=[ \t]+$/gm, "="))).filter(([name]) =>
          name.startsWith("USAGE_"),
        );
        expect(values).toEqual(Object.fromEntries(ours));
      },
    ),
    { seed: SEED, numRuns: times(1000) },
  );
  expect(accepted).toBeGreaterThan(50);
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
