import { setTimeout as pause } from "node:timers/promises";
import type { Allowed } from "./oracle.ts";
import type { Worker } from "./worker.ts";
import type { World, WorldOptions } from "./world.ts";

/** One fault, and what may be expected of the service. */
export interface Fault {
  readonly name: string;
  /** What it strikes. Two faults at once never strike the same. */
  readonly on: "workers" | "redis" | "postgres" | "platform" | "together";
  /** Causes it. Resolves, once it is there, to what ends it. */
  readonly begin: (world: World) => Promise<() => Promise<void>>;
  /** How long it lasts, seconds. */
  readonly forS: number;
  /** From its end until every figure is right and no work is left, seconds. */
  readonly withinS: number;
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
  /** The platform contradicts itself, or Postgres goes back in time: only the end is checked. */
  readonly withoutHistory?: true;
  /** Part of the short form. */
  readonly isShort?: true;
  /** May be drawn at random: it can be overlapped, and needs no world of its own. */
  readonly isRandom?: true;
}

/** The first worker that was not ended, or the one at that place among them. */
export function worker(world: World, place = 0): Worker {
  const alive = world.workers.filter(({ isGone }) => !isGone);
  const found = alive[place % Math.max(1, alive.length)];
  if (found === undefined) throw new Error("no worker is left");
  return found;
}

export function all(world: World): Worker[] {
  return world.workers.filter(({ isGone }) => !isGone);
}

export function kill(victim: Worker, signal: NodeJS.Signals = "SIGKILL"): void {
  victim.isGone = true;
  victim.running.process.kill(signal);
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
