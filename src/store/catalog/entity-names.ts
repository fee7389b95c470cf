import { type RawBuilder, sql } from "kysely";
import type { FetchStamp } from "../../domain/coverage/finality.ts";
import type { Database } from "../db/database.ts";

export interface EntityName {
  readonly entityId: number;
  readonly name: string;
}

interface Naming {
  readonly sourceId: number;
  readonly stamp: FetchStamp;
  /** Number of this part of the response. */
  readonly part: number;
  /** One name for each entity. */
  readonly names: readonly EntityName[];
}

/** Longer than a response can take: one that arrives now may be that much older than those that are stored. */
const RECENT = sql`interval '1 hour'`;

/**
 * Places the names of a response among those of all others, by the numbers of their fetches: responses may arrive in any order
 * and repeatedly. The caller commits soon, because the names of a source are learned by one transaction at a time: of two at
 * once, neither would see that the other's name supersedes its own.
 */
export async function learnNames(db: Database, { sourceId, stamp, part, names }: Naming): Promise<void> {
  if (names.length === 0) return;
  const number = sql`${stamp.fetchNumber}::bigint`;
  const at = sql`${new Date(stamp.fetchedAt)}::timestamptz`;
  const ids = sql`${names.map((n) => n.entityId)}::integer[]`;
  const recent = sql`usage.recent_naming r where r.source_id = ${sourceId}`;
  await sql`select pg_advisory_xact_lock(hashtext('usage-etl names'), ${sourceId})`.execute(db);
  await sql`
    with changed as materialized (
      select g.id, g.name, before.name as before, after.fetch_number as next, after.name as after
      from (select distinct on (id) id, name from unnest(${ids}, ${names.map((n) => n.name)}::text[]) g (id, name) order by id, name) g
      left join lateral (
        select fetch_number, name from usage.entity_name n
        where n.entity_id = g.id and n.fetch_number <= ${number} order by n.fetch_number desc limit 1
      ) before on true
      left join lateral (
        select fetch_number, name from usage.entity_name n
        where n.entity_id = g.id and n.fetch_number > ${number} order by n.fetch_number limit 1
      ) after on true
      -- Of several names in parts of one response, the first counts.
      where before.name is distinct from g.name and before.fetch_number is distinct from ${number}
    ),
    -- Newer responses with the name from before this one: it came back with the first of them.
    back as (
      select c.id, c.before, r.fetch_number, r.fetched_at
      from changed c
      cross join lateral (
        select r.fetch_number, r.fetched_at from ${recent} and r.fetch_number > ${number} and c.id = any (r.entity_ids)
          and (c.next is null or r.fetch_number < c.next)
        order by r.fetch_number limit 1
      ) r
      where c.before is not null
    ),
    -- The next name is the same, so it begins with this response.
    earlier as (
      delete from usage.entity_name n using changed c
      where n.entity_id = c.id and n.fetch_number = c.next and c.after = c.name and c.id not in (select id from back)
    ),
    noted as (
      insert into usage.recent_naming (source_id, fetch_number, part, fetched_at, entity_ids)
      values (${sourceId}, ${number}, ${part}, ${at}, ${ids})
      on conflict do nothing
    ),
    forgotten as (delete from ${recent} and r.noted_at < now() - ${RECENT})
    insert into usage.entity_name (entity_id, fetch_number, fetched_at, name)
    select id, ${number}, ${at}, name from changed
    union all
    select id, fetch_number, fetched_at, before from back
  `.execute(db);
}

/** Current name of row `e` of `usage.labelled_entity`. `masked`: users are named by their id, as in the masked views. */
export function labelOf(masked: boolean): RawBuilder<string | null> {
  if (!masked) return sql`e.dimension_name`;
  return sql`case when e.dimension = 'user' and e.dimension_name is not null then 'user ' || e.dimension_id else e.dimension_name end`;
}
