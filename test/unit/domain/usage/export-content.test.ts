import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import { ExportContent } from "../../../../src/domain/usage/export-content.ts";

const window = { start: 0, end: 3 * DAY_MS, stride: "day" } as const;
const seeds = [
  [1, 2],
  [-3, 4],
  [0, 0],
] as const;

function contentOf(rows: readonly (readonly [key: number, day: number, traces: number])[]) {
  const content = new ExportContent(window, 2);
  for (const [id, day, traces] of rows) {
    content.add({ id, bucketHour: 24 * day, traces }, (key) => ({
      workspace: key % 2,
      seed: seeds[key] as readonly [number, number],
    }));
  }
  return content;
}

test("a bucket amounts to its records, whatever their order, without those of 0 traces", () => {
  const some = contentOf([
    [0, 1, 5],
    [2, 1, 7],
    [2, 2, 0],
  ]);
  const other = contentOf([
    [2, 1, 7],
    [0, 1, 5],
  ]);
  expect(some.of(0, 24)).toEqual(other.of(0, 24));
  expect(some.of(0, 24)).toMatchObject({ records: 2, traces: 12 });
  expect(some.of(0, 48)).toEqual({ records: 0, traces: 0, hash: 0n });
  expect([...some.hours()]).toEqual([0, 24, 48]);
});

test("nothing is said about a bucket with an amount whose hash another amount may share", () => {
  const content = contentOf([
    [0, 0, 2 ** 32],
    [0, 1, 2 ** 32 - 1],
  ]);
  expect(content.of(0, 0)).toBeUndefined();
  expect(content.of(1, 0)).toBeDefined();
  expect(content.of(0, 24)).toBeDefined();
});
