import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NOW, SEED, setup, sum } from "./setup.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const FROM = Date.parse("2026-01-01");
const GROUPINGS = ["workspace", "project", "user", "api_key"];

/** A range of up to two years, on any second: on the grid, off it, before the data, in the future. */
const range = fc
  .record({
    start: fc.integer({ min: FROM / 1000, max: NOW / 1000 }),
    length: fc.oneof(
      fc.integer({ min: 1, max: DAY / 1000 }),
      fc.integer({ min: 1, max: (750 * DAY) / 1000 }),
      fc.integer({ min: 1, max: 40 }).map((days) => (days * DAY) / 1000),
    ),
  })
  .map(({ start, length }) => ({ start: start * 1000, end: (start + length) * 1000 }));

const runs = { numRuns: 60, seed: SEED };

describe(`traces are conserved (SEED=${SEED})`, () => {
  test("every dimension and its CSV add up to the same traces", async () => {
    const { usage, csv } = await setup({ seed: SEED });
    await fc.assert(
      fc.asyncProperty(range, async (asked) => {
        const answers = await Promise.all(GROUPINGS.map((by) => usage({ ...asked, by })));
        const exports = await Promise.all(GROUPINGS.map((by) => csv({ ...asked, by })));
        const sums = answers.map(sum);
        expect(new Set(sums).size).toBe(1);
        expect(exports.map((lines) => lines.reduce((all, line) => all + Number(line.Traces), 0))).toEqual(
          sums,
        );
        expect(exports.map((lines) => lines.length)).toEqual(answers.map((answer) => answer.usage.length));
      }),
      runs,
    );
  });

  test("a range adds up to its parts, in every stride and alignment", async () => {
    const { standin, usage } = await setup({ seed: SEED });
    const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(range, cuts, async ({ start, end }, shares) => {
        const inner = shares.map((share) => start + Math.floor(((end - start) * share) / 1000) * 1000);
        const edges = [...new Set([start, ...inner, end])].sort((a, b) => a - b);
        standin.settings.align = "window";
        const all = sum(await usage({ start, end }));
        standin.settings.align = "epoch";
        expect(sum(await usage({ start, end }))).toBe(all);
        const parts = edges
          .slice(1)
          .map(async (to, i) => sum(await usage({ start: edges[i] ?? 0, end: to })));
        expect((await Promise.all(parts)).reduce((a, b) => a + b, 0)).toBe(all);
      }),
      runs,
    );
  });

  test("late arrivals and restatements show alike in every answer", async () => {
    const { standin, usage } = await setup({ seed: SEED });
    const { streams, users, keys, projects } = standin.organisation;
    const edit = fc.record({
      project: fc.constantFrom(...projects),
      user: fc.constantFrom(...users, null),
      key: fc.constantFrom(...keys, null),
      at: fc.integer({ min: Date.parse("2026-01-05"), max: NOW - 1 }),
      delta: fc.integer({ min: -500, max: 500 }),
    });
    const seeded = fc.record({ stream: fc.constantFrom(...streams), edit }).map(({ stream, edit }) => ({
      ...edit,
      project: stream.project,
      user: stream.user,
      key: stream.key,
    }));
    await fc.assert(
      fc.asyncProperty(fc.oneof(edit, seeded), async ({ delta, ...cell }) => {
        const asked = { start: Math.floor(cell.at / DAY) * DAY, end: Math.floor(cell.at / DAY) * DAY + DAY };
        const before = sum(await usage(asked));
        const change = standin.ledger.change(cell, delta);
        expect(change.after).toBe(Math.max(0, change.before + delta));
        const readable = standin.access.canRead(cell.project.workspace);
        for (const by of GROUPINGS) {
          const expected = before + (readable ? change.after - change.before : 0);
          expect(sum(await usage({ ...asked, by }))).toBe(expected);
        }
      }),
      runs,
    );
  });

  test("each seed gives its own history", async () => {
    const asked = { start: "2026-03-01", end: "2026-03-20", by: "project" };
    const [one, two, other] = [await setup({ seed: 7 }), await setup({ seed: 7 }), await setup({ seed: 8 })];
    expect(await one.usage(asked)).toEqual(await two.usage(asked));
    expect(sum(await one.usage(asked))).not.toBe(sum(await other.usage(asked)));
  });
});
