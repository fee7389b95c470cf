import { randomUUID } from "node:crypto";
import type { Config } from "../config/config.ts";
import { requireDatabaseUrl } from "../config/config.ts";
import { EtlError, UnreachableError } from "../errors.ts";
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
  const process = randomUUID();
  const startedAt = monotonic();
  /** The last that was certainly written: by the primary's clock, and by ours before it was sent. */
  let beat: { readonly at: number; readonly sentAt: number } | undefined;
  let state: State = "starting";
  let lagMs: number | undefined;
  let told: string | undefined;
  /** Why the primary got no heartbeat. */
  let silence: string | undefined;

  /** Never less than it is: the time that the heartbeat took counts. */
  const ageOf = (asOf: number): number =>
    beat === undefined ? Number.POSITIVE_INFINITY : Math.max(0, beat.at - asOf) + monotonic() - beat.sentAt;

  function enter(next: Exclude<State, "starting">, reason?: string): void {
    if (next === state) return;
    state = next;
    if (next === "used") log.info({ replica: next }, "pages and metrics are read from the replica");
    else {
      const code = next === "away" ? "replica_unreachable" : "replica_behind";
      log.warn({ code, reason }, "pages and metrics are read from the primary");
    }
  }

  function tellOnce(reason: string): void {
    if (reason === told) return;
    told = reason;
    log.warn({ code: "replica_refused", reason }, "the replica refuses what the primary answers");
  }

  async function writeBeat(): Promise<void> {
    const sentAt = monotonic();
    try {
      beat = { at: await writeHeartbeat(primary.db, process), sentAt };
      silence = undefined;
    } catch (error) {
      silence = reasonOf(error);
    }
  }

  async function look(): Promise<void> {
    try {
      const asOf = await within(readHeartbeat(replica.db, process));
      lagMs = asOf === undefined ? undefined : ageOf(asOf);
      const late = lagMs ?? monotonic() - startedAt;
      if (late > maxLagMs) {
        const why = silence === undefined ? "" : `; the primary takes no heartbeat: ${silence}`;
        enter("behind", `it is ${Math.round(late / 1000)} s behind or more${why}`);
      } else if (lagMs !== undefined) enter("used");
    } catch (error) {
      lagMs = undefined;
      enter("away", reasonOf(error));
    }
  }

  let writing: Promise<void> | undefined;
  let looking: Promise<void> | undefined;
  const tick = () => {
    writing ??= writeBeat().finally(() => {
      writing = undefined;
    });
    looking ??= look().finally(() => {
      looking = undefined;
    });
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
        const asOf = await within(readHeartbeat(db, process)).catch((cause) => {
          throw faultOf(cause) ?? silent(cause);
        });
        if (asOf === undefined || ageOf(asOf) > most) return undefined;
        const lag = ageOf(asOf);
        return { value: await work({ db, age: { asOf, lagMs: lag, isOld: lag > maxLagMs } }) };
      });
    } catch (error) {
      const { code } = error as { code?: string };
      // Too much was asked for. The primary should not be kept busy with it as well.
      if (code === "57014") throw error;
      if (faultOf(error) instanceof UnreachableError) enter("away", reasonOf(error));
      // 40001: the primary removed meanwhile what was read. Something unknown may be known on the primary.
      else if (!(error instanceof EtlError) && code !== "40001") tellOnce(reasonOf(error));
      return undefined;
    }
  }

  return {
    read: async ({ primary: db, mayBeOld }, work) => {
      if (state === "used") {
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
    seen: () => ({ lagMs, isUsed: state === "used" }),
    close: async () => {
      clearInterval(timer);
      await within(Promise.resolve(writing)).catch(() => {});
      await within(removeHeartbeat(primary.db, process)).catch(() => {});
      await Promise.all([primary.close(), replica.close()]);
      await looking;
    },
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

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
