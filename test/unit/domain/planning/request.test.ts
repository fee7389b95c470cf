import { describe, expect, test } from "vitest";
import { batchesOf } from "../../../../src/domain/planning/request.ts";

const members = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ workspaceId: `w${i}`, scopeId: 100 + i }));
describe("requests", () => {
  test("by workspace hold 50 workspaces at most, and all others one", () => {
    expect(
      batchesOf({ meter: "traces", groupBy: "workspace" }, members(120)).map(({ length }) => length),
    ).toEqual([50, 50, 20]);
    expect(batchesOf({ meter: "traces", groupBy: "workspace" }, members(120)).flat()).toEqual(members(120));
    expect(batchesOf({ meter: "traces", groupBy: "user" }, members(3))).toEqual(
      members(3).map((one) => [one]),
    );
    expect(batchesOf({ meter: "sandboxes", groupBy: "workspace" }, members(3))).toHaveLength(3);
    expect(batchesOf({ meter: "traces", groupBy: "workspace" }, [])).toEqual([]);
  });
});
