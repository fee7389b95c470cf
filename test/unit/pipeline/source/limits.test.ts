import { describe, expect, test } from "vitest";
import { PlatformError } from "../../../../src/errors.ts";
import { isKeyRefused } from "../../../../src/pipeline/source/ask.ts";
import { notShownError } from "../../../../src/pipeline/source/contact.ts";
import { dataStartProblem } from "../../../../src/pipeline/source/data-start.ts";
import { sharesOf } from "../../../../src/pipeline/source/pace.ts";
import { createSplitLimit } from "../../../../src/pipeline/source/source.ts";

describe("the shares of a rate limit", () => {
  test("together never exceed it, and neither is nothing", () => {
    for (let limit = 1; limit <= 300; limit++) {
      const { fetch, control } = sharesOf(limit);
      const perSecond = ({ max, duration }: typeof fetch) => (max * 10_000) / duration;
      expect(perSecond(fetch) + perSecond(control), `${limit}`).toBe(limit);
      for (const share of [fetch, control]) expect(share.max, `${limit}`).toBeGreaterThanOrEqual(1);
      // A tenth is for control jobs.
      if (limit >= 10) expect(control.max, `${limit}`).toBe(Math.floor(limit / 10));
    }
  });

  test("of one request are one in twice the time each", () => {
    const half = { max: 1, duration: 20_000 };
    expect(sharesOf(1)).toEqual({ fetch: half, control: half });
    expect(sharesOf(2)).toEqual({
      fetch: { max: 1, duration: 10_000 },
      control: { max: 1, duration: 10_000 },
    });
  });
});

test("answers are split until refusals outnumber 40, and ten more for each usable answer", () => {
  const limit = createSplitLimit();
  const refusals = () => {
    let count = 0;
    for (; limit.allows(); count++) limit.refused();
    return count;
  };
  expect(refusals()).toBe(40);
  limit.usable();
  expect(refusals()).toBe(10);
  limit.usable();
  limit.usable();
  expect(refusals()).toBe(20);
  expect(createSplitLimit().allows()).toBe(true);
});

test.each([
  [401, true],
  [403, true],
  [400, false],
  [404, false],
  [500, false],
])("an answer with status %i refuses the key: %s", (status, refused) => {
  const facts = {
    code: "x",
    message: "x",
    next: "x",
    retryable: false,
    method: "GET",
    url: "https://x.example",
  };
  expect(isKeyRefused(new PlatformError({ ...facts, status }))).toBe(refused);
  expect(isKeyRefused(Object.assign(new Error("x"), { status }))).toBe(false);
});

test("only a configured data start that is later than the stored one is a problem, and both are named", () => {
  const problem = (stored: string, configured: string) => dataStartProblem("eu", { stored, configured });
  expect(problem("2026-01-05", "2026-01-05")).toBeUndefined();
  expect(problem("2026-01-05", "2026-01-04")).toBeUndefined();
  expect(problem("2026-01-05", "2026-01-06")).toEqual({
    code: "data_start_later",
    message:
      "Source eu is configured to start on 2026-01-06, but its data start is 2026-01-05, which applies.",
    next: "Run `usage-etl data-start 2026-01-06 --source eu` to move it, or set USAGE_DATA_START=2026-01-05.",
  });
});

test("workspaces that nothing shows are all named, with the command for the first", () => {
  expect(notShownError("eu", ["w1", "w2"])).toMatchObject({
    code: "workspace_not_shown",
    message:
      "Source eu is asked to load workspace w1, w2, which the platform does not show: no listing and no usage names it.",
    next: expect.stringContaining("`usage-etl workspace add w1 --source eu --force`"),
  });
});
