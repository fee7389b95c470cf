import { expect, test } from "vitest";
import { METER, METERS, meterOf } from "../../../../src/domain/usage/meter.ts";
import { dimensionOf, GROUPINGS } from "../../../../src/domain/usage/record.ts";

test("a meter is that of a kind and a tier together, and of nothing else", () => {
  for (const meter of METERS) expect(meterOf(METER[meter].kind, METER[meter].tier)).toBe(meter);
  expect(meterOf("langsmith_deployments", "longlived")).toBeUndefined();
  expect(meterOf("runs", "all")).toBeUndefined();
});

test("ids by project are projects, but for deployments", () => {
  for (const meter of METERS) {
    const dimensions = GROUPINGS.map((groupBy) => dimensionOf(meter, groupBy));
    const projects = meter === "deployments" ? "deployment" : "project";
    expect(dimensions).toEqual(GROUPINGS.map((groupBy) => (groupBy === "project" ? projects : groupBy)));
  }
});
