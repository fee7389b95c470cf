import { expect, test } from "vitest";
import { asTyped, programAs } from "../../src/typed.ts";

/** Messages name commands that can be typed where the program runs. */

const root = "/opt/usage-etl";

const script = `${root}/src/cli.ts`;
const byNpm = { script, npmCommand: "run-script" };

test.each([
  ["npm run, in the clone", { ...byNpm, folder: root }, "npm run -s usage-etl --"],
  ["npm run, in a folder of it", { ...byNpm, folder: `${root}/docs` }, "npm run -s usage-etl --"],
  [
    "npm run, from elsewhere",
    { ...byNpm, folder: "/srv" },
    "npm --prefix /opt/usage-etl run -s usage-etl --",
  ],
  ["the file itself, in the clone", { script, folder: root }, "npm run -s usage-etl --"],
  [
    "the file itself, from elsewhere",
    { script, folder: "/opt/usage-etl-data" },
    "/opt/usage-etl/node_modules/.bin/node /opt/usage-etl/src/cli.ts",
  ],
  [
    "the package's program, by its path",
    { script: "/opt/it/src/cli.cjs", folder: "/" },
    "node /opt/it/src/cli.cjs",
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
