import { expect, test } from "vitest";
import { marksPassed } from "../../../src/domain/bill/usage-limit.ts";

test.each([
  [null, 0],
  [0, 0],
  [49.99, 0],
  [50, 1],
  [74.99, 1],
  [75, 2],
  [90, 3],
  [99.99, 3],
  [100, 4],
  [250, 4],
])("%s percent is past %i marks", (percent, marks) => {
  expect(marksPassed({ percent })).toBe(marks);
});
