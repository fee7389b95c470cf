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

describe("without other traffic", () => {
  test("one trace too few or too many in one dimension is a difference of one", () => {
    const before = reading({ other: 100 });
    for (const groupBy of ["workspace", "user", "api_key"] as const) {
      for (const wrong of [-1, 1]) {
        const figures = compare(before, reading({ other: 100, [OWN]: 6 }, { [groupBy]: 106 + wrong }));
        expect(Object.values(figures).map((one) => [one.groupBy, one.difference])).toEqual(
          ["workspace", "project", "user", "api_key"].map((by) => [by, by === groupBy ? wrong : 0]),
        );
      }
    }
  });
});

test("until the workspace is known, all are compared together, also one that is new", () => {
  const { figures, others } = compareProbe({
    before: new Map([["far", reading({ a: 5 })]]),
    after: new Map([
      ["far", reading({ a: 5 })],
      [HOME, reading({ [OWN]: 6 })],
    ]),
    home: undefined,
    projectId: undefined,
    expected: 6,
    user: "nobody",
    key: "...none",
  });
  // All are other people's traces as long as no project is the probe's, and none is of whom the probe expects.
  expect(others).toEqual({ added: 6, removed: 0 });
  expect(figures).toMatchObject([
    { groupBy: "workspace", expectedId: null, billed: 6, difference: 0 },
    { groupBy: "project", expectedId: null, billed: 0, difference: -6 },
    { groupBy: "user", expectedId: "nobody", billed: 6, difference: -6 },
    { groupBy: "api_key", expectedId: "...none", billed: 6, difference: -6 },
  ]);
});

describe("by id", () => {
  const before = reading({ other: 10 });
  const later = (user: Record<string, number>, api_key: Record<string, number> = { [KEY]: 16 }) => ({
    ...reading({ other: 10, [OWN]: 6 }),
    user,
    api_key,
  });

  test("a rise of other ids that nobody else's traffic accounts for is a difference", () => {
    expect(compare(before, later({ "": 16, u: 5, v: -5 })).user).toMatchObject({ billed: 6, difference: 5 });
  });
});

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
