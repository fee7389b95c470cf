import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { describeDuration, systemClock } from "../../clock.ts";
import type { Config } from "../../config/config.ts";
import { EtlError } from "../../errors.ts";
import { metricFacts } from "../../store/activity/metric-facts.ts";
import { checkReachable, type Database, openStore, type Store } from "../../store/db/database.ts";
import { readHeartbeat, removeHeartbeat, writeHeartbeat } from "../../store/db/heartbeat.ts";
import { type Notes, problemOf } from "./check.ts";

const WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 50;
const CONNECT_MS = 5_000;
const NEXT =
  "Pages and metrics read DATABASE_URL meanwhile. Check DATABASE_READ_URL, and whether the replica follows.";

/** Whether the replica shows what is written to the primary, and how soon. It only warns: all works without a replica. */
export async function checkReplica(config: Config, primary: Store | undefined, notes: Notes): Promise<void> {
  const { databaseReadUrl: url } = config;
  if (url === undefined) return;
  if (primary === undefined) return notes.skip("replica", "The database cannot be read.");
  const replica = openStore({
    ...{ url, variable: "DATABASE_READ_URL", maxConnections: 1 },
    ...{ connectMs: CONNECT_MS, statementTimeoutMs: WITHIN_MS },
  });
  const process = `doctor ${randomUUID()}`;
  try {
    await checkReachable(replica);
    const before = systemClock.now();
    await writeHeartbeat(primary.db, process);
    const took = await untilShown(replica.db, { process, before });
    // Whether its login may read what metrics and pages read.
    await metricFacts(replica.db);
    const { rows } = await sql<{ follows: boolean }>`select pg_is_in_recovery() as follows`.execute(
      replica.db,
    );
    if (rows[0]?.follows === true) {
      notes.pass("replica", `showed after ${describeDuration(took)} what was written to the primary`);
    } else notes.warn("replica", NO_REPLICA);
  } catch (error) {
    const { code, message, next } = problemOf(error);
    notes.warn("replica", { code, message, next: code === "failed" ? NEXT : next });
  } finally {
    await removeHeartbeat(primary.db, process).catch(() => {});
    await replica.close();
  }
}

const NO_REPLICA = {
  code: "replica_is_primary",
  message: "DATABASE_READ_URL leads to a primary.",
  next: "Set it to the replica, or leave it out.",
};

/** Milliseconds until the replica showed the heartbeat. */
async function untilShown(
  db: Database,
  { process, before }: { process: string; before: number },
): Promise<number> {
  for (;;) {
    const isShown = (await readHeartbeat(db, process)) !== undefined;
    const took = systemClock.now() - before;
    if (isShown) return took;
    if (took > WITHIN_MS) break;
    await systemClock.wait(LOOK_EVERY_MS);
  }
  const { rows } = await sql<{ at: Date | null }>`select max(beat_at) as at from usage.heartbeat`.execute(db);
  const last = rows[0]?.at?.toISOString().slice(0, 19).replace("T", " ");
  throw new EtlError({
    code: "replica_behind",
    message: `The replica did not show within ${describeDuration(WITHIN_MS)} what was written to the primary. ${last === undefined ? "It shows no heartbeat at all." : `The last heartbeat that it shows is of ${last}.`}`,
    next: NEXT,
  });
}
