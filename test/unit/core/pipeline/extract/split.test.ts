import { expect, test } from "vitest";
import { PlatformError } from "../../../../../src/core/base/errors.ts";
import type { UsageRequest } from "../../../../../src/core/domain/planning/request.ts";
import { DAY_MS, HOUR_MS, type Stride } from "../../../../../src/core/domain/time/stride.ts";
import type { ResponseProblem } from "../../../../../src/core/domain/usage/response.ts";
import { afterProblem, afterRefusal } from "../../../../../src/core/pipeline/extract/split-or-fail.ts";

const START = Date.UTC(2026, 2, 5);
const task = (stride: Stride, length: number, workspaces = 1): UsageRequest => ({
  meter: "traces",
  groupBy: "project",
  window: { stride, start: START, end: START + length },
  members: Array.from({ length: workspaces }, (_, i) => ({ workspaceId: `w${i}`, scopeId: i })),
});
const refusal = (status: number | undefined, locations: string[] = [], code = "request_refused") =>
  new PlatformError({
    code,
    message: "x",
    next: "x",
    method: "GET",
    url: "https://x.example",
    locations,
    ...(status === undefined ? {} : { status }),
  });
const problem = (code: ResponseProblem["code"]): ResponseProblem => ({ kind: "grid", code, message: "x" });
const LATER = START + 1000 * DAY_MS;
const DAYS = task("day", 4 * DAY_MS);
const TOO_LARGE = refusal(200, [], "response_too_large");

test.each([
  ["500", DAYS, refusal(500), true, "failed"],
  ["404", DAYS, refusal(404), true, "failed"],
  ["400", DAYS, refusal(400), true, "split"],
  ["413", DAYS, refusal(413), true, "split"],
  ["414", DAYS, refusal(414), true, "split"],
  ["431", DAYS, refusal(431), true, "split"],
  ["no status", DAYS, refusal(undefined), true, "failed"],
  ["nothing usable so far", task("day", 4 * DAY_MS, 3), refusal(422), false, "failed"],
  ["weeks, half of which would come as days", task("week", 35 * DAY_MS), refusal(422), true, "failed"],
  [
    "a response wrong in one place",
    DAYS,
    refusal(200, ["usage.3.traces"], "response_invalid"),
    true,
    "split",
  ],
  ["a foreign answer", DAYS, refusal(200, [], "response_invalid"), true, "failed"],
  ["a response too large", DAYS, TOO_LARGE, true, "split"],
  ["one bucket too large", task("day", DAY_MS), TOO_LARGE, true, "failed"],
])(
  "what may be one record's is split, and kept as a failure where it cannot be: %s",
  (_, of, error, maySplit, outcome) => {
    const step = afterRefusal(of, error, LATER, maySplit);
    expect(step).toMatchObject({ outcome, keep: outcome === "failed" });
  },
);

test("a flaw of a day is a failure where the server is known to have no hours, else hours are planned", () => {
  const day = task("day", DAY_MS);
  expect(afterProblem(day, problem("bucket_misplaced"), true).outcome).toBe("split");
  for (const code of ["bucket_misplaced", "stride_differs"] as const) {
    const step = afterProblem(day, problem(code), true, new Set(["no_hour"]));
    expect(step).toMatchObject({ outcome: "failed", keep: true, parts: [] });
    expect(step.learn).toBeUndefined();
  }
});

test("one misplaced bucket of hours does not show that the server has none", () => {
  const step = afterProblem(task("hour", HOUR_MS), problem("bucket_misplaced"), true);
  expect(step).toMatchObject({ outcome: "failed", keep: true });
  expect(step.learn).toBeUndefined();
});

test("a refused end in the future is believed only where it lies there, to the millisecond", () => {
  const refused = refusal(422, ["query.end_time"]);
  const hours = task("hour", 3 * HOUR_MS);
  expect(afterRefusal(hours, refused, hours.window.end, true).learn).toBeUndefined();
  expect(afterRefusal(hours, refused, hours.window.end - 1, true).learn).toBe("no_future_end");
});
