import { sql } from "kysely";
import { HOUR_MS } from "../../domain/time/stride.ts";
import type { AnswerKey } from "../../domain/usage/numbering.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database, Store } from "../db/database.ts";

/** Entity ids in the order of the external ids; undefined where there is none. */
export async function entityIds(
  db: Database,
  wanted: { sourceId: number; dimension: GroupBy; dimensionIds: readonly string[] },
): Promise<(number | undefined)[]> {
  const { rows } = await sql<{ entity_id: number | null }>`
    select e.entity_id
    from unnest(${[...wanted.dimensionIds]}::text[]) with ordinality k (id, n)
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
    -- Most are known as they are, and a row that only meets its like is locked and logged all the same.
    where not exists (
      select from usage.entity_name same
      where same.entity_id = n.id and md5(same.name) = md5(n.name)
        and same.first_bucket <= to_timestamp(n.first / 1000.0)
        and (same.last_bucket > to_timestamp(n.last / 1000.0)
          or (same.last_bucket = to_timestamp(n.last / 1000.0) and same.fetch_number >= ${fetchNumber}))
    )
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

interface NamingAnswer {
  readonly sourceId: number;
  readonly groupBy: GroupBy;
  readonly fetchNumber: number;
  /** Scope of each requested workspace, by its index. */
  readonly scopeIds: readonly number[];
  readonly keys: readonly AnswerKey[];
}

/** A transaction for so many: what is in flight for them is some 2 KB each. */
const KEYS_AT_ONCE = 2000;

/**
 * Enters what a whole answer names (entities, their series and names) and returns the series id of each key.
 *
 * Apart from the load, before it: it is idempotent and in no order, an entity without records harms nobody, and no
 * load waits for another one's new entities.
 */
export async function learnKeys(store: Store, answer: NamingAnswer): Promise<Int32Array> {
  const { keys } = answer;
  const series = new Int32Array(keys.length);
  for (let first = 0; first < keys.length; first += KEYS_AT_ONCE) {
    const some = keys.slice(first, first + KEYS_AT_ONCE);
    series.set(await store.transaction(({ db }) => learnSome(db, answer, some)), first);
  }
  return series;
}

async function learnSome(
  db: Database,
  { sourceId, groupBy, fetchNumber, scopeIds }: NamingAnswer,
  keys: readonly AnswerKey[],
): Promise<Int32Array> {
  const known = await enterEntities(db, { sourceId, dimension: groupBy, seen: seenInTime(keys) });
  const entities = keys.map((key) => (known.get(key.dimensionId) as KnownEntity).entity_id);
  await learnNames(db, fetchNumber, namesInTime(keys, entities));
  return enterSeries(
    db,
    keys.map((key) => scopeIds[key.workspace] as number),
    entities,
  );
}

/** First and last bucket, epoch milliseconds. */
interface Span {
  readonly first: number;
  readonly last: number;
}

function toSpan({ firstHour, lastHour }: { firstHour: number; lastHour: number }): Span {
  return { first: firstHour * HOUR_MS, last: lastHour * HOUR_MS };
}

function union(a: Span, b: Span): Span {
  return { first: Math.min(a.first, b.first), last: Math.max(a.last, b.last) };
}

/** Of each id: an entity may stand in several workspaces of one answer. */
function seenInTime(keys: readonly AnswerKey[]): Map<string, Span> {
  const seen = new Map<string, Span>();
  for (const key of keys) {
    const span = toSpan(key);
    seen.set(key.dimensionId, union(seen.get(key.dimensionId) ?? span, span));
  }
  return seen;
}

interface KnownEntity {
  readonly entity_id: number;
  readonly external_id: string;
  /** Epoch milliseconds; null where only a configuration or a listing named it. */
  readonly first: number | null;
  readonly last: number | null;
}

interface Dimension {
  readonly sourceId: number;
  readonly dimension: GroupBy;
}

const ENTITY = sql`entity_id, external_id, (extract(epoch from first_seen_at) * 1000)::bigint as first,
  (extract(epoch from last_seen_at) * 1000)::bigint as last`;

/** Makes sure that entities are there, and seen no later and no earlier than `seen` says; returns them by external id. */
async function enterEntities(
  db: Database,
  named: Dimension & { seen: ReadonlyMap<string, Span> },
): Promise<Map<string, KnownEntity>> {
  const { seen } = named;
  // In one order in all sessions: who enters the same ids waits for the other, and neither for both.
  const ids = [...seen.keys()].sort();
  const known = new Map<string, KnownEntity>();
  const note = (entities: readonly KnownEntity[]) => {
    for (const entity of entities) known.set(entity.external_id, entity);
    return ids.filter((id) => !known.has(id));
  };
  const missing = note(await findEntities(db, named, ids));
  if (missing.length > 0) {
    const entered = missing.map((id) => ({ id, ...(seen.get(id) as Span) }));
    const raced = note(await insertEntities(db, named, entered));
    if (raced.length > 0) note(await findEntities(db, named, raced));
  }
  await widenSeen(
    db,
    [...known.values()].flatMap(({ entity_id, external_id, first, last }) => {
      const span = seen.get(external_id) as Span;
      const isWithin = first !== null && last !== null && first <= span.first && last >= span.last;
      return isWithin ? [] : [{ entityId: entity_id, ...span }];
    }),
  );
  return known;
}

/**
 * By `= any`, not by a join: before the first ANALYZE, Postgres takes the table for one row of this source, and joins
 * thousands of ids to it in nested loops.
 */
async function findEntities(
  db: Database,
  { sourceId, dimension }: Dimension,
  ids: readonly string[],
): Promise<KnownEntity[]> {
  const { rows } = await sql<KnownEntity>`
    select ${ENTITY} from usage.entity
    where source_id = ${sourceId} and dimension = ${dimension} and external_id = any (${[...ids]}::text[])
  `.execute(db);
  return rows;
}

async function insertEntities(
  db: Database,
  { sourceId, dimension }: Dimension,
  entered: readonly (Span & { id: string })[],
): Promise<KnownEntity[]> {
  const { rows } = await sql<KnownEntity>`
    insert into usage.entity (source_id, dimension, external_id, first_seen_at, last_seen_at)
    select ${sourceId}, ${dimension}, id, to_timestamp(first / 1000.0), to_timestamp(last / 1000.0)
    from unnest(
      ${entered.map((e) => e.id)}::text[], ${entered.map((e) => e.first)}::bigint[],
      ${entered.map((e) => e.last)}::bigint[]
    ) n (id, first, last)
    on conflict do nothing
    returning ${ENTITY}
  `.execute(db);
  return rows;
}

/** One row an entity and name: an entity may stand in several workspaces of one answer. */
function namesInTime(keys: readonly AnswerKey[], entities: readonly number[]): NameInTime[] {
  const merged = new Map<string, NameInTime>();
  keys.forEach((key, i) => {
    const entityId = entities[i] as number;
    for (const { name, ...hours } of key.names) {
      const at = `${entityId} ${name}`;
      const span = toSpan(hours);
      merged.set(at, { entityId, name, ...union(merged.get(at) ?? span, span) });
    }
  });
  return [...merged.values()];
}

async function widenSeen(
  db: Database,
  widened: readonly (Span & { readonly entityId: number })[],
): Promise<void> {
  if (widened.length === 0) return;
  await sql`
    with seen as (
      select id, to_timestamp(first / 1000.0) as first, to_timestamp(last / 1000.0) as last
      from unnest(
        ${widened.map((w) => w.entityId)}::integer[], ${widened.map((w) => w.first)}::bigint[],
        ${widened.map((w) => w.last)}::bigint[]
      ) n (id, first, last)
    ), locked as (
      select entity_id from usage.entity
      where entity_id = any (${widened.map((w) => w.entityId)}::integer[])
      order by entity_id
      for no key update
    )
    update usage.entity e
    set first_seen_at = least(e.first_seen_at, seen.first), last_seen_at = greatest(e.last_seen_at, seen.last)
    from seen join locked on locked.entity_id = seen.id
    where e.entity_id = seen.id
  `.execute(db);
}

/** Series ids of pairs of scope and entity, in the order of the pairs; made where missing. */
async function enterSeries(
  db: Database,
  scopes: readonly number[],
  entities: readonly number[],
): Promise<Int32Array> {
  const known = new Map([...new Set(scopes)].map((scopeId) => [scopeId, new Map<number, number>()]));
  const note = (rows: readonly { scope_id: number; entity_id: number; series_id: number }[]) => {
    for (const row of rows) known.get(row.scope_id)?.set(row.entity_id, row.series_id);
    const ids = Int32Array.from(scopes, (scope, i) => known.get(scope)?.get(entities[i] as number) ?? 0);
    return ids;
  };
  const find = () =>
    sql<{ scope_id: number; entity_id: number; series_id: number }>`
    select scope_id, entity_id, series_id from usage.series
    where scope_id = any (${[...known.keys()]}::integer[]) and entity_id = any (${[...entities]}::integer[])
  `.execute(db);
  let ids = note((await find()).rows);
  if (!ids.includes(0)) return ids;
  const missing = [...ids.keys()].filter((i) => ids[i] === 0);
  const inserted = await sql<{ scope_id: number; entity_id: number; series_id: number }>`
    insert into usage.series (scope_id, entity_id)
    select scope_id, entity_id
    from unnest(
      ${missing.map((i) => scopes[i])}::integer[], ${missing.map((i) => entities[i])}::integer[]
    ) k (scope_id, entity_id)
    order by scope_id, entity_id
    on conflict do nothing
    returning scope_id, entity_id, series_id
  `.execute(db);
  ids = note(inserted.rows);
  // Another session entered the same one meanwhile.
  return ids.includes(0) ? note((await find()).rows) : ids;
}
