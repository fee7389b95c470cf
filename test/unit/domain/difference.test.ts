import { expect, test } from "vitest";
import { describeOtherDifferences } from "../../../src/domain/proof/difference.ts";

test("differences of other usage are named by what is counted, or by the platform's word for what is unknown here", () => {
  expect(describeOtherDifferences([])).toBe("");
  expect(
    describeOtherDifferences([
      { kind: "traces", tier: "longlived", open: 1200, platformDisagrees: 3 },
      { kind: "seats", tier: "all", open: 0, platformDisagrees: 1 },
    ]),
  ).toBe(
    "; of long-lived traces: 1,200 open, 3 where the platform contradicts itself; of seats: 0 open, 1 where the platform contradicts itself",
  );
});
