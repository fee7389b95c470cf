import { sql } from "kysely";
import type { AnswerKey } from "../domain/answer.ts";
import type { GroupBy } from "../domain/record.ts";
import type { Database, Store } from "./database.ts";

/** Entity ids in the order of the external ids; undefined where there is none. */
export async function entityIds(
  db: Database,
  wanted: { sourceId: number; dimension: GroupBy; externalIds: readonly string[] },
): Promise<(number | undefined)[]> {
  const { rows } = await sql<{ entity_id: number | null }>`
    select e.entity_id
    from unnest(${[...wanted.externalIds]}::text[]) with ordinality k (id, n)
    left join usage.entity e
      on e.source_id = ${wanted.sourceId} and e.dimension = ${wanted.dimension} and e.external_id = k.id
    order by k.n
  `.execute(db);
  return rows.map((row) => row.entity_id ?? undefined);
}

interface NameInTime {
  readonly entityId: number;
  readonly name: string;
  /** First and last bucket that carried the name, epoch milliseconds. */
  readonly first: number;
  readonly last: number;
}

/** Merges names into the history. All maxima and minima: answers may come in any order, and more than once. */
export async function learnNames(
  db: Database,
  fetchNumber: number,
  names: readonly NameInTime[],
): Promise<void> {
  if (names.length === 0) return;
  await sql`
    insert into usage.entity_name as known (entity_id, name, first_bucket, last_bucket, fetch_number)
    select id, name, to_timestamp(first / 1000.0), to_timestamp(last / 1000.0), ${fetchNumber}
    from unnest(
      ${names.map((n) => n.entityId)}::integer[], ${names.map((n) => n.name)}::text[],
      ${names.map((n) => n.first)}::bigint[], ${names.map((n) => n.last)}::bigint[]
    ) n (id, name, first, last)
    order by id, md5(name)
    on conflict (entity_id, md5(name)) do update
    set first_bucket = least(known.first_bucket, excluded.first_bucket),
        last_bucket = greatest(known.last_bucket, excluded.last_bucket),
        fetch_number = case
          when excluded.last_bucket > known.last_bucket then excluded.fetch_number
          when excluded.last_bucket = known.last_bucket then greatest(known.fetch_number, excluded.fetch_number)
          else known.fetch_number
        end
    where excluded.first_bucket < known.first_bucket or excluded.last_bucket > known.last_bucket
       or (excluded.last_bucket = known.last_bucket and excluded.fetch_number > known.fetch_number)
  `.execute(db);
}

/**
 * Enters what a whole answer names (entities, their series and names) and returns the series id of each key.
 *
 * Apart from the load, before it: it is idempotent and in no order, an entity without records harms nobody, and no
 * load waits for another one's new entities.
 */
export async function learnKeys(
  store: Store,
  answer: {
    sourceId: number;
    groupBy: GroupBy;
    fetchNumber: number;
    /** Scope of each requested workspace, by its index. */
    scopeIds: readonly number[];
    keys: readonly AnswerKey[];
  },
): Promise<Int32Array> {
  const { sourceId, groupBy, fetchNumber, scopeIds, keys } = answer;
  if (keys.length === 0) return new Int32Array();
  return store.transaction(async ({ db }) => {
    const external = keys.map((key) => key.dimensionId);
    const distinct = [...new Set(external)].sort();
    const known = await entityIds(db, { sourceId, dimension: groupBy, externalIds: distinct });
    if (known.includes(undefined)) {
      await sql`
        insert into usage.entity (source_id, dimension, external_id)
        select ${sourceId}, ${groupBy}, id from unnest(${distinct}::text[]) id
        on conflict do nothing
      `.execute(db);
    }
    const ids = known.includes(undefined)
      ? await entityIds(db, { sourceId, dimension: groupBy, externalIds: distinct })
      : known;
    const entityOf = new Map(distinct.map((id, i) => [id, ids[i] as number]));
    const entities = external.map((id) => entityOf.get(id) as number);
    await learnNames(db, fetchNumber, namesInTime(keys, entities));
    await widenSeen(db, keys, entities);
    return seriesIds(
      db,
      keys.map((key) => scopeIds[key.workspace] as number),
      entities,
    );
  });
}

/** One row an entity and name: an entity may stand in several workspaces of one answer. */
function namesInTime(keys: readonly AnswerKey[], entities: readonly number[]): NameInTime[] {
  const merged = new Map<string, NameInTime>();
  keys.forEach((key, i) => {
    const entityId = entities[i] as number;
    for (const [name, span] of key.names) {
      const at = `${entityId} ${name}`;
      const other = merged.get(at) ?? { entityId, name, ...span };
      merged.set(at, {
        entityId,
        name,
        first: Math.min(other.first, span.first),
        last: Math.max(other.last, span.last),
      });
    }
  });
  return [...merged.values()];
}

async function widenSeen(
  db: Database,
  keys: readonly AnswerKey[],
  entities: readonly number[],
): Promise<void> {
  await sql`
    with seen as (
      select id, to_timestamp(min(first) / 1000.0) as first, to_timestamp(max(last) / 1000.0) as last
      from unnest(
        ${entities}::integer[], ${keys.map((k) => k.first)}::bigint[], ${keys.map((k) => k.last)}::bigint[]
      ) n (id, first, last)
      group by id
    ), locked as (
      select e.entity_id
      from usage.entity e join seen on seen.id = e.entity_id
      where seen.first < e.first_seen_at or seen.last > e.last_seen_at or e.first_seen_at is null
      order by e.entity_id
      for no key update of e
    )
    update usage.entity e
    set first_seen_at = least(e.first_seen_at, seen.first), last_seen_at = greatest(e.last_seen_at, seen.last)
    from seen join locked on locked.entity_id = seen.id
    where e.entity_id = seen.id
  `.execute(db);
}

async function seriesIds(
  db: Database,
  scopeIds: readonly number[],
  entities: readonly number[],
): Promise<Int32Array> {
  const look = () =>
    sql<{ series_id: number | null }>`
      select s.series_id
      from unnest(${[...scopeIds]}::integer[], ${[...entities]}::integer[]) with ordinality k (scope_id, entity_id, n)
      left join usage.series s on s.scope_id = k.scope_id and s.entity_id = k.entity_id
      order by k.n
    `.execute(db);
  let { rows } = await look();
  if (rows.some((row) => row.series_id === null)) {
    await sql`
      insert into usage.series (scope_id, entity_id)
      select scope_id, entity_id
      from unnest(${[...scopeIds]}::integer[], ${[...entities]}::integer[]) k (scope_id, entity_id)
      order by scope_id, entity_id
      on conflict do nothing
    `.execute(db);
    rows = (await look()).rows;
  }
  return Int32Array.from(rows, (row) => row.series_id as number);
}
