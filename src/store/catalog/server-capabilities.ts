import { sql } from "kysely";
import type { Stride } from "../../domain/time/stride.ts";
import type { Database } from "../db/database.ts";

/** What a source taught us about its server. `no_hour` and its like: it does not answer in that stride. */
export type ServerCapability = "no_listing" | "no_future_end" | `no_${Stride}`;

export interface LearnedCapability {
  readonly capability: ServerCapability;
  readonly evidence: string;
  readonly learnedAt: Date;
  /** Whether the daily probe is due. */
  readonly retryDue: boolean;
}

/** Keeps a fact, or renews its evidence; a stride is probed again a day later. */
export async function learnCapability(
  db: Database,
  learned: { sourceId: number; capability: ServerCapability; evidence: string },
): Promise<void> {
  const probeAfter =
    learned.capability === "no_listing" || learned.capability === "no_future_end"
      ? null
      : sql<Date>`now() + interval '1 day'`;
  await db
    .insertInto("source_fact")
    .values({
      source_id: learned.sourceId,
      fact: learned.capability,
      evidence: learned.evidence,
      probe_after: probeAfter,
    })
    .onConflict((conflict) =>
      conflict
        .columns(["source_id", "fact"])
        .doUpdateSet({ evidence: learned.evidence, probe_after: probeAfter }),
    )
    .execute();
}

export async function forgetCapability(
  db: Database,
  forgotten: { sourceId: number; capability: ServerCapability },
): Promise<void> {
  await db
    .deleteFrom("source_fact")
    .where("source_id", "=", forgotten.sourceId)
    .where("fact", "=", forgotten.capability)
    .execute();
}

export async function capabilitiesOf(db: Database, sourceId: number): Promise<LearnedCapability[]> {
  const rows = await db
    .selectFrom("source_fact")
    .select(["fact", "evidence", "learned_at", sql<boolean>`coalesce(probe_after <= now(), false)`.as("due")])
    .where("source_id", "=", sourceId)
    .orderBy("fact")
    .execute();
  return rows.map((row) => ({
    capability: row.fact as ServerCapability,
    evidence: row.evidence,
    learnedAt: row.learned_at,
    retryDue: row.due,
  }));
}
