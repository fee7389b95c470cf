import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareProbe, type WorkspaceReading } from "../../../src/domain/probe.ts";

const OWN = "own";
const reading = (
  projects: Record<string, number>,
  more: Partial<WorkspaceReading> = {},
): WorkspaceReading => {
  const all = Object.values(projects).reduce((sum, one) => sum + one, 0);
  return { projects, workspace: all, user: all, api_key: all, ...more };
};
const compare = (before: WorkspaceReading, after: WorkspaceReading, expected = 6) =>
  Object.fromEntries(
    compareProbe({ before: [before], after: [after], projectId: OWN, expected }).map((figure) => [
      figure.groupBy,
      figure,
    ]),
  );

describe("without other traffic", () => {
  test("every dimension must rise by exactly what was sent", () => {
    const figures = compare(reading({ other: 100 }), reading({ other: 100, [OWN]: 6 }));
    for (const groupBy of ["project", "workspace", "user", "api_key"]) {
      expect(figures[groupBy]).toMatchObject({ billed: 6, othersAdded: 0, othersRemoved: 0, difference: 0 });
    }
  });

  test("one trace too few or too many in one dimension is a difference of one", () => {
    const before = reading({ other: 100 });
    const after = reading({ other: 100, [OWN]: 6 });
    for (const groupBy of ["workspace", "user", "api_key"] as const) {
      for (const wrong of [-1, 1]) {
        const figures = compare(before, { ...after, [groupBy]: after[groupBy] + wrong });
        expect(Object.values(figures).map((one) => [one.groupBy, one.difference])).toEqual(
          ["workspace", "project", "user", "api_key"].map((by) => [by, by === groupBy ? wrong : 0]),
        );
      }
    }
  });
});

test("a project that no answer names has no billed trace", () => {
  const figures = compareProbe({
    before: [reading({})],
    after: [reading({})],
    projectId: undefined,
    expected: 6,
  });
  expect(figures.map((figure) => figure.difference)).toEqual([-6, -6, -6, -6]);
});

describe("with other traffic", () => {
  test("a figure outside its bounds is a difference", () => {
    const before = reading({ a: 50, b: 50, [OWN]: 1 });
    const after = reading({ a: 53, b: 48, [OWN]: 7 });
    // Others added 3 and lost 2: from 4 to 9 is possible.
    for (const [rise, difference] of [
      [3, -1],
      [4, 0],
      [9, 0],
      [10, 1],
    ] as const) {
      expect(compare(before, { ...after, user: before.user + rise }).user).toMatchObject({
        othersAdded: 3,
        othersRemoved: 2,
        difference,
      });
    }
  });

  /**
   * A platform that bills right, with others who send and are restated at any time: between any two of the requests that
   * make up a reading, too. No order of it may be called a difference.
   */
  test("traffic between any two requests is never a difference", () => {
    const steps = fc.array(
      fc.record({ project: fc.constantFrom("a", "b", "c"), traces: fc.integer({ min: -3, max: 5 }) }),
      { maxLength: 4 },
    );
    const traffic = fc.record({
      gaps: fc.array(steps, { minLength: 8, maxLength: 8 }),
      sent: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(traffic, ({ gaps, sent }) => {
        const meter: Record<string, number> = { a: 40, b: 40, c: 40 };
        let gap = 0;
        const meanwhile = () => {
          for (const { project, traces } of gaps[gap++] ?? []) {
            // Others' figures only grow, or only shrink, between the two readings: see below.
            meter[project] = (meter[project] ?? 0) + (project === "c" ? -Math.abs(traces) : Math.abs(traces));
          }
        };
        const whole = () => Object.values(meter).reduce((sum, one) => sum + one, 0);
        const total = () => {
          meanwhile();
          return whole();
        };
        const projectsBefore = { ...meter };
        const before = { projects: projectsBefore, workspace: total(), user: total(), api_key: total() };
        meanwhile();
        meter[OWN] = sent;
        const after = { workspace: total(), user: total(), api_key: total() };
        meanwhile();
        const figures = compare(before, { ...after, projects: { ...meter } }, sent);
        for (const figure of Object.values(figures)) expect(figure.difference).toBe(0);
      }),
    );
  });
});
