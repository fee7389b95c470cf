import type { Clock } from "../src/clock.ts";
import type { EtlError } from "../src/errors.ts";
import { faultOf, stopsWrites } from "../src/faults.ts";
import type { Logger } from "../src/log.ts";
import { createHold, type Hold } from "./hold.ts";

/** Work goes on within this and one attempt after the store writes again. */
const CAP_MS = 15_000;
/** A gate that closes again sooner keeps its pauses: a load may need more room than the attempt. */
const RELAPSE_MS = 60_000;

/** Lets this process ask the platform only while the store can keep the answer. */
export interface StoreGate extends Hold {
  /** Why it is closed. */
  fault(): EtlError | undefined;
  /** Throws that while it is closed. */
  check(): void;
  /** Closes it if the error says that the store keeps nothing. Returns whether it does. */
  note(error: unknown): boolean;
  /** Runs a write now, or when the store writes again. */
  onceWritable(write: () => Promise<void>): Promise<void>;
}

interface GateInput {
  /** A cheap write that fails as a load would. */
  readonly tryWrite: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export function createStoreGate({ tryWrite, clock, log, signal }: GateInput): StoreGate {
  const { set, ...hold } = createHold();
  const owed: (() => Promise<void>)[] = [];
  let fault: EtlError | undefined;
  let attempt = 0;
  let openedAt = Number.NEGATIVE_INFINITY;

  /** What an error says of the store; undefined where it may still keep an answer. */
  const stopOf = (error: unknown) => {
    const found = faultOf(error);
    return found !== undefined && stopsWrites(found.code) ? found : undefined;
  };
  const say = ({ code, message }: EtlError) => {
    log.warn({ code, reason: message }, "store does not write: no fetch task is taken");
  };
  const write = async () => {
    await tryWrite();
    for (let next = owed[0]; next !== undefined; next = owed[0]) {
      await next();
      owed.shift();
    }
  };
  /** Tries with full jitter: a host's workers must not all come back to a server in the same instant. */
  const reopen = async (closedAt: number) => {
    for (;;) {
      await clock.wait(Math.random() * Math.min(CAP_MS, 1000 * 2 ** attempt++), signal);
      const stop = await write().then(() => undefined, stopOf);
      if (stop === undefined) break;
      if (stop.code !== fault?.code) say(stop);
      fault = stop;
    }
    openedAt = clock.now();
    // Without a code, so that no limit leaves it out.
    log.info({ fault: fault?.code, heldMs: openedAt - closedAt }, "store writes again");
    fault = undefined;
    set(false);
  };
  const note = (error: unknown) => {
    const stop = stopOf(error);
    if (stop === undefined) return false;
    if (fault !== undefined) return true;
    fault = stop;
    const closedAt = clock.now();
    if (closedAt - openedAt > RELAPSE_MS) attempt = 0;
    say(stop);
    set(true);
    // It only ends early with the process.
    reopen(closedAt).catch(() => {});
    return true;
  };
  return {
    ...hold,
    note,
    fault: () => fault,
    check: () => {
      if (fault !== undefined) throw fault;
    },
    onceWritable: async (later) => {
      try {
        if (fault === undefined) return await later();
      } catch (error) {
        if (!note(error)) throw error;
      }
      owed.push(later);
    },
  };
}
