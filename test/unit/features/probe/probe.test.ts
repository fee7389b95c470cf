import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareProbe, type WorkspaceReading } from "../../../../src/features/probe/probe.ts";

const OWN = "own";
const USER = "(none)";
const KEY = "sk...1234";
const HOME = "home";
const reading = (
  project: Record<string, number>,
  more: { workspace?: number; user?: number; api_key?: number } = {},
): WorkspaceReading => {
  const all = Object.values(project).reduce((sum, one) => sum + one, 0);
  const { workspace = all, user = all, api_key = all } = more;
  return { project, workspace, user: { "": user }, api_key: { [KEY]: api_key } };
};
const comparisonOf = (before: WorkspaceReading, after: WorkspaceReading, expected = 6) =>
  compareProbe({
    before: new Map([[HOME, before]]),
    after: new Map([[HOME, after]]),
    home: HOME,
    projectId: OWN,
    expected,
    user: USER,
    key: "...1234",
  });
const compare = (...given: Parameters<typeof comparisonOf>) =>
  Object.fromEntries(comparisonOf(...given).figures.map((figure) => [figure.groupBy, figure]));

test("too little is lacking, too much of others is unexplained, and too much of its own is billed", () => {
  const before = reading({ other: 100 });
  const progress = (own: number, more = {}) =>
    comparisonOf(before, reading({ other: 100, [OWN]: own }, more)).progress;
  expect(progress(6)).toBe("billed");
  expect(progress(5)).toBe("lacking");
  expect(progress(6, { user: 105 })).toBe("lacking");
  expect(progress(6, { user: 107 })).toBe("unexplained");
  expect(progress(7)).toBe("billed");
  // What others lost meanwhile may hide as much.
  const lost = (user: number) => comparisonOf(before, reading({ other: 98, [OWN]: 6 }, { user })).progress;
  expect([103, 104].map(lost)).toEqual(["lacking", "billed"]);
});

describe("with other traffic", () => {
  test("a figure outside its bounds is a difference", () => {
    const before = reading({ a: 50, b: 50, [OWN]: 1 });
    for (const [rise, difference] of [
      [3, -1],
      [4, 0],
      [9, 0],
      [10, 1],
    ] as const) {
      const after = reading({ a: 53, b: 48, [OWN]: 7 }, { user: 101 + rise });
      const { figures, others } = comparisonOf(before, after);
      expect(others).toEqual({ added: 3, removed: 2 });
      expect(figures[2]).toMatchObject({ groupBy: "user", difference });
      // Nobody else sends to the probe's own project.
      expect(figures[1]).toMatchObject({ groupBy: "project", billed: 6, difference: 0 });
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
            meter[project] = (meter[project] ?? 0) + (project === "c" ? -Math.abs(traces) : Math.abs(traces));
          }
        };
        const whole = () => Object.values(meter).reduce((sum, one) => sum + one, 0);
        const total = () => {
          meanwhile();
          return whole();
        };
        const projectsBefore = { ...meter };
        const figuresNow = () => ({ workspace: total(), user: total(), api_key: total() });
        const before = reading(projectsBefore, figuresNow());
        meanwhile();
        meter[OWN] = sent;
        const now = figuresNow();
        meanwhile();
        const figures = compare(before, reading({ ...meter }, now), sent);
        for (const figure of Object.values(figures)) expect(figure.difference).toBe(0);
      }),
    );
  });
});
