import { sql } from "kysely";
import type { Stride } from "../../domain/time/stride.ts";
import { type Database, query } from "../db/query.ts";

/** Limits of a source's server, learned from its responses. `no_hour`: it never responds in hours. */
export type ServerCapability = "no_listing" | "no_future_end" | `no_${Stride}`;

export interface LearnedCapability {
  readonly capability: ServerCapability;
  readonly evidence: string;
  readonly learnedAt: Date;
  readonly retryDue: boolean;
}

/** A missing stride is retried after a day. */
export async function learnCapability(
  db: Database,
  learned: { sourceId: number; capability: ServerCapability; evidence: string },
): Promise<void> {
  const { sourceId, capability, evidence } = learned;
  const isStride = capability !== "no_listing" && capability !== "no_future_end";
  await sql`
    insert into usage.source_fact (source_id, fact, evidence, probe_after)
    values (${sourceId}, ${capability}, ${evidence}, ${isStride ? sql`now() + interval '1 day'` : null})
    on conflict (source_id, fact) do update set evidence = excluded.evidence, probe_after = excluded.probe_after
  `.execute(db);
}

export async function forgetCapability(
  db: Database,
  forgotten: { sourceId: number; capability: ServerCapability },
): Promise<void> {
  const { sourceId, capability } = forgotten;
  await sql`delete from usage.source_fact where source_id = ${sourceId} and fact = ${capability}`.execute(db);
}

export async function capabilitiesOf(db: Database, sourceId: number): Promise<LearnedCapability[]> {
  return query<LearnedCapability>(db)`
    select fact as capability, evidence, learned_at as "learnedAt",
           coalesce(probe_after <= now(), false) as "retryDue"
    from usage.source_fact where source_id = ${sourceId} order by fact
  `;
}
