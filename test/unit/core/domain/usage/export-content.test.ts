import { expect, test } from "vitest";
import { DAY_MS } from "../../../../../src/core/domain/time/stride.ts";
import { ExportContent } from "../../../../../src/core/domain/usage/export-content.ts";

function contentOf(rows: readonly (readonly [key: number, day: number, traces: number])[]) {
  const content = new ExportContent({ start: 0, end: 3 * DAY_MS, stride: "day" }, 1);
  for (const [id, day, traces] of rows)
    content.add({ id, bucketHour: 24 * day, traces }, () => ({ workspace: 0, seed: [1, 2 + id] }));
  return content;
}

test("a bucket amounts to its records, without those of 0 traces", () => {
  const content = contentOf([
    [0, 1, 5],
    [2, 1, 7],
    [2, 2, 0],
  ]);
  expect(content.of(0, 24)).toMatchObject({ records: 2, traces: 12 });
  expect(content.of(0, 48)).toEqual({ records: 0, traces: 0, hash: 0n });
});

test("nothing is said about a bucket with an amount whose hash another amount may share", () => {
  const content = contentOf([
    [0, 0, 2 ** 32],
    [0, 1, 2 ** 32 - 1],
  ]);
  expect([content.of(0, 0), content.of(0, 24)]).toEqual([undefined, expect.anything()]);
});
