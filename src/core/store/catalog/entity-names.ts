import { type RawBuilder, sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import type { Dimension } from "../../domain/usage/record.ts";
import type { Database, Store } from "../db/database.ts";
import { query, queryValues } from "../db/query.ts";

export interface EntityName {
  readonly entityId: number;
  readonly name: string;
}

interface Naming {
  readonly sourceId: number;
  readonly fetchToken: FetchToken;
  readonly part: number;
  readonly names: readonly EntityName[];
}

/** Runs in its own statement, because the names of a source are learned one response at a time (`usage.learn_names`). */
export async function learnNames(store: Store, { sourceId, fetchToken, part, names }: Naming): Promise<void> {
  if (names.length === 0) return;
  const { fetchNumber, fetchedAt } = fetchToken;
  await store.statement((db) =>
    sql`
      select usage.learn_names(
        ${sourceId}, ${fetchNumber}, ${part}, ${new Date(fetchedAt)},
        ${names.map((n) => n.entityId)}::integer[], ${names.map((n) => n.name)}::text[]
      )
    `.execute(db),
  );
}

interface ListedNaming extends Omit<Naming, "names"> {
  readonly dimension: Dimension;
  readonly names: readonly { readonly id: string; readonly name: string }[];
}

/**
 * Stores names of a list and returns how many it stored. An id without usage is left out; the next list after its first usage
 * names it.
 */
export async function learnListedNames(
  store: Store,
  { dimension, names: listed, ...naming }: ListedNaming,
): Promise<number> {
  const names = await query<EntityName>(store.db)`
    select e.entity_id as "entityId", n.name
    from unnest(${listed.map(({ id }) => id)}::text[], ${listed.map(({ name }) => name)}::text[]) n (id, name)
    join usage.entity e on e.source_id = ${naming.sourceId} and e.dimension = ${dimension} and e.external_id = n.id
  `;
  await learnNames(store, { ...naming, names });
  return names.length;
}

export async function namedDimensions(db: Database, sourceId: number): Promise<Set<Dimension>> {
  const rows = await queryValues<Dimension>(db)`
    select d.dimension from unnest(array['api_key', 'sandbox']) d (dimension)
    where exists (select from usage.entity e where e.source_id = ${sourceId} and e.dimension = d.dimension)
  `;
  return new Set(rows);
}

export function labelOf(masked: boolean): RawBuilder<string | null> {
  if (!masked) return sql`e.dimension_name`;
  return sql`case when e.dimension = 'user' and e.dimension_name is not null then 'user ' || e.dimension_id else e.dimension_name end`;
}
