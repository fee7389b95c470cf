import { type RawBuilder, sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import type { Store } from "../db/database.ts";

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

/** In its own statement, because names of a source are learned one response at a time (`usage.learn_names`). */
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

/** Current name of row `e` of `usage.labelled_entity`. `masked`: users are named by their id. */
export function labelOf(masked: boolean): RawBuilder<string | null> {
  if (!masked) return sql`e.dimension_name`;
  return sql`case when e.dimension = 'user' and e.dimension_name is not null then 'user ' || e.dimension_id else e.dimension_name end`;
}
