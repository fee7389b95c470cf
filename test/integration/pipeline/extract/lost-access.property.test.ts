import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { syncByQueue } from "../../../support/by-queue.ts";
import { times } from "../../../support/drawn.ts";
import { type Bench, beginProject, setup, workspaceAt } from "../../../support/source.ts";
import { wrongFigures } from "../../../support/tables.ts";

/** Rule 4 of docs/rules.md over any history of a key that loses and regains workspaces. */

/** Workspaces of the stand-in: two with usage, and the one that has none until it begins. */
const PLACES = [0, 1, 4] as const;
const BEGINS = 4;

const place = fc.constantFrom(...PLACES);
const turn = fc.record({ do: fc.constantFrom("lose" as const, "regain" as const), place });
type Turn = typeof turn extends fc.Arbitrary<infer T> ? T : never;
const during = fc.option(turn, { nil: undefined, freq: 2 });
const command = fc.oneof(
  { weight: 3, arbitrary: turn },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("sync" as const), byQueue: fc.boolean(), during }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("backfill" as const),
      reprocess: fc.constantFrom("all" as const, "missing" as const),
      during,
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: "begin" as const }) },
);
const start = fc.record({ lost: fc.subarray([...PLACES]), listsUnreadable: fc.boolean() });

test("no figure is one that nobody could have read, and the truth is back with access, at the latest with the night's reconciliation", async () => {
  await fc.assert(
    fc.asyncProperty(start, fc.array(command, { minLength: 3, maxLength: 9 }), async (begin, commands) => {
      const bench = await setup();
      const { access, organisation } = bench.standin;
      const unseen = new Set<number>();
      const blind = new Set<number>();
      const apply = ({ do: what, place: index }: Turn) => {
        access.setReadable(workspaceAt(bench.standin, index), what === "regain");
        if (what === "regain" && unseen.delete(index)) blind.add(index);
      };
      access.listsUnreadable = begin.listsUnreadable;
      for (const index of begin.lost) access.setReadable(workspaceAt(bench.standin, index), false);
      const beginUsage = () => {
        const usage = { workspace: BEGINS, at: bench.today - DAY_MS, traces: 7 };
        if (
          organisation.projects.every(({ workspace }) => workspace !== workspaceAt(bench.standin, BEGINS))
        ) {
          beginProject(bench.standin, usage);
        }
      };
      let isRequested = true;
      for (const one of commands) {
        const opened = () => {
          unseen.clear();
          if ("during" in one && one.during !== undefined) {
            const { do: what, place: index } = one.during;
            const isLoss = what === "lose" && access.canRead(workspaceAt(bench.standin, index));
            if (isLoss && "byQueue" in one && one.byQueue) unseen.add(index);
            apply(one.during);
          }
        };
        if (one.do === "begin") beginUsage();
        else if ("place" in one) apply(one);
        else if (one.do === "sync" && one.byQueue) await syncByQueue(bench, opened);
        else if (one.do === "sync") await bench.sync({ opened });
        else {
          const range = { start: bench.dataStart, end: bench.today + DAY_MS };
          await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: one.reprocess }, { opened });
        }
        if (one.do === "sync" || one.do === "backfill") isRequested = !("byQueue" in one && one.byQueue);
        for (const index of isRequested ? [0, 1].filter((one) => !blind.has(one)) : [])
          expect(await untrue(bench, workspaceAt(bench.standin, index).id)).toEqual([]);
      }
      for (const index of PLACES) apply({ do: "regain", place: index });
      for (const workspace of organisation.workspaces) access.setReadable(workspace, true);
      await bench.sync();
      if (blind.size > 0) await bench.reconcile({ repair: true });
      expect(await wrongFigures(bench)).toEqual([]);
      expect(await bench.sql("SELECT * FROM usage.failure")).toEqual([]);
      expect(await bench.sql("SELECT * FROM usage.lost_workspace")).toEqual([]);
      expect(
        await bench.sql("SELECT FROM reporting_detail.usage_coverage_daily WHERE status = 'unverified'"),
      ).toEqual([]);
    }),
    {
      // The three examples, and so many that are drawn.
      numRuns: 3 + times(3),
      examples: [
        [{ lost: [0], listsUnreadable: true }, [{ do: "sync", byQueue: true, during: undefined }]],
        [
          { lost: [], listsUnreadable: false },
          [
            { do: "sync", byQueue: true, during: { do: "lose", place: 0 } },
            { do: "regain", place: 0 },
            { do: "sync", byQueue: false, during: undefined },
          ],
        ],
        [
          { lost: [1], listsUnreadable: true },
          [
            { do: "sync", byQueue: false, during: undefined },
            { do: "regain", place: 1 },
            { do: "sync", byQueue: false, during: { do: "lose", place: 1 } },
            { do: "backfill", reprocess: "all", during: undefined },
            { do: "begin" },
            { do: "sync", byQueue: false, during: undefined },
          ],
        ],
      ],
    },
  );
});

async function untrue(bench: Bench, workspaceId: string) {
  const range = { start: bench.dataStart, end: bench.today + DAY_MS };
  const { organisation, ledger } = bench.standin;
  const edges = Array.from({ length: 8 }, (_, day) => range.start + day * DAY_MS);
  const truth = edges.slice(0, -1).map(() => 0);
  for (const stream of organisation.streams) {
    if (stream.project.workspace.id !== workspaceId) continue;
    for (const [day, traces] of ledger.counts(stream, edges).entries())
      truth[day] = (truth[day] ?? 0) + traces;
  }
  const rows = await bench.sql<{ usage_date: string; traces: number | null }>(
    "SELECT usage_date::text, traces FROM reporting.fct_usage_workspace_daily WHERE workspace_id = $1 ORDER BY 1",
    [workspaceId],
  );
  return rows.filter(({ traces }, day) => traces !== null && traces !== truth[day]);
}
