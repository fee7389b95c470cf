import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { NestedTooDeepError, parseJson } from "../../src/json.ts";

const arrays = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

test("JSON is parsed to 200 levels, however many values and brackets in texts it has", () => {
  const flat = `[${`{"a": [1, "[[[[{{{{\\\\", "\\"[["]},`.repeat(1_000)}0]`;
  for (const text of [arrays(200), objects(200), flat, '"["', "1", JSON.stringify("[{".repeat(300))])
    expect(parseJson(text)).toEqual(JSON.parse(text));
});

test.each([201, 30_000, 3_000_000])("%d levels are refused as such", (levels) => {
  for (const text of [
    arrays(levels),
    objects(levels),
    `{"a":"\\"]]]]","b":${arrays(levels)}}`,
    "[".repeat(levels),
  ])
    expect(() => parseJson(text)).toThrow(NestedTooDeepError);
});

test("what is not JSON is refused as before", () => {
  for (const text of ["", "]".repeat(300), '"', '"\\', "{", "nul"])
    expect(() => parseJson(text)).toThrow(SyntaxError);
});

test("JSON from outside is parsed with a bound of levels", () => {
  const files = globSync(["src/**/*.ts", "jobs/**/*.ts"]).filter((file) => !file.startsWith("src/local/"));
  const unbounded = files.filter((file) => /^[^/*]*\bJSON\.parse\(/m.test(readFileSync(file, "utf8")));
  // Records of a response, whose nesting nothing follows, and our own texts: a line, package.json, columns that Postgres writes.
  expect(unbounded.sort()).toEqual([
    "src/cli/report/output.ts",
    "src/json.ts",
    "src/platform/parse/json-scan.ts",
    "src/root.ts",
    "src/service/web/figures/report.ts",
    "src/store/export/day-rows.ts",
  ]);
});
