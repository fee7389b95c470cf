import { randomUUID } from "node:crypto";
import type { Config } from "../config/config.ts";
import { requireDatabaseUrl } from "../config/config.ts";
import { EtlError, reasonOf, UnreachableError } from "../errors.ts";
import { faultOf } from "../faults.ts";
import type { Logger } from "../log.ts";
import { type Database, openStore, type Store } from "../store/db/database.ts";
import { readHeartbeat, removeHeartbeat, writeHeartbeat } from "../store/db/heartbeat.ts";
import { inSnapshot } from "../store/db/snapshot.ts";
import { within } from "./http/health.ts";

const EVERY_MS = 2_000;
const CONNECTIONS = 4;
/** Whoever waits for a page gets it from the primary. */
const CONNECT_MS = 2_000;
const STATEMENT_TIMEOUT_MS = 8_000;

/** How old what a replica shows is. */
export interface Age {
  /** By the primary's clock, epoch milliseconds: everything that was committed before is shown. */
  readonly asOf: number;
  /** Milliseconds since then, at most. */
  readonly lagMs: number;
  /** Beyond the limit, and shown only since the primary does not answer. */
  readonly isOld: boolean;
}

/** Where something is read. Without an age it is the primary. */
export interface Reading {
  readonly db: Database;
  readonly age?: Age;
}

/** `starting`: nothing of this process has arrived yet. */
type State = "starting" | "used" | "behind" | "away";

/** A replica that pages and metrics are read from while it is near the primary. */
export interface Replica {
  /**
   * Reads as of one instant of the replica, or on `primary` if the replica is away or too far behind. `work` may run twice.
   * `mayBeOld`: if the primary does not answer either, the replica is read however old it is.
   */
  read<T>(
    given: { readonly primary: Database; readonly mayBeOld: boolean },
    work: (reading: Reading) => Promise<T>,
  ): Promise<T>;
  /** When the replica was last looked at. Undefined milliseconds: not known. */
  seen(): { readonly lagMs: number | undefined; readonly isUsed: boolean };
  close(): Promise<void>;
}

interface ReplicaOptions {
  /** One connection of its own, so that a heartbeat does not wait for loads. */
  readonly primary: Store;
  readonly replica: Store;
  readonly maxLagMs: number;
  readonly log: Logger;
  /** Default: two seconds. */
  readonly everyMs?: number;
  /** Milliseconds that only grow. */
  readonly monotonic?: () => number;
}

/** Undefined: no replica is configured. */
export function replicaOf(config: Config, log: Logger): Replica | undefined {
  const { databaseReadUrl, readMaxLagMs, pool } = config;
  if (databaseReadUrl === undefined) return undefined;
  return startReplica({
    primary: openStore({
      url: requireDatabaseUrl(config),
      connectMs: pool.connectMs,
      maxConnections: 1,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    }),
    replica: openStore({
      url: databaseReadUrl,
      variable: "DATABASE_READ_URL",
      maxConnections: CONNECTIONS,
      connectMs: Math.min(CONNECT_MS, pool.connectMs),
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    }),
    maxLagMs: readMaxLagMs,
    log,
  });
}

/** Writes a heartbeat every two seconds, and looks for it on the replica. */
export function startReplica(options: ReplicaOptions): Replica {
  const { primary, replica, maxLagMs, everyMs = EVERY_MS, log } = options;
  const { monotonic = () => performance.now() } = options;
  const heart = createHeart(primary.db, monotonic);
  const standing = createStanding(log);
  let lagMs: number | undefined;

  async function look(): Promise<void> {
    try {
      const asOf = await heart.seenOn(replica.db);
      lagMs = asOf === undefined ? undefined : heart.ageOf(asOf);
      const late = lagMs ?? heart.sinceStart();
      if (late > maxLagMs) {
        const silence = heart.silence();
        const why = silence === undefined ? "" : `; the primary takes no heartbeat: ${silence}`;
        standing.enter("behind", `it is ${Math.round(late / 1000)} s behind or more${why}`);
      } else if (lagMs !== undefined) standing.enter("used");
    } catch (error) {
      lagMs = undefined;
      standing.enter("away", reasonOf(error));
    }
  }

  const beating = onceAtATime(heart.beat);
  const looking = onceAtATime(look);
  const tick = () => {
    beating.start();
    looking.start();
  };
  const timer = setInterval(tick, everyMs).unref();
  tick();

  /** Undefined: it cannot be read there, or is older than `most` milliseconds. */
  async function onReplica<T>(
    work: (reading: Reading) => Promise<T>,
    most: number,
  ): Promise<{ readonly value: T } | undefined> {
    try {
      return await inSnapshot(replica.db, async (db) => {
        // In the same snapshot: behind one address there may be several replicas.
        const asOf = await heart.seenOn(db).catch((cause) => {
          throw faultOf(cause) ?? silent(cause);
        });
        if (asOf === undefined || heart.ageOf(asOf) > most) return undefined;
        const lag = heart.ageOf(asOf);
        return { value: await work({ db, age: { asOf, lagMs: lag, isOld: lag > maxLagMs } }) };
      });
    } catch (error) {
      const { code } = error as { code?: string };
      // Too much was asked for. The primary should not be kept busy with it as well.
      if (code === "57014") throw error;
      if (faultOf(error) instanceof UnreachableError) standing.enter("away", reasonOf(error));
      // 40001: the primary removed meanwhile what was read. Something unknown may be known on the primary.
      else if (!(error instanceof EtlError) && code !== "40001") standing.refused(reasonOf(error));
      return undefined;
    }
  }

  return {
    read: async ({ primary: db, mayBeOld }, work) => {
      if (standing.isUsed()) {
        const done = await onReplica(work, maxLagMs);
        if (done !== undefined) return done.value;
      }
      try {
        return await work({ db });
      } catch (error) {
        if (!mayBeOld || !(faultOf(error) instanceof UnreachableError)) throw error;
        const done = await onReplica(work, Number.POSITIVE_INFINITY);
        if (done === undefined) throw error;
        return done.value;
      }
    },
    seen: () => ({ lagMs, isUsed: standing.isUsed() }),
    close: async () => {
      clearInterval(timer);
      await within(Promise.resolve(beating.running())).catch(() => {});
      await within(heart.remove()).catch(() => {});
      await Promise.all([primary.close(), replica.close()]);
      await looking.running();
    },
  };
}

/** The heartbeat that this process writes on the primary, and what it says of a replica. */
function createHeart(primary: Database, monotonic: () => number) {
  const process = randomUUID();
  const startedAt = monotonic();
  /** The last that was certainly written: by the primary's clock, and by ours before it was sent. */
  let last: { readonly at: number; readonly sentAt: number } | undefined;
  let silence: string | undefined;
  return {
    beat: async () => {
      const sentAt = monotonic();
      try {
        last = { at: await writeHeartbeat(primary, process), sentAt };
        silence = undefined;
      } catch (error) {
        silence = reasonOf(error);
      }
    },
    /** Why the primary got no heartbeat; undefined: it got one. */
    silence: () => silence,
    /** The last heartbeat that has arrived, by the primary's clock. */
    seenOn: (db: Database) => within(readHeartbeat(db, process)),
    /** Milliseconds, never less than it is: the time that the heartbeat took counts. */
    ageOf: (asOf: number) =>
      last === undefined ? Number.POSITIVE_INFINITY : Math.max(0, last.at - asOf) + monotonic() - last.sentAt,
    sinceStart: () => monotonic() - startedAt,
    remove: () => removeHeartbeat(primary, process),
  };
}

/** Whether the replica is used, and the log of it: each change once. */
function createStanding(log: Logger) {
  let state: State = "starting";
  let refusal: string | undefined;
  return {
    isUsed: () => state === "used",
    enter: (next: Exclude<State, "starting">, reason?: string) => {
      if (next === state) return;
      state = next;
      if (next === "used") log.info({ replica: next }, "pages and metrics are read from the replica");
      else {
        const code = next === "away" ? "replica_unreachable" : "replica_behind";
        log.warn({ code, reason }, "pages and metrics are read from the primary");
      }
    },
    refused: (reason: string) => {
      if (reason === refusal) return;
      refusal = reason;
      log.warn({ code: "replica_refused", reason }, "the replica refuses what the primary answers");
    },
  };
}

/** `start` does nothing while the work is under way. */
function onceAtATime(work: () => Promise<void>) {
  let running: Promise<void> | undefined;
  return {
    start: () => {
      running ??= work().finally(() => {
        running = undefined;
      });
    },
    running: () => running,
  };
}

/** It gave no answer in time. An error of Postgres has a code, and is told as it is. */
function silent(cause: Error): Error {
  if ("code" in cause) return cause;
  return new UnreachableError({
    code: "replica_unreachable",
    message: `The replica gave ${cause.message}.`,
    next: "The primary is read instead.",
    retryable: true,
    cause,
  });
}
