import { expect, test } from "vitest";
import { DAY_MS } from "../../../../../src/core/domain/time/stride.ts";
import type { Meter } from "../../../../../src/core/domain/usage/meter.ts";
import { type Syncing, syncBudget } from "../../../../../src/core/pipeline/sync/sync-budget.ts";

const NOW = Date.parse("2026-03-10T05:20:00Z");
const DATA_START = Date.parse("2026-01-05T00:00:00Z");

const PUT_OFF = { source: "eu", tasks: 1, byHour: 0, quiet: 0, ahead: 1 };

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
  expect(syncBudget(source({}), NOW)).toMatchObject({ needed: 8, added: [], problem: undefined });
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
  expect(syncBudget(both, NOW)).toMatchObject({ needed: 12, added: [{ meter: "longlived", requests: 4 }] });
  const later = source({
    meters: [
      ["traces", DATA_START],
      ["longlived", NOW + 2 * DAY_MS],
    ],
  });
  expect(syncBudget(later, NOW).needed).toBe(8);
});

test("what is put off is named, with about when its turn comes; where nothing is, the limit is enough", () => {
  // As long as syncs find what they ask for unchanged, they send less than they may need.
  expect(syncBudget({ ...source({ syncEveryMs: 8_888 }), putOff: undefined }, NOW)).toMatchObject({
    needed: 8,
    allowed: 7,
    putOff: null,
    problem: undefined,
  });
  const { putOff, problem } = syncBudget(
    source({ putOff: { source: "eu", tasks: 1200, byHour: 900, quiet: 30, ahead: 1620 } }),
    NOW,
  );
  expect(problem).toBeUndefined();
  expect(putOff).toEqual({ tasks: 1200, byHour: 900, quiet: 30, until: "2026-03-10T07:20:00.000Z" });
});
