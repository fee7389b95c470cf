import { expect, test } from "vitest";
import { heal, takeStep } from "./campaign/steps.ts";
import { makeWorld } from "./campaign/world.ts";

/**
 * Random loads, lost access, failures, restatements, moved settings, reconciliations, closes and prunes. After each command,
 * what it printed and its exit code are compared with the tables. `npm run campaign` runs 20 seeds of 30 steps.
 */

const { CAMPAIGN_SEEDS = "1", CAMPAIGN_STEPS = "10", CAMPAIGN_FIRST_SEED = "20260105" } = process.env;
const steps = Number(CAMPAIGN_STEPS);
const seeds = Array.from({ length: Number(CAMPAIGN_SEEDS) }, (_, i) => Number(CAMPAIGN_FIRST_SEED) + i);

test.each(seeds)("seed %i: every command says what the tables hold", { timeout: 900_000 }, async (seed) => {
  const world = await makeWorld(seed);
  try {
    for (let step = 0; step < steps; step++) await takeStep(world);
    await heal(world);
  } catch (error) {
    throw new Error(`seed ${seed}:\n${world.story.join("\n")}`, { cause: error });
  }
  expect(world.story.length).toBeGreaterThan(steps);
});
