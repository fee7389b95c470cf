import { sql } from "kysely";
import type { Meter } from "../../domain/usage/meter.ts";
import type { ServerCapability } from "../catalog/server-capabilities.ts";
import { isConfigured } from "../catalog/workspaces.ts";
import type { Database } from "../db/database.ts";

/** What a plan needs to know of a source, as the tables have it. */
export interface PlannableSource {
  readonly sourceId: number;
  /** ISO day. */
  readonly dataStart: string;
  /** What its server cannot do. `retryDue`: that is asked again today. */
  readonly capabilities: readonly { readonly capability: ServerCapability; readonly retryDue: boolean }[];
  /** What its server counts, and from when on, epoch milliseconds. */
  readonly meters: readonly (readonly [Meter, number])[];
  /** The configured workspaces, by the platform's id. */
  readonly workspaces: readonly { readonly id: string; readonly name: string | null }[];
}

/** In one statement: a page has few. Undefined before the first contact. */
export async function plannableSource(db: Database, slug: string): Promise<PlannableSource | undefined> {
  const { rows } = await sql<PlannableSource>`
    select s.source_id as "sourceId", s.data_start::text as "dataStart",
           (
             select coalesce(json_agg(json_build_object(
               'capability', f.fact, 'retryDue', coalesce(f.probe_after <= now(), false)) order by f.fact), '[]')
             from usage.source_fact f where f.source_id = s.source_id
           ) as capabilities,
           ${metersOf} as meters,
           (
             select coalesce(json_agg(json_build_object('id', e.external_id, 'name', l.dimension_name) order by e.external_id), '[]')
             from usage.workspace w join usage.entity e using (entity_id) join usage.labelled_entity l using (entity_id)
             where e.source_id = s.source_id and ${isConfigured}
           ) as workspaces
    from usage.source s where s.slug = ${slug}
  `.execute(db);
  return rows[0];
}

/** SQL: `[meter, start]` of what the server of source `s` counts. */
export const metersOf = sql<PlannableSource["meters"]>`(
  select json_agg(json_build_array(m.meter, extract(epoch from m.start::timestamp at time zone 'UTC') * 1000))
  from (
    select 'traces' as meter, s.data_start as start
    union all
    select l.meter, coalesce(l.starts_on, s.data_start) from usage.source_meter l
    where l.source_id = s.source_id and l.is_available
  ) m
)`;
