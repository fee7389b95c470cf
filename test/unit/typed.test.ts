import { expect, test } from "vitest";
import { asTyped, programAs } from "../../src/typed.ts";

/** Messages name commands that can be typed where the program runs. */

const root = "/opt/usage-etl";

test.each([
  ["npm run, in the clone", { script: `${root}/src/cli.ts`, folder: root }, "npm run -s usage-etl --"],
  [
    "npm run, in a folder of it",
    { script: `${root}/src/cli.ts`, folder: `${root}/docs` },
    "npm run -s usage-etl --",
  ],
  [
    "the file itself, from elsewhere",
    { script: `${root}/src/cli.ts`, folder: "/opt/usage-etl-data" },
    "npm --prefix /opt/usage-etl run -s usage-etl --",
  ],
  ["the package's bin", { script: "/usr/local/bin/usage-etl", folder: "/root" }, "usage-etl"],
  [
    "npx",
    { script: "/app/node_modules/.bin/usage-etl", folder: "/app", npmCommand: "exec" },
    "npx usage-etl",
  ],
])("started by %s", (_, started, program) => {
  expect(programAs({ root, ...started })).toBe(program);
});

test("a message's commands are changed, its other text is not", () => {
  const text = "Run `usage-etl sync`, then `usage-etl status`. Source usage-etl of usage-etl is not meant.";
  expect(asTyped(text, "npx usage-etl")).toBe(
    "Run `npx usage-etl sync`, then `npx usage-etl status`. Source usage-etl of usage-etl is not meant.",
  );
});
