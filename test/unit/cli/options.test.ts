import { Command } from "commander";
import { describe, expect, test } from "vitest";
import {
  groupingsOf,
  parseDuration,
  rangeOf,
  withRange,
  withSelection,
} from "../../../src/cli/session/options.ts";
import { workspacesOf } from "../../../src/pipeline/backfill/wish.ts";

/** Parses the flags of a command. */
function parse(...args: string[]) {
  const command = withSelection(withRange(new Command("x")))
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  return command
    .parse(args, { from: "user" })
    .opts<Parameters<typeof rangeOf>[0] & { workspace?: string[] }>();
}

describe("an instant", () => {
  test.each([
    ["2026-03-01", "2026-03-01T00:00:00Z"],
    ["2026-03-01T05", "2026-03-01T05:00:00Z"],
    ["2026-03-01T05:30", "2026-03-01T05:30:00Z"],
    ["2026-03-01T05:30:00Z", "2026-03-01T05:30:00Z"],
    ["2026-03-01T05:30+05:30", "2026-03-01T00:00:00Z"],
    ["2028-02-29", "2028-02-29T00:00:00Z"],
  ])("%s is %s in any time zone", (text, utc) => {
    expect(parse("--from", text).from).toBe(Date.parse(utc));
  });

  test.each([
    "10:00",
    "2026",
    "2026-3-1",
    "2026-02-30",
    "2027-02-29",
    "today",
    "",
    "2026-03-01T25:00",
    "20260301",
    "0001-01-01",
    "1969-12-31",
    "2100-01-02",
    "9999-12-31",
  ])("%j is refused", (text) => {
    expect(() => parse("--from", text)).toThrow(/is invalid|not a day|not between/);
  });
});

describe("a range", () => {
  const [start, end] = [Date.UTC(2026, 2, 1), Date.UTC(2026, 2, 2)];
  test("needs both ends, or a default for the missing one", () => {
    expect(rangeOf({ from: start, to: end })).toEqual({ start, end });
    expect(rangeOf({ from: start }, { start: 0, end })).toEqual({ start, end });
    expect(() => rangeOf({ from: start })).toThrow(/--to is missing/);
    expect(() => rangeOf({ to: end })).toThrow(/--from is missing/);
  });
  test.each([
    [end, start],
    [start, start],
  ])("from %i to %i is reversed", (from, to) => {
    expect(() => rangeOf({ from, to })).toThrow(/is not before/);
  });
});

describe("a selection", () => {
  test("is every dimension and workspace by day by default", () => {
    expect(parse()).toMatchObject({ stride: "day" });
    expect(groupingsOf({}, "traces")).toEqual(["workspace", "project", "user", "api_key"]);
    expect(groupingsOf({ groupBy: "user" }, "traces")).toEqual(["user"]);
    expect(groupingsOf({}, "sandboxes")).toEqual(["workspace", "project"]);
    expect(() => groupingsOf({ groupBy: "user" }, "sandboxes")).toThrow(
      expect.objectContaining({ code: "dimension_unknown" }),
    );
    expect(workspacesOf(undefined, ["a", "b"])).toEqual(["a", "b"]);
  });
  test("accepts several workspaces in any case; an unknown one is refused with the known ones", () => {
    const { workspace } = parse("--workspace", "AB", "cd", "--workspace", "EF");
    expect(workspace).toEqual(["ab", "cd", "ef"]);
    expect(() => workspacesOf(["x"], ["a", "b"])).toThrow(
      expect.objectContaining({ next: "Choose one of: a, b." }),
    );
  });
});

describe("a duration to wait", () => {
  test.each([
    ["PT1S", 1000],
    ["PT30M", 1_800_000],
    ["P20D", 1_728_000_000],
  ])("%s is %i ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });
  test.each(["PT0S", "-PT1S", "30", "", "P20DT1S", "P99999999Y"])("%j is refused", (text) => {
    expect(() => parseDuration(text)).toThrow(/not an ISO 8601 duration|more than 20 days/);
  });
});
