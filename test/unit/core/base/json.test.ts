import { expect, test } from "vitest";
import { NestedTooDeepError, parseJson } from "../../../../src/core/base/json.ts";

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
