import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import { extractSlice } from "../../../../src/pipeline/extract/extract.ts";
import { workMessage } from "../../../../src/pipeline/extract/work-slice.ts";
import { planSource } from "../../../../src/pipeline/sync/plan.ts";
import {
  claimSlice,
  enterSlices,
  releaseSlices,
  takeSlicesToQueue,
} from "../../../../src/store/work/slices.ts";
import { setup } from "../../../support/source.ts";

/** What becomes of a slice whose worker ended between its load and saying so. */

/** One slice of the source's settled days by project, fed to a queue; `take` feeds it again. */
async function setupSlice(range: { from: number; to: number } = { from: 0, to: 2 }) {
  const bench = await setup({ workspaces: [0] });
  const source = await bench.open();
  const { store, sourceId } = source;
  const start = bench.dataStart + range.from * DAY_MS;
  const end = bench.dataStart + range.to * DAY_MS;
  const [planned] = (
    await planSource(source, { wanted: [{ stride: "day", range: { start, end } }], reprocess: "all" })
  ).filter(({ groupBy }) => groupBy === "project");
  if (planned === undefined) throw new Error("no slice");
  await enterSlices(store.db, { sourceId, slices: [planned] });
  const feed = async () => {
    const [ticket] = await store.transaction(({ db }) => takeSlicesToQueue(db, { sourceId, most: 1 }));
    if (ticket === undefined) throw new Error("nothing to feed");
    return ticket;
  };
  return {
    ...bench,
    source,
    planned,
    feed,
    /** Takes the slice as a worker does that then ends without a word. */
    claimAndDie: async (work: () => Promise<unknown>) => {
      const ticket = await feed();
      expect(await claimSlice(store.db, ticket)).toBeDefined();
      await work();
      await releaseSlices(store.db, [ticket.sliceId]);
    },
    work: async () => workMessage(source, { ...(await feed()), isLastAttempt: false }),
    slices: () => bench.sql("SELECT state FROM usage.slice"),
    loads: async () => (await bench.sql("SELECT FROM usage.fetch WHERE outcome = 'loaded'")).length,
  };
}

test("a slice that was loaded by a worker that died is not fetched again", async () => {
  const bench = await setupSlice();
  await bench.claimAndDie(() => extractSlice(bench.source, bench.planned));
  expect(await bench.work()).toEqual({ outcome: "loaded_already" });
  expect(await bench.slices()).toEqual([]);
  expect(await bench.loads()).toBe(1);
});

test("a slice that was not loaded, or only in part, is fetched whole", async () => {
  const bench = await setupSlice();
  await bench.claimAndDie(async () => {});
  const [first] = await planSource(bench.source, {
    wanted: [{ stride: "day", range: { start: bench.dataStart, end: bench.dataStart + DAY_MS } }],
    reprocess: "all",
  }).then((slices) => slices.filter(({ groupBy }) => groupBy === "project"));
  if (first === undefined) throw new Error("no slice");
  await bench.claimAndDie(() => extractSlice(bench.source, first));
  expect(await bench.work()).toMatchObject({ outcome: "loaded", requests: 1 });
  expect(await bench.slices()).toEqual([]);
});

test("a load from before the slice was entered does not count", async () => {
  const bench = await setupSlice();
  await extractSlice(bench.source, bench.planned);
  await bench.sql("UPDATE usage.slice SET created_at = now()");
  await bench.claimAndDie(async () => {});
  expect(await bench.work()).toMatchObject({ outcome: "loaded", requests: 1 });
});
