import { sql } from "kysely";
import type { Stride } from "../../domain/time/stride.ts";
import type { Database } from "../db/database.ts";

/** What a source's server cannot do, learned from its answers. `no_hour` means that it never answers in hours. */
export type ServerCapability = "no_listing" | "no_future_end" | `no_${Stride}`;

export interface LearnedCapability {
  readonly capability: ServerCapability;
  readonly evidence: string;
  readonly learnedAt: Date;
  /** Whether the daily stride retry is due. */
  readonly retryDue: boolean;
}

/** Keeps a capability or renews its evidence. A missing stride is retried after a day. */
export async function learnCapability(
  db: Database,
  learned: { sourceId: number; capability: ServerCapability; evidence: string },
): Promise<void> {
  const { sourceId, capability, evidence } = learned;
  const isStride = capability !== "no_listing" && capability !== "no_future_end";
  const kept = { evidence, probe_after: isStride ? sql<Date>`now() + interval '1 day'` : null };
  await db
    .insertInto("source_fact")
    .values({ source_id: sourceId, fact: capability, ...kept })
    .onConflict((conflict) => conflict.columns(["source_id", "fact"]).doUpdateSet(kept))
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
  return db
    .selectFrom("source_fact")
    .select([sql<ServerCapability>`fact`.as("capability"), "evidence", "learned_at as learnedAt"])
    .select(sql<boolean>`coalesce(probe_after <= now(), false)`.as("retryDue"))
    .where("source_id", "=", sourceId)
    .orderBy("fact")
    .execute();
}
