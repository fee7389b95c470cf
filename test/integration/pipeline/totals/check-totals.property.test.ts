import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { times } from "../../../support/drawn.ts";
import { senderOn } from "../../../support/source.ts";
import { check, dayInside, errorOf, loaded, storeIsLedger, WORKSPACE } from "./bench.ts";

test.each(["window", "epoch"] as const)(
  "whatever was restated or contradicts itself, days end as the platform gives them and each window shows its error (buckets aligned to the %s)",
  async (align) => {
    const bench = await loaded(130, { align });
    const { standin } = bench;
    const span = { start: dayInside(bench, 17, 0), end: dayInside(bench, 2, 0) };
    const days = (span.end - span.start) / DAY_MS;
    const change = fc.record({ day: fc.nat(days - 1), delta: fc.integer({ min: -3, max: 9 }) });
    const holds = async (given: { restated: typeof changes; contradicted: typeof changes }) => {
      standin.discrepancies.length = 0;
      const wrong = new Map<number, number>();
      for (const { day, delta } of given.restated) {
        standin.ledger.change(senderOn(standin, WORKSPACE, span.start + day * DAY_MS), delta);
      }
      for (const { day, delta } of given.contradicted) {
        const at = span.start + day * DAY_MS;
        standin.discrepancies.push({
          stride: "day",
          groupBy: "workspace",
          cell: senderOn(standin, WORKSPACE, at),
          delta: delta + 4,
        });
        wrong.set(at, (wrong.get(at) ?? 0) + delta + 4);
      }
      await bench.fetch({
        wanted: [{ stride: "day", range: span }],
        reprocess: "all",
        groupings: ["workspace"],
      });
      const { findings, failed } = await check(bench);
      expect(failed).toEqual([]);
      const found = findings.filter((one) => one.kind === "stride_total" && one.groupBy === "workspace");
      const shown = ([at]: [number, number]) => found.some(({ start, end }) => at >= start && at < end);
      for (const one of found) {
        const inside = [...wrong].filter(([at]) => at >= one.start && at < one.end);
        expect(errorOf(one)).toBe(-inside.reduce((sum, [, delta]) => sum + delta, 0));
      }
      // Two errors in one window may cancel out. A window that shows nothing must not hide one.
      expect([...wrong].filter((day) => !shown(day)).reduce((sum, [, delta]) => sum + delta, 0)).toBe(0);
      standin.discrepancies.length = 0;
      await check(bench);
      await storeIsLedger(bench);
    };
    const changes: { day: number; delta: number }[] = [];
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          restated: fc.array(change, { maxLength: 4 }),
          contradicted: fc.array(change, { maxLength: 3 }),
        }),
        holds,
      ),
      { numRuns: times(3) },
    );
  },
);
