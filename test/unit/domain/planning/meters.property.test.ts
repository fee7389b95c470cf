import fc from "fast-check";
import { expect, test } from "vitest";
import { type PlannedScope, planTasks } from "../../../../src/domain/planning/plan-tasks.ts";
import type { UsageRequest } from "../../../../src/domain/planning/request.ts";
import { DAY_MS, HOUR_MS } from "../../../../src/domain/time/stride.ts";
import type { Interval } from "../../../../src/domain/time/window.ts";
import { METER, METERS, type Meter } from "../../../../src/domain/usage/meter.ts";
import type { GroupBy } from "../../../../src/domain/usage/record.ts";
import { times } from "../../../support/drawn.ts";
import { searchBest } from "./exhaustive.ts";

const seed = 20_260_105;
const numRuns = times(15);
const DATA_START = Date.parse("2026-01-05T00:00:00Z");
const DAYS = 110;

/** What a workspace misses of a meter by one dimension: some runs of days. */
const missing = fc
  .array(fc.tuple(fc.nat({ max: DAYS - 1 }), fc.integer({ min: 1, max: 70 })), { maxLength: 3 })
  .map((runs) => {
    const days = new Set(
      runs.flatMap(([from, length]) => Array.from({ length }, (_, at) => Math.min(from + at, DAYS - 1))),
    );
    return runsOf([...days].sort((a, b) => a - b));
  });

/** Gapless runs of days, half-open, epoch milliseconds. */
function runsOf(days: readonly number[]): Interval[] {
  const runs: { start: number; end: number }[] = [];
  for (const day of days) {
    const start = DATA_START + day * DAY_MS;
    const last = runs.at(-1);
    if (last?.end === start) last.end = start + DAY_MS;
    else runs.push({ start, end: start + DAY_MS });
  }
  return runs;
}

/** Of each meter: its first day, counted from the data start, and what each workspace misses by workspace and by project. */
const demand = fc.record({
  startsAfter: fc.nat({ max: 60 }),
  byWorkspace: fc.array(missing, { minLength: 1, maxLength: 3 }),
  byProject: missing,
});

test("with several kinds and tiers, each scope is asked for in the windows of the exhaustive search, and no request is there twice", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(fc.constantFrom<Meter>(...METERS), demand), {
        selector: ([meter]) => meter,
        minLength: 2,
      }),
      (meters) => {
        const tasks = meters.flatMap(([meter, given]) => {
          const start = DATA_START + given.startsAfter * DAY_MS;
          const scopes = scopesOf(given);
          const range = { start: DATA_START, end: DATA_START + DAYS * DAY_MS };
          const own = planTasks({
            ...{ meter, scopes, wanted: [{ stride: "day", range }], dataStart: start },
          });
          expect(own.every((task) => task.meter === meter)).toBe(true);
          for (const scope of scopes) expect(windowsOf(own, scope)).toEqual(best(scope, start));
          return own;
        });
        const names = tasks.map(({ meter, groupBy, window, members }) => {
          const isShared = groupBy === "workspace" && !METER[meter].isByWorkspace;
          return `${meter} ${groupBy} ${window.start} ${window.end} ${isShared ? "" : members[0]?.workspaceId}`;
        });
        // Workspaces that miss the same time share a request, but for meters by workspace: so no window of a meter is asked for twice.
        expect(new Set(names).size).toBe(names.length);
      },
    ),
    { seed, numRuns },
  );
});

function scopesOf({ byWorkspace, byProject }: { byWorkspace: Interval[][]; byProject: Interval[] }) {
  const scope = (groupBy: GroupBy, at: number, parts: Interval[]): PlannedScope => {
    return {
      groupBy,
      stride: "day",
      missing: parts,
      scopeId: groupBy === "workspace" ? at : 100 + at,
      workspaceId: `w${at}`,
    };
  };
  return [...byWorkspace.map((parts, at) => scope("workspace", at, parts)), scope("project", 0, byProject)];
}

function windowsOf(tasks: readonly UsageRequest[], { scopeId }: PlannedScope) {
  return tasks
    .filter(({ members }) => members.some((member) => member.scopeId === scopeId))
    .map(({ window }) => window)
    .sort((a, b) => a.start - b.start);
}

/** Every gapless run that is missing after the first day, tiled by trying every cut. */
function best(scope: PlannedScope, start: number) {
  return scope.missing.flatMap((run) => {
    const from = Math.max(run.start, start);
    if (from >= run.end) return [];
    return searchBest(from / HOUR_MS, run.end / HOUR_MS, "day").map((piece) => ({
      stride: piece.stride,
      start: piece.start * HOUR_MS,
      end: piece.end * HOUR_MS,
    }));
  });
}
