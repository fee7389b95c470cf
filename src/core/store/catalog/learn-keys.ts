import { type Selectable, sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { MEASURES, type Measure } from "../../domain/usage/meter.ts";
import type { Dimension } from "../../domain/usage/record.ts";
import type { ResponseKey } from "../../domain/usage/response-keys.ts";
import type { Database, Store } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import { createEntities, type SeenEntity } from "./entities.ts";
import { type EntityName, learnNames } from "./entity-names.ts";

interface NamingResponse {
  readonly sourceId: number;
  readonly dimension: Dimension;
  readonly fetchToken: FetchToken;
  readonly scopeIds: readonly number[];
  readonly keys: readonly ResponseKey[];
}

/** Keys of one transaction. Each takes about 2 KB of memory. */
const KEYS_AT_ONCE = 2000;

/**
 * Creates the entities, series and names of a response and returns the series id of each key. It runs before the load and
 * outside its transaction, so that no load waits for new entities of another load. It is idempotent, works in any order, and an
 * entity without records does no harm.
 */
export async function learnKeys(store: Store, response: NamingResponse): Promise<number[]> {
  const { keys } = response;
  const series: number[] = [];
  for (let first = 0; first < keys.length; first += KEYS_AT_ONCE) {
    const some = keys.slice(first, first + KEYS_AT_ONCE);
    const learned = await store.transaction(({ db }) => learnSome(db, response, some));
    series.push(...learned.series);
    const names = latestNames(some, learned.entities);
    await learnNames(store, {
      sourceId: response.sourceId,
      fetchToken: response.fetchToken,
      part: first,
      names,
    });
  }
  return series;
}

async function learnSome(
  db: Database,
  { sourceId, dimension, scopeIds }: NamingResponse,
  keys: readonly ResponseKey[],
): Promise<{ entities: number[]; series: number[] }> {
  // Several workspaces may have the same entity, which needs one row.
  const seen = new Map<string, SeenEntity>();
  for (const { dimensionId, firstHour, lastHour } of keys) {
    const span = seen.get(dimensionId);
    seen.set(dimensionId, {
      dimensionId,
      firstHour: Math.min(firstHour, span?.firstHour ?? firstHour),
      lastHour: Math.max(lastHour, span?.lastHour ?? lastHour),
    });
  }
  const known = await createEntities(db, { sourceId, dimension }, seen);
  const entities = keys.map((key) => known.get(key.dimensionId) as number);
  const scopes = keys.map((key) => scopeIds[key.workspace] as number);
  const measures = keys.map((key) => key.measure);
  return { entities, series: await createSeries(db, { scopes, entities, measures }) };
}

/** A response describes the present, so an entity's name is the one in its latest bucket. */
function latestNames(keys: readonly ResponseKey[], entities: readonly number[]): EntityName[] {
  const latest = new Map<number, ResponseKey["names"][number]>();
  keys.forEach(({ names }, i) => {
    const entityId = entities[i] as number;
    for (const named of names) {
      const other = latest.get(entityId);
      const isLater =
        other === undefined ||
        named.lastHour > other.lastHour ||
        (named.lastHour === other.lastHour && named.name < other.name);
      if (isLater) latest.set(entityId, named);
    }
  });
  return [...latest].map(([entityId, { name }]) => ({ entityId, name }));
}

interface Wanted {
  readonly scopes: readonly number[];
  readonly entities: readonly number[];
  readonly measures: readonly Measure[];
}

type SeriesRow = Selectable<Schema["usage.series"]>;

async function createSeries(db: Database, { scopes, entities, measures }: Wanted): Promise<number[]> {
  const known = new Map(scopes.map((scopeId) => [scopeId, new Map<number, number>()]));
  const keyOf = (entityId: number, measure: Measure) =>
    entityId * MEASURES.length + MEASURES.indexOf(measure);
  const idOf = (i: number) =>
    known.get(scopes[i] as number)?.get(keyOf(entities[i] as number, measures[i] as Measure));
  const find = (wanted: readonly number[]) => sql<SeriesRow>`
    select scope_id, entity_id, measure, series_id from usage.series
    where scope_id = any (${[...known.keys()]}::integer[]) and entity_id = any (${wanted.map((i) => entities[i])}::integer[])
  `;
  const insert = (wanted: readonly number[]) => sql<SeriesRow>`
    insert into usage.series (scope_id, entity_id, measure)
    select scope_id, entity_id, measure
    from unnest(
      ${wanted.map((i) => scopes[i])}::integer[], ${wanted.map((i) => entities[i])}::integer[], ${wanted.map((i) => measures[i])}::text[]
    ) k (scope_id, entity_id, measure)
    order by scope_id, entity_id, measure
    on conflict do nothing
    returning scope_id, entity_id, measure, series_id
  `;
  let missing = [...scopes.keys()];
  // The second search finds rows that another session created meanwhile.
  for (const query of [find, insert, find]) {
    if (missing.length === 0) break;
    const { rows } = await query(missing).execute(db);
    for (const row of rows) known.get(row.scope_id)?.set(keyOf(row.entity_id, row.measure), row.series_id);
    missing = missing.filter((i) => idOf(i) === undefined);
  }
  return scopes.map((_, i) => idOf(i) as number);
}
