import { sql } from "kysely";
import type { Dimension } from "../../domain/usage/record.ts";
import type { ResponseKey } from "../../domain/usage/response-keys.ts";
import type { Database } from "../db/database.ts";
import type { Row } from "../db/query.ts";

interface OfDimension {
  readonly sourceId: number;
  readonly dimension: Dimension;
}

export type SeenEntity = Pick<ResponseKey, "dimensionId" | "firstHour" | "lastHour">;

export async function entityIds(
  db: Database,
  { sourceId, dimension, dimensionIds }: OfDimension & { dimensionIds: readonly string[] },
): Promise<(number | undefined)[]> {
  const { rows } = await sql<{ entity_id: number | null }>`
    select e.entity_id
    from unnest(${dimensionIds}::text[]) with ordinality k (id, n)
    left join usage.entity e
      on e.source_id = ${sourceId} and e.dimension = ${dimension} and e.external_id = k.id
    order by k.n
  `.execute(db);
  return rows.map((row) => row.entity_id ?? undefined);
}

interface KnownEntity extends Row<"usage.entity", "entityId"> {
  readonly dimensionId: string;
  /** Null where only a configuration or a listing named the entity. */
  readonly firstHour: number | null;
  readonly lastHour: number | null;
}

const ENTITY = sql`entity_id as "entityId", external_id as "dimensionId",
  extract(epoch from first_seen_at)::bigint / 3600 as "firstHour",
  extract(epoch from last_seen_at)::bigint / 3600 as "lastHour"`;

export async function createEntities(
  db: Database,
  { sourceId, dimension }: OfDimension,
  seen: ReadonlyMap<string, SeenEntity>,
): Promise<Map<string, number>> {
  const find = (ids: readonly string[]) => sql<KnownEntity>`
    select ${ENTITY} from usage.entity
    where source_id = ${sourceId} and dimension = ${dimension} and external_id = any (${ids}::text[])
  `;
  const insert = (ids: readonly string[]) => sql<KnownEntity>`
    insert into usage.entity (source_id, dimension, external_id, first_seen_at, last_seen_at)
    select ${sourceId}, ${dimension}, id, to_timestamp(first * 3600), to_timestamp(last * 3600)
    from unnest(
      ${ids}::text[], ${ids.map((id) => seen.get(id)?.firstHour)}::bigint[],
      ${ids.map((id) => seen.get(id)?.lastHour)}::bigint[]
    ) n (id, first, last)
    on conflict do nothing
    returning ${ENTITY}
  `;
  const known = new Map<string, KnownEntity>();
  // All sessions insert ids in this order, so that two sessions with the same ids never deadlock.
  let missing = [...seen.keys()].sort();
  // The second search finds rows that another session created meanwhile.
  for (const query of [find, insert, find]) {
    if (missing.length === 0) break;
    const { rows } = await query(missing).execute(db);
    for (const entity of rows) known.set(entity.dimensionId, entity);
    missing = missing.filter((id) => !known.has(id));
  }
  const entities = [...known.values()];
  await widenSeen(
    db,
    entities.flatMap(({ entityId, dimensionId, firstHour, lastHour }) => {
      const span = seen.get(dimensionId) as SeenEntity;
      const isWithin =
        firstHour !== null && lastHour !== null && firstHour <= span.firstHour && lastHour >= span.lastHour;
      return isWithin ? [] : [{ ...span, entityId }];
    }),
  );
  return new Map(entities.map(({ dimensionId, entityId }) => [dimensionId, entityId]));
}

async function widenSeen(
  db: Database,
  widened: readonly (SeenEntity & { readonly entityId: number })[],
): Promise<void> {
  if (widened.length === 0) return;
  const ids = widened.map((w) => w.entityId);
  await sql`
    with locked as (
      select entity_id from usage.entity where entity_id = any (${ids}::integer[])
      order by entity_id
      for no key update
    )
    update usage.entity e
    set first_seen_at = least(e.first_seen_at, to_timestamp(seen.first * 3600)),
        last_seen_at = greatest(e.last_seen_at, to_timestamp(seen.last * 3600))
    from unnest(
      ${ids}::integer[], ${widened.map((w) => w.firstHour)}::bigint[], ${widened.map((w) => w.lastHour)}::bigint[]
    ) seen (entity_id, first, last)
    join locked using (entity_id)
    where e.entity_id = seen.entity_id
  `.execute(db);
}
