import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Gives memory back in a process that rests, and in one that works before it holds much garbage. V8 keeps garbage until it needs
 * room: a process that rests never does, and one that reads an answer after the other fills 130 MB first.
 */
export interface MemoryWatch {
  /** Bytes of memory and milliseconds of processor time that the process has taken. */
  readonly taken: () => { bytes: number; cpuMs: number };
  /** `all`: code that has not run lately too. */
  readonly collect: (what: { all: boolean }) => void;
}

const LOOK_EVERY_MS = 5_000;
/** Whether the process rests is decided by so many looks together. */
const LOOKS_TO_REST = 6;
/** A process that took less in that time rests. Looking for tasks and answering probes takes about 0.1 s. */
const AT_REST_MS = 1_000;
/** At rest, less is not worth the pause, of some 0.1 s. */
const WORTH_BYTES = 16_000_000;
/** How much a process that works may grow. */
const GROWN_BYTES = 64_000_000;

/** From now on. Returns what ends it. */
export function keepMemorySmall(): () => void {
  const look = createLook(thisProcess());
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return () => clearInterval(timer);
}

/**
 * Collects garbage if the process did little of late and has grown since the last collection, or if it has grown much. The first
 * time it gives back what starting took.
 */
export function createLook({ taken, collect }: MemoryWatch): () => void {
  let { cpuMs: before } = taken();
  let looks = 0;
  // What a collection left is known at the next look: the system gets the memory a little later.
  let left: number | undefined = 0;
  let wasAll = false;
  return () => {
    const { bytes, cpuMs } = taken();
    looks += 1;
    let rests = false;
    if (looks % LOOKS_TO_REST === 0) {
      rests = cpuMs - before < AT_REST_MS;
      before = cpuMs;
    }
    left ??= bytes;
    const keepsCode = rests && !wasAll;
    if (!keepsCode && bytes < left + (rests ? WORTH_BYTES : GROWN_BYTES)) return;
    collect({ all: rests });
    wasAll = rests;
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
    collect: ({ all }) => {
      if (collectAll === undefined) {
        setFlagsFromString("--expose-gc");
        collectAll = runInNewContext("gc") as (options: object) => void;
        // What is compiled under other settings is not kept for the next start.
        setFlagsFromString("--no-expose-gc");
      }
      // "last-resort" also drops code that has not run lately.
      collectAll({ type: "major", flavor: all ? "last-resort" : "regular" });
    },
  };
}
