import { expect, test } from "vitest";
import { describeListedOnly, describeWithdrawn, firstLines } from "../../../src/cli/report/status-report.ts";

const listed = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ workspaceId: `w${i}`, zeros: i + 1 }));

test("zeros that rest on the listing alone name ten workspaces, and add up the others", () => {
  expect(describeListedOnly([])).toEqual([]);
  const [ten = ""] = describeListedOnly(listed(10));
  expect(ten).toContain("10 of w9");
  expect(ten).not.toContain("more");
  const [more = "", ...others] = describeListedOnly(listed(1000));
  expect(others).toEqual([]);
  // 1 to 1000, without 1 to 10.
  expect(more).toContain("10 of w9, and 500445 of 990 more workspaces, which status --json shows");
  expect(more).not.toContain("w10");
});

test("lines by workspace are ten at most, and one that counts the others", () => {
  expect(firstLines(["a", "b"], "lines")).toEqual(["a", "b"]);
  const all = listed(12).map((one) => ({
    ...{ ...one, firstDay: "2026-01-05", lastDay: "2026-01-06", closedMonths: [] },
  }));
  const lines = describeWithdrawn(all);
  expect(lines).toHaveLength(11);
  expect(lines[9]).toContain("of workspace w9 were withdrawn");
  expect(lines[10]).toBe("And 2 more workspaces with withdrawn zeros, which --json shows.");
});
