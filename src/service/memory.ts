import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Gives memory back in a process that rests. V8 keeps garbage until it needs room, which such a process never does. */
export interface MemoryWatch {
  /** Bytes of memory and milliseconds of processor time that the process has taken. */
  readonly taken: () => { bytes: number; cpuMs: number };
  readonly collect: () => void;
}

const LOOK_EVERY_MS = 30_000;
/** A process that took less since the last look rests. Looking for tasks and answering probes takes about 0.1 s. */
const AT_REST_MS = 1_000;
/** Less is not worth the pause, of some 0.1 s. */
const WORTH_BYTES = 16_000_000;

/** From now on. Returns what ends it. */
export function keepMemorySmall(watch: MemoryWatch = thisProcess()): () => void {
  const look = createLook(watch);
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return () => clearInterval(timer);
}

/**
 * Collects garbage if the process did little since the last look, and has grown since the last collection. The first time it
 * gives back what starting took.
 */
export function createLook({ taken, collect }: MemoryWatch): () => void {
  let { cpuMs: before } = taken();
  // What a collection left is known at the next look: the system gets the memory a little later.
  let left: number | undefined = 0;
  return () => {
    const { bytes, cpuMs } = taken();
    const rests = cpuMs - before < AT_REST_MS;
    before = cpuMs;
    left ??= bytes;
    if (!rests || bytes < left + WORTH_BYTES) return;
    collect();
    left = undefined;
  };
}

function thisProcess(): MemoryWatch {
  let collectAll: ((options: object) => void) | undefined;
  return {
    taken: () => {
      const { user, system } = process.cpuUsage();
      return { bytes: process.memoryUsage.rss(), cpuMs: (user + system) / 1000 };
    },
    collect: () => {
      if (collectAll === undefined) {
        setFlagsFromString("--expose-gc");
        collectAll = runInNewContext("gc") as (options: object) => void;
        // What is compiled under other settings is not kept for the next start.
        setFlagsFromString("--no-expose-gc");
      }
      // "last-resort" also drops code that has not run lately.
      collectAll({ type: "major", flavor: "last-resort" });
    },
  };
}
