import { sql } from "kysely";
import type { Database } from "../db/database.ts";

interface SeriesRow {
  readonly scope_id: number;
  readonly entity_id: number;
  readonly series_id: number;
}

/** The series ids of pairs of scope and entity, in the order of the pairs. Creates missing series. */
export async function enterSeries(
  db: Database,
  scopes: readonly number[],
  entities: readonly number[],
): Promise<Int32Array> {
  const known = new Map(scopes.map((scopeId) => [scopeId, new Map<number, number>()]));
  const idOf = (i: number) => known.get(scopes[i] as number)?.get(entities[i] as number);
  const find = (pairs: readonly number[]) => sql<SeriesRow>`
    select scope_id, entity_id, series_id from usage.series
    where scope_id = any (${[...known.keys()]}::integer[]) and entity_id = any (${pairs.map((i) => entities[i])}::integer[])
  `;
  const insert = (pairs: readonly number[]) => sql<SeriesRow>`
    insert into usage.series (scope_id, entity_id)
    select scope_id, entity_id
    from unnest(${pairs.map((i) => scopes[i])}::integer[], ${pairs.map((i) => entities[i])}::integer[]) k (scope_id, entity_id)
    order by scope_id, entity_id
    on conflict do nothing
    returning scope_id, entity_id, series_id
  `;
  let missing = [...scopes.keys()];
  // The last look finds what another session entered meanwhile.
  for (const query of [find, insert, find]) {
    if (missing.length === 0) break;
    const { rows } = await query(missing).execute(db);
    for (const row of rows) known.get(row.scope_id)?.set(row.entity_id, row.series_id);
    missing = missing.filter((i) => idOf(i) === undefined);
  }
  return Int32Array.from(scopes, (_, i) => idOf(i) as number);
}
