import { setTimeout as pause } from "node:timers/promises";
import { type Dice, dice } from "../../../src/features/standin/engine/random.ts";
import type { Server } from "./servers.ts";
import type { Worker, World, WorldOptions } from "./world.ts";

/** What may be left of a fault once everything is quiet again. */
export interface Allowed {
  /** The platform's responses may be kept as failures, which end fetch tasks and jobs; they are asked again by themselves. */
  readonly failures?: boolean;
}

/** One fault, and what may be expected of the service. */
export interface FaultOf {
  readonly name: string;
  /** "30 s, within 60 s, short, random": how long it lasts, and from its end until every figure is right and no work is left. */
  readonly how: string;
  readonly begin: (world: World) => Promise<() => Promise<void>>;
  /** Codes of log lines of which each worker's log, or one of them, must have one. */
  readonly named?: readonly string[];
  readonly allowed?: Allowed;
  /** What must have happened meanwhile, as a condition in SQL. Else the row has proved nothing. */
  readonly mustHappen?: string;
  readonly options?: (() => Promise<WorldOptions>) | WorldOptions;
  /** Default: a backfill of all that is final runs meanwhile. */
  readonly withoutBackfill?: true;
  /** Default: usage changes until the fault is over. Here `begin` changes it, since it waits for figures that stand still. */
  readonly withoutChanges?: true;
  readonly withoutHistory?: true;
}

export type Fault = ReturnType<typeof faultOn>;

/** A random fault can be overlapped, and needs no world of its own. */
export function faultOn(
  on: "workers" | "redis" | "postgres" | "platform" | "receiver" | "together",
  { how, ...fault }: FaultOf,
) {
  const [, forS, withinS, more = ""] = /^(\d+) s, within (\d+) s((?:, (?:short|random))*)$/.exec(how) ?? [];
  if (withinS === undefined)
    throw new Error(`${fault.name}: ${how} is not such as "30 s, within 60 s, random"`);
  const [isShort, isRandom] = [more.includes("short"), more.includes("random")];
  return { ...fault, on, forS: Number(forS), withinS: Number(withinS), isShort, isRandom };
}

export function worker(world: World): Worker {
  const [first] = all(world);
  if (first === undefined) throw new Error("no worker is left");
  return first;
}

export function all(world: World): Worker[] {
  return world.workers.filter(({ isGone }) => !isGone);
}

export function kill(victim: Worker, signal: NodeJS.Signals = "SIGKILL"): void {
  victim.isGone = true;
  victim.running.process.kill(signal);
}

/** A server that is gone until the end. */
export async function killed(server: Server): Promise<() => Promise<void>> {
  await server.kill();
  return () => server.start();
}

/** Repeats until it is ended. */
export function repeatedly(everyMs: number, act: () => unknown): () => Promise<void> {
  let isOver = false;
  const loop = (async () => {
    while (!isOver) {
      await Promise.resolve(act()).catch(() => {});
      await pause(everyMs);
    }
  })();
  return async () => {
    isOver = true;
    await loop;
  };
}

/** One fault of a random run. Times in milliseconds from its start. */
export interface Planned {
  readonly fault: Fault;
  readonly at: number;
  readonly forMs: number;
}

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
