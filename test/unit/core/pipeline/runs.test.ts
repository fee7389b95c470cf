import { expect, test } from "vitest";
import { endOfTotals } from "../../../../src/core/pipeline/as-run.ts";

const NOTHING = { failures: 0, unverified: 0, daysNotFinal: 0, differences: 0 };

test("a check of totals is done only if it checked every day of its range", () => {
  expect(endOfTotals(NOTHING)).toEqual({ outcome: "done" });
  expect(endOfTotals({ ...NOTHING, daysNotFinal: 20 })).toMatchObject({
    outcome: "partly_failed",
    code: "days_not_final",
    message: expect.stringContaining("20 daily figures"),
  });
  expect(endOfTotals({ ...NOTHING, daysNotFinal: 20, differences: 3 })).toMatchObject({ outcome: "differs" });
  expect(endOfTotals({ ...NOTHING, failures: 1, unverified: 2, differences: 3 })).toMatchObject({
    outcome: "partly_failed",
    failed: 3,
  });
});
