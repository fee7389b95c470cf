import { type RawBuilder, sql } from "kysely";
import type { AnswerKey } from "../../domain/usage/answer-keys.ts";
import type { Database } from "../db/database.ts";

export type NameInTime = AnswerKey["names"][number] & { readonly entityId: number };

/** Takes only minima and maxima, so responses may come in any order and repeatedly. */
export async function learnNames(
  db: Database,
  fetchNumber: number,
  names: readonly NameInTime[],
): Promise<void> {
  if (names.length === 0) return;
  await sql`
    with given as (
      select id, name, to_timestamp(first * 3600) as first_bucket, to_timestamp(last * 3600) as last_bucket
      from unnest(
        ${names.map((n) => n.entityId)}::integer[], ${names.map((n) => n.name)}::text[],
        ${names.map((n) => n.firstHour)}::bigint[], ${names.map((n) => n.lastHour)}::bigint[]
      ) n (id, name, first, last)
    )
    insert into usage.entity_name as known (entity_id, name, first_bucket, last_bucket, fetch_number)
    select id, name, first_bucket, last_bucket, ${fetchNumber} from given
    -- Most names bring nothing new. Without this condition, each of them would still lock its row and write to the log.
    where not exists (
      select from usage.entity_name same
      where same.entity_id = given.id and md5(same.name) = md5(given.name)
        and same.first_bucket <= given.first_bucket
        and (same.last_bucket, same.fetch_number) >= (given.last_bucket, ${fetchNumber}::bigint)
    )
    order by id, md5(name)
    on conflict (entity_id, md5(name)) do update
    set first_bucket = least(known.first_bucket, excluded.first_bucket),
        last_bucket = greatest(known.last_bucket, excluded.last_bucket),
        fetch_number = case
          when (excluded.last_bucket, excluded.fetch_number) > (known.last_bucket, known.fetch_number)
            then excluded.fetch_number
          else known.fetch_number
        end
    where excluded.first_bucket < known.first_bucket
       or (excluded.last_bucket, excluded.fetch_number) > (known.last_bucket, known.fetch_number)
  `.execute(db);
}

/** Current name of row `e` of `usage.labelled_entity`. `masked`: users are named by their id, as in the masked views. */
export function labelOf(masked: boolean): RawBuilder<string | null> {
  if (!masked) return sql`e.dimension_name`;
  return sql`case when e.dimension = 'user' and e.dimension_name is not null then 'user ' || e.dimension_id else e.dimension_name end`;
}
