import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { FAULTS } from "./faults/faults.ts";
import { repeatedly } from "./world/fault.ts";
import { record, violationsOf } from "./world/history.ts";
import { checkEverything, untilIdle } from "./world/oracle.ts";
import { reported } from "./world/report.ts";
import { makeWorld } from "./world/world.ts";

/** Each fault alone, while syncs and a backfill run on two workers. What must hold afterwards: world/oracle.ts. */

const { CHAOS_SHORT, CHAOS_ONLY = "" } = process.env;
const chosen = FAULTS.filter(
  ({ name, isShort }) => (CHAOS_SHORT === undefined || isShort) && name.includes(CHAOS_ONLY),
);
const FIRST_LOAD_S = 120;
const CHANGE_EVERY_MS = 300;

test.each(chosen)("$name", { timeout: 1_200_000 }, async (fault) => {
  const options = typeof fault.options === "function" ? await fault.options() : fault.options;
  const world = await makeWorld(options);
  await reported(world, fault.name, async () => {
    await untilIdle(world, FIRST_LOAD_S);
    if (fault.withoutBackfill === undefined) await world.createBackfill();
    const history = record(world);
    const stopChanging =
      fault.withoutChanges === undefined
        ? repeatedly(CHANGE_EVERY_MS, () => world.change())
        : () => Promise.resolve();
    const end = await fault.begin(world);
    await pause(fault.forS * 1_000);
    await end();
    await stopChanging();
    world.change();
    const seconds = await untilIdle(world, fault.withinS);
    await history.stop();
    if (fault.mustHappen !== undefined) {
      expect(await world.sql(`SELECT ${fault.mustHappen} AS happened`)).toEqual([{ happened: true }]);
    }
    expect(history.events.some(({ kind }) => kind === "shown")).toBe(true);
    if (fault.withoutHistory === undefined) expect(violationsOf(history.events).slice(0, 20)).toEqual([]);
    const named = world.workers.flatMap((worker) => worker.log().map(({ code }) => code));
    if (fault.named !== undefined) expect(fault.named.some((code) => named.includes(code))).toBe(true);
    await checkEverything(world, fault.allowed);
    const recovered = Math.round(seconds * 10) / 10;
    return { fault: fault.name, lasted: fault.forS, recovered, within: fault.withinS };
  });
});
