import { type Dice, dice } from "../../../src/local/standin/engine/random.ts";
import type { Fault } from "./fault.ts";

/** One fault of a random run. Times in milliseconds from its start. */
export interface Planned {
  readonly fault: Fault;
  readonly at: number;
  readonly forMs: number;
}

/** At most one fault strikes a target at a time; faults of different targets overlap. */
const GAP_MS = { least: 1_000, most: 15_000 };

/** The faults of a run, by its seed alone. */
export function schedule(seed: number, lengthMs: number, faults: readonly Fault[]): Planned[] {
  const rolls = dice(seed);
  const drawable = faults.filter(({ isRandom }) => isRandom);
  const busyUntil = new Map<string, number>();
  const planned: Planned[] = [];
  for (let at = 0; at < lengthMs; at += between(rolls, GAP_MS.least, GAP_MS.most)) {
    const fault = rolls.pick(drawable);
    const forMs = Math.round(fault.forS * 1_000 * (0.3 + rolls.next()));
    if ((busyUntil.get(fault.on) ?? 0) > at) continue;
    busyUntil.set(fault.on, at + forMs + GAP_MS.least);
    planned.push({ fault, at, forMs });
  }
  return planned;
}

export function between({ next }: Dice, least: number, most: number): number {
  return Math.round(least + next() * (most - least));
}
