import { describe, expect, it } from "vitest";
import type { GroupBy } from "../../../../../src/core/domain/usage/record.ts";
import { wireRecordReader } from "../../../../../src/core/platform/parse/wire-record.ts";
import { GroupingWitness } from "../../../../../src/core/platform/parse/wire-values.ts";

const UPPER = "0B2E6B5C-8A7E-4A5E-9C3A-3F6F3C0C1D2E";
const LOWER = UPPER.toLowerCase();

function read(raw: unknown, groupBy: GroupBy = "project") {
  return wireRecordReader(groupBy, new GroupingWitness())(raw, 7);
}

describe("fromWireRecord", () => {
  it("needs nothing but dimensions", () => {
    expect(read({ dimensions: {} })).toEqual({
      bucketStart: null,
      workspaceId: null,
      dimensionId: "",
      dimensionName: null,
      traces: 0,
    });
    for (const raw of [{}, { dimensions: null }, { dimensions: "x" }, null, [], "x"])
      expect(() => read(raw)).toThrow();
  });

  it.each([
    ["workspace", { workspace_id: UPPER, workspace_name: "W" }, LOWER, LOWER, "W"],
    ["project", { project_id: UPPER, project_name: "P", extra: [1] }, null, LOWER, "P"],
    ["project", { project_id: "p", workspace_id: UPPER }, LOWER, "p", null],
    ["user", { user_id: "U1", user_email: "a@example.com" }, null, "U1", "a@example.com"],
    ["user", { user_id: null, user_email: "a@example.com" }, null, "", null],
    ["project", { project_name: "P" }, null, "", null],
    ["api_key", { api_key_short_key: "lsv2...Ab", api_key_id: UPPER }, null, "lsv2...Ab", null],
  ] as const)(
    "reads the dimensions of %s",
    (groupBy, dimensions, workspaceId, dimensionId, dimensionName) => {
      const found = read(
        { time_bucket: "2026-01-05T00:00:00Z", dimensions, traces: 3, agent_runs: 9, more: {} },
        groupBy,
      );
      expect(found).toEqual({
        bucketStart: Date.UTC(2026, 0, 5),
        workspaceId,
        dimensionId,
        dimensionName,
        traces: 3,
      });
    },
  );

  it("treats null, absent and empty alike", () => {
    for (const value of [null, undefined, ""]) {
      expect(read({ dimensions: { project_id: value, project_name: value } })).toMatchObject({
        dimensionId: "",
        dimensionName: null,
      });
    }
  });

  it("keeps ids and names exactly, with blanks and case", () => {
    const odd = { project_id: ` ${UPPER}`, project_name: " Name " };
    expect(read({ dimensions: odd })).toMatchObject({ dimensionId: odd.project_id, dimensionName: " Name " });
    expect(read({ dimensions: { project_id: "AB" } }).dimensionId).toBe("AB");
  });

  it.each([0, -0, 1, Number.MAX_SAFE_INTEGER])("takes %d traces", (traces) => {
    expect(read({ dimensions: {}, traces }).traces).toBe(Math.abs(traces));
  });

  it.each([-1, 1.5, "1", null, Number.MAX_SAFE_INTEGER + 1, true])(
    "refuses %j traces, naming index, path and value",
    (traces) => {
      const found = catchFrom(() => read({ dimensions: { user_email: "a@example.com" }, traces }));
      expect(found).toMatchObject({ code: "response_invalid", location: "usage.7.traces" });
      expect(found.message).toContain(`record 7: usage[7].traces = ${JSON.stringify(traces)}`);
      expect(found.message).not.toContain("example.com");
    },
  );

  it("shows only the field that it refuses", () => {
    const found = catchFrom(() => read({ dimensions: [{ user_email: "a@example.com" }] }));
    expect(found.message).toContain("usage[7].dimensions = an array");
    const long = catchFrom(() => read({ dimensions: {}, traces: "x".repeat(500) }));
    expect(long.message.length).toBeLessThan(200);
  });

  it.each([
    ["2026-01-05T00:00:00Z", 0],
    ["2026-01-05T00:00:00", 0],
    ["2026-01-05 00:00:00+00:00", 0],
    ["2026-01-05T00:00:00.000000+00:00", 0],
    ["2026-01-05T02:30:00+02:30", 0],
    ["2026-01-04T23:00:00-01", 0],
    ["2026-01-05T01:00", 3_600_000],
  ])("reads %s as UTC", (bucket, offset) => {
    expect(read({ time_bucket: bucket, dimensions: {} }).bucketStart).toBe(Date.UTC(2026, 0, 5) + offset);
    expect(read({ time_bucket: bucket, dimensions: {} }).bucketStart).toBe(Date.UTC(2026, 0, 5) + offset);
  });

  it.each([
    "",
    "10:00",
    "2026",
    "2026-01-05",
    "2026-13-05T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "yesterday",
    "1767571200",
  ])("refuses %j as a timestamp", (bucket) => {
    for (let time = 0; time < 2; time += 1) {
      expect(catchFrom(() => read({ time_bucket: bucket, dimensions: {} }))).toMatchObject({
        location: "usage.7.time_bucket",
      });
    }
  });

  it("refuses an id that Postgres text cannot store, and corrects such a name", () => {
    for (const bad of ["a\0b", "a\u{D800}b", "\u{DC00}", "x".repeat(513)]) {
      expect(catchFrom(() => read({ dimensions: { project_id: bad } }))).toMatchObject({
        location: "usage.7.dimensions.project_id",
      });
      expect(catchFrom(() => read({ dimensions: { workspace_id: bad } }))).toMatchObject({
        location: "usage.7.dimensions.workspace_id",
      });
    }
    expect(read({ dimensions: { project_id: "x".repeat(512) } }).dimensionId).toHaveLength(512);
    expect(read({ dimensions: { project_id: "🚀", project_name: "a\0b\u{D800}🚀" } })).toMatchObject({
      dimensionId: "🚀",
      dimensionName: "a\u{FFFD}b\u{FFFD}🚀",
    });
  });
});

describe("GroupingWitness", () => {
  function verdict(...dimensions: object[]) {
    const witness = new GroupingWitness();
    const reader = wireRecordReader("project", witness);
    for (const [index, one] of dimensions.entries()) reader({ dimensions: one }, index);
    return witness.verdict();
  }

  it("detects records that have only another dimension", () => {
    expect(verdict({ workspace_id: "w" }, {})).toBe("workspace_id");
    expect(verdict({ user_id: "u" })).toBe("user_id");
  });

  it("accepts records that have the requested dimension, or none", () => {
    expect(verdict()).toBeUndefined();
    expect(verdict({}, {})).toBeUndefined();
    expect(verdict({ workspace_id: "w", project_id: null })).toBeUndefined();
    expect(verdict({ workspace_id: "w" }, { project_id: "p" })).toBeUndefined();
  });
});

function catchFrom(act: () => unknown): { code: string; location: string; message: string } {
  try {
    act();
  } catch (error) {
    return error as { code: string; location: string; message: string };
  }
  throw new Error("expected a refusal");
}
