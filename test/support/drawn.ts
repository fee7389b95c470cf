import { randomInt } from "node:crypto";

/** Random inputs and histories. `SEED=n` repeats a run: it stands in the titles. `TIMES=n` draws n times as many. */

/** The seed of this run; without `SEED` the fixed one, or another one each time. */
export function seed(fixed = randomInt(2 ** 31)): number {
  return Number(process.env.SEED ?? fixed);
}

export function times(runs: number): number {
  return runs * Number(process.env.TIMES ?? 1);
}
