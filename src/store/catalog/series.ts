import { sql } from "kysely";
import { MEASURES, type Measure } from "../../domain/usage/meter.ts";
import type { Database } from "../db/database.ts";

/** Scope, entity and measure of each wanted series, in three lists of one length. */
interface Wanted {
  readonly scopes: readonly number[];
  readonly entities: readonly number[];
  readonly measures: readonly Measure[];
}

interface SeriesRow {
  readonly scope_id: number;
  readonly entity_id: number;
  readonly measure: Measure;
  readonly series_id: number;
}

/** The series ids of the wanted series, in their order. Creates missing series. */
export async function enterSeries(db: Database, { scopes, entities, measures }: Wanted): Promise<Int32Array> {
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
  // The last look finds what another session entered meanwhile.
  for (const query of [find, insert, find]) {
    if (missing.length === 0) break;
    const { rows } = await query(missing).execute(db);
    for (const row of rows) known.get(row.scope_id)?.set(keyOf(row.entity_id, row.measure), row.series_id);
    missing = missing.filter((i) => idOf(i) === undefined);
  }
  return Int32Array.from(scopes, (_, i) => idOf(i) as number);
}
