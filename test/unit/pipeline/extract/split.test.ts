import { describe, expect, test } from "vitest";
import { type UsageRequest, workspaceIdsOf } from "../../../../src/domain/planning/request.ts";
import { DAY_MS, HOUR_MS, type Stride } from "../../../../src/domain/time/stride.ts";
import type { AnswerFlaw } from "../../../../src/domain/usage/answer.ts";
import { PlatformError } from "../../../../src/errors.ts";
import { afterFlaw, afterRefusal } from "../../../../src/pipeline/extract/split-or-fail.ts";

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
const flaw = (kind: AnswerFlaw["kind"], code: AnswerFlaw["code"]): AnswerFlaw => ({
  kind,
  code,
  message: "x",
});
const LATER = START + 1000 * DAY_MS;
const shapes = (step: ReturnType<typeof afterRefusal>) =>
  step.parts.map((part) => [
    part.window.stride,
    (part.window.start - START) / HOUR_MS,
    (part.window.end - START) / HOUR_MS,
    workspaceIdsOf(part).join(),
  ]);

describe("a refusal that may be one record's", () => {
  test("is split by time next, down to one bucket", () => {
    expect(shapes(afterRefusal(task("day", 3 * DAY_MS), refusal(400), LATER, true))).toEqual([
      ["day", 0, 48, "w0"],
      ["day", 48, 72, "w0"],
    ]);
    expect(afterRefusal(task("day", DAY_MS), refusal(400), LATER, true)).toMatchObject({
      outcome: "failed",
      keep: true,
      parts: [],
    });
  });

  test("is kept whole where nothing is usable so far", () => {
    expect(afterRefusal(task("day", 4 * DAY_MS, 3), refusal(422), LATER, false)).toMatchObject({
      outcome: "failed",
      keep: true,
    });
  });

  test("of weeks is kept whole, since half of them would come as days", () => {
    expect(afterRefusal(task("week", 35 * DAY_MS), refusal(422), LATER, true).outcome).toBe("failed");
  });

  test.each([
    [500, [], false],
    [404, [], false],
    [400, [], true],
    [413, [], true],
    [414, [], true],
    [431, [], true],
    [undefined, [], false],
  ])("status %s", (status, locations, isSplit) => {
    const step = afterRefusal(task("day", 4 * DAY_MS), refusal(status, locations), LATER, true);
    expect(step.outcome).toBe(isSplit ? "split" : "failed");
  });

  test("is split after an answer that is wrong in one place, not after a foreign one", () => {
    const wide = task("day", 4 * DAY_MS);
    expect(afterRefusal(wide, refusal(200, ["usage.3.traces"], "answer_invalid"), LATER, true).outcome).toBe(
      "split",
    );
    expect(afterRefusal(wide, refusal(200, [], "answer_invalid"), LATER, true).outcome).toBe("failed");
  });

  test("is split after an answer that is too large, down to one bucket", () => {
    const tooLarge = refusal(200, [], "answer_too_large");
    expect(afterRefusal(task("day", 4 * DAY_MS), tooLarge, LATER, true).outcome).toBe("split");
    expect(afterRefusal(task("day", DAY_MS), tooLarge, LATER, true)).toMatchObject({
      outcome: "failed",
      keep: true,
    });
  });
});

test("a flaw of a day is a failure where the server is known to have no hours, else hours are planned", () => {
  const misplaced = flaw("grid", "bucket_misplaced");
  const day = task("day", DAY_MS);
  expect(afterFlaw(day, misplaced, true).outcome).toBe("split");
  for (const one of [misplaced, flaw("grid", "stride_differs")]) {
    const step = afterFlaw(day, one, true, new Set(["no_hour"]));
    expect(step).toMatchObject({ outcome: "failed", keep: true, parts: [] });
    expect(step.learn).toBeUndefined();
  }
});

describe("a refused end in the future", () => {
  const now = START + 30.5 * HOUR_MS;
  test.each([
    ["day", 3 * DAY_MS, [["day", 0, 24, "w0"]]],
    ["hour", 20 * HOUR_MS, undefined],
  ] as const)("of a %s window teaches it and asks for what is past", (stride, length, parts) => {
    const step = afterRefusal(task(stride, length), refusal(422, ["query.end_time"]), now, true);
    if (parts === undefined) expect(step.learn).toBeUndefined();
    else {
      expect(step).toMatchObject({ outcome: "split", learn: "no_future_end", keep: false });
      expect(shapes(step)).toEqual(parts);
    }
  });

  test("is believed only where the end lies in the future, to the millisecond", () => {
    const refused = refusal(422, ["query.end_time"]);
    const window = task("hour", 3 * HOUR_MS);
    expect(afterRefusal(window, refused, window.window.end, true).learn).toBeUndefined();
    expect(afterRefusal(window, refused, window.window.end - 1, true).learn).toBe("no_future_end");
  });
});

describe("an answer in another stride", () => {
  test.each([
    ["day", 3 * DAY_MS, "hour"],
    ["week", 35 * DAY_MS, "day"],
    ["month", 120 * DAY_MS, "week"],
    ["year", 730 * DAY_MS, "month"],
  ] as const)("of a %s window is planned one finer and kept", (stride, length, finer) => {
    const size = { day: DAY_MS, week: 7 * DAY_MS, month: 30 * DAY_MS, year: 365 * DAY_MS }[stride];
    const start = Math.ceil(START / size) * size;
    const window = { stride, start, end: start + length };
    const step = afterFlaw({ ...task(stride, length), window }, flaw("grid", "stride_differs"), true);
    expect(step).toMatchObject({ outcome: "split", keep: true });
    expect(step.learn).toBeUndefined();
    expect(step.parts.some((part) => part.window.stride === finer)).toBe(true);
    // Not a moment is lost or asked for twice.
    const spans = step.parts.map((part) => part.window).sort((a, b) => a.start - b.start);
    expect([spans[0]?.start, spans.at(-1)?.end]).toEqual([window.start, window.end]);
    spans.slice(1).forEach((span, i) => {
      expect(span.start).toBe(spans[i]?.end);
    });
  });

  test("of hours shows that the server has none; one misplaced bucket does not", () => {
    expect(afterFlaw(task("hour", HOUR_MS), flaw("grid", "stride_differs"), true)).toMatchObject({
      outcome: "not_available",
      learn: "no_hour",
      keep: false,
    });
    const astray = afterFlaw(task("hour", HOUR_MS), flaw("grid", "bucket_misplaced"), true);
    expect(astray).toMatchObject({ outcome: "failed", keep: true });
    expect(astray.learn).toBeUndefined();
  });
});
