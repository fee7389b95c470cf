import { sql } from "kysely";
import { type Database, query, type Row } from "../db/query.ts";
import { notingCharges } from "../months/charges.ts";

/** Limits of a source's server, learned from its responses. `no_hour`: it never responds in hours. */
export type ServerCapability = Row<"usage.source_fact">["fact"];

export interface LearnedCapability extends Row<"usage.source_fact", "evidence" | "learnedAt"> {
  readonly capability: ServerCapability;
  readonly retryDue: boolean;
}

export async function learnCapability(
  db: Database,
  learned: { sourceId: number; capability: ServerCapability; evidence: string },
): Promise<void> {
  const { sourceId, capability, evidence } = learned;
  const isStride = capability !== "no_listing" && capability !== "no_future_end";
  await notingCharges(sql`
    with before as (
      select from usage.source_fact where source_id = ${sourceId} and fact = ${capability} for no key update
    )
    insert into usage.source_fact as f (source_id, fact, evidence, probe_after)
    select ${sourceId}::smallint, ${capability}::text, ${evidence}::text, (${isStride ? sql`now() + interval '1 day'` : null})::timestamptz
    -- Reads the row before, so that it is locked first.
    from (select count(*) from before) b
    on conflict (source_id, fact) do update set evidence = excluded.evidence, probe_after = excluded.probe_after
    returning case when not exists (select from before) then f.source_id end as source_id
  `).execute(db);
}

export async function forgetCapability(
  db: Database,
  forgotten: { sourceId: number; capability: ServerCapability },
): Promise<void> {
  const { sourceId, capability } = forgotten;
  await notingCharges(sql`
    delete from usage.source_fact where source_id = ${sourceId} and fact = ${capability} returning source_id
  `).execute(db);
}

export async function capabilitiesOf(db: Database, sourceId: number): Promise<LearnedCapability[]> {
  return query<LearnedCapability>(db)`
    select fact as capability, evidence, learned_at as "learnedAt",
           coalesce(probe_after <= now(), false) as "retryDue"
    from usage.source_fact where source_id = ${sourceId} order by fact
  `;
}
