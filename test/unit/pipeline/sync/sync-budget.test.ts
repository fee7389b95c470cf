import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import type { Meter } from "../../../../src/domain/usage/meter.ts";
import {
  describeAdded,
  describePutOff,
  type PutOff,
  type Syncing,
  syncBudget,
} from "../../../../src/pipeline/sync/sync-budget.ts";

const NOW = Date.parse("2026-03-10T05:20:00Z");
const DATA_START = Date.parse("2026-01-05T00:00:00Z");

const PUT_OFF = { source: "eu", tasks: 1, byHour: 0, quiet: 0, ahead: 1 };

/** Days are final after three days, and no hours are kept beyond an hour. */
function source({
  workspaces = 1,
  meters = [["traces", DATA_START]] as [Meter, number][],
  rateLimit = 10,
  syncEveryMs = 900_000,
  putOff = PUT_OFF as Syncing["putOff"],
}): Syncing {
  return {
    putOff,
    capabilities: new Set(),
    strideRetries: new Set(),
    dataStart: DATA_START,
    meters: new Map(meters),
    workspaceIds: Array.from({ length: workspaces }, (_, n) => `w${n}`),
    config: { slug: "eu", rateLimit },
    settings: {
      settleAfterMs: 3 * DAY_MS,
      hourlyForMs: 3_600_000,
      syncEveryMs,
      meters: meters.map(([meter]) => meter),
    },
  };
}

test("a sync asks for the days and hours that are not final: for workspaces at once, else for each", () => {
  // Four dimensions in days and in hours. The hour under way and the one before lie in one window.
  expect(syncBudget(source({}), NOW)).toMatchObject({ needed: 8, added: [], problem: undefined });
  // By workspace they are asked for together.
  expect(syncBudget(source({ workspaces: 3 }), NOW).needed).toBe(2 + 2 * 3 * 3);
  expect(syncBudget(source({ workspaces: 0 }), NOW).needed).toBe(0);
});

test("what other usage adds is named, from where it begins", () => {
  const both = source({
    meters: [
      ["traces", DATA_START],
      ["longlived", DATA_START],
    ],
  });
  const budget = syncBudget(both, NOW);
  expect(budget).toMatchObject({ needed: 12, added: [{ meter: "longlived", requests: 4 }] });
  expect(describeAdded(budget)).toBe(" (4 of them for long-lived traces)");
  expect(describeAdded({ added: [] })).toBe("");
  expect(
    describeAdded({
      added: [
        { meter: "longlived", requests: 4 },
        { meter: "deployments", requests: 2 },
      ],
    }),
  ).toBe(" (4 of them for long-lived traces, 2 of them for deployment usage)");
  // One that begins tomorrow adds nothing yet.
  const later = source({
    meters: [
      ["traces", DATA_START],
      ["longlived", NOW + 2 * DAY_MS],
    ],
  });
  expect(syncBudget(later, NOW).needed).toBe(8);
});

test("too few requests until the next sync are a problem, with an interval that is enough", () => {
  // Nine in ten seconds are for fetching.
  expect(syncBudget(source({ syncEveryMs: 10_000 }), NOW)).toMatchObject({ allowed: 9, problem: undefined });
  expect(syncBudget(source({ syncEveryMs: 9_000 }), NOW)).toMatchObject({ allowed: 8, problem: undefined });
  expect(syncBudget(source({ syncEveryMs: 8_888 }), NOW)).toEqual({
    needed: 8,
    added: [],
    allowed: 7,
    putOff: { tasks: 1, byHour: 0, quiet: 0, until: "2026-03-10T05:20:04.444Z" },
    problem: {
      code: "rate_budget_short",
      message:
        "A sync of source eu needs up to 8 requests, and the rate limit allows 7 until the next sync. 1 fetch task of syncs is put off. At the rate limit, the last of them is sent about 2026-03-10 05:20 UTC.",
      next: "Set USAGE_SYNC_EVERY to PT1M or more, or raise USAGE_RATE_LIMIT if the platform grants it.",
    },
  });
  const many = source({ workspaces: 10, syncEveryMs: 60_000 });
  expect(syncBudget(many, NOW)).toMatchObject({
    needed: 62,
    allowed: 54,
    problem: { next: expect.stringContaining("PT2M") },
  });
  const longlived = [["longlived", DATA_START]] as [Meter, number][];
  const short = source({ meters: [["traces", DATA_START], ...longlived], syncEveryMs: 10_000 });
  expect(syncBudget(short, NOW).problem?.message).toContain(
    "needs up to 12 requests (4 of them for long-lived traces), and",
  );
});

test("what is put off is named, with about when its turn comes; where nothing is, the limit is enough", () => {
  // As long as syncs find what they ask for unchanged, they send less than they may need.
  expect(syncBudget({ ...source({ syncEveryMs: 8_888 }), putOff: undefined }, NOW)).toMatchObject({
    needed: 8,
    allowed: 7,
    putOff: null,
    problem: undefined,
  });
  // A first load waits for long, whatever a sync needs: a quarter of nine requests in ten seconds.
  const { putOff, problem } = syncBudget(
    source({ putOff: { source: "eu", tasks: 1200, byHour: 900, quiet: 30, ahead: 1620 } }),
    NOW,
  );
  expect(problem).toBeUndefined();
  expect(putOff).toEqual({ tasks: 1200, byHour: 900, quiet: 30, until: "2026-03-10T07:20:00.000Z" });
  expect(describePutOff(putOff as PutOff)).toBe(
    "1,200 fetch tasks of syncs are put off (900 by hour, 30 of quiet workspaces). At the rate limit, the last of them is sent about 2026-03-10 07:20 UTC.",
  );
});
