import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { dice } from "../../src/features/standin/engine/random.ts";
import { now } from "../support/clock.ts";
import { FAULTS } from "./faults/faults.ts";
import { runCommand } from "./world/commands.ts";
import { between, type Planned, repeatedly, schedule } from "./world/fault.ts";
import { record, violationsOf } from "./world/history.ts";
import { checkEverything, untilIdle } from "./world/oracle.ts";
import { reported } from "./world/report.ts";
import { makeWorld } from "./world/world.ts";

/**
 * Faults drawn by a seed, overlapped, while syncs, backfills and commands run and counts change. What Postgres showed is
 * checked afterwards against what the platform could respond (world/history.ts).
 */

const { CHAOS_RANDOM_MS, CHAOS_SEED = "20261105", CHAOS_SEEDS = "1", CHAOS_OUT = "" } = process.env;
const lengthMs = Number(CHAOS_RANDOM_MS ?? 0);
const seeds = Array.from({ length: Number(CHAOS_SEEDS) }, (_, i) => Number(CHAOS_SEED) + i);

/** A fault that waits for a load, or for a server, may wait in vain beside another fault. */
const STRIKES_WITHIN_MS = 60_000;
const IDLE_WITHIN_S = 180;

test.skipIf(lengthMs === 0).each(seeds)(
  "random faults, seed %i",
  { timeout: lengthMs * 2 + 900_000 },
  async (seed) => {
    const world = await makeWorld({ seed, workers: 2 });
    const rolls = dice(seed + 1);
    const file = CHAOS_OUT === "" ? undefined : join(CHAOS_OUT, `history-${seed}.jsonl`);
    await reported(world, `random, seed ${seed}`, async () => {
      await untilIdle(world, IDLE_WITHIN_S);
      const history = record(world, file);
      const changing = repeatedly(between(rolls, 500, 900), () => world.change());
      const commanding = repeatedly(5_000, async () => history.note(await runCommand(world, rolls)));
      const began = performance.now();
      const late: Promise<void>[] = [];
      const strike = async ({ fault, at, forMs }: Planned) => {
        await pause(Math.max(0, at - (performance.now() - began)));
        const about = (phase: "begins" | "ends" | "missed") =>
          history.note({ at: now(), kind: "fault", name: fault.name, phase });
        about("begins");
        const begun = fault.begin(world).catch(() => undefined);
        const end = await Promise.race([begun, pause(STRIKES_WITHIN_MS).then(() => undefined)]);
        if (end === undefined) {
          about("missed");
          // It may still strike.
          late.push(begun.then((end) => end?.()));
          return;
        }
        await pause(forMs);
        await end();
        about("ends");
      };
      await Promise.all(schedule(seed, lengthMs, FAULTS).map(strike));
      await Promise.all([changing(), commanding()]);
      await Promise.race([Promise.all(late), pause(STRIKES_WITHIN_MS)]);
      const seconds = await untilIdle(world, IDLE_WITHIN_S);
      await history.stop();
      expect(violationsOf(history.events).slice(0, 20)).toEqual([]);
      await checkEverything(world, { failures: true });
      const shown = history.events.filter(({ kind }) => kind === "shown").length;
      const faults = history.events.filter(
        (event) => event.kind === "fault" && event.phase === "ends",
      ).length;
      return {
        fault: `random, seed ${seed}`,
        lasted: lengthMs / 1_000,
        recovered: Math.round(seconds),
        within: IDLE_WITHIN_S,
        faults,
        shown,
      };
    });
  },
);
