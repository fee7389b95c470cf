import { sql } from "kysely";
import type { GroupBy } from "../../domain/usage/record.ts";
import { labelOf } from "../catalog/entity-names.ts";
import type { Database } from "../db/database.ts";
import { contains } from "./records.ts";

/** A workspace, project, user or API key, as its dimension has it. */
interface Named {
  readonly by: GroupBy;
  readonly id: string;
  /** The current one; API keys have none. */
  readonly name: string | null;
  /** ISO instants, UTC: the first and last bucket that named it. Null where only a configuration or a listing did. */
  readonly firstSeen: string | null;
  readonly lastSeen: string | null;
}

interface Wanted {
  readonly sourceId: number;
  readonly groupings: readonly GroupBy[];
  /** A part of the name or the id, in capitals or not. */
  readonly find: string;
  /** Users are named by their id, and found by nothing else. */
  readonly masked: boolean;
  readonly most: number;
}

const ISO = 'YYYY-MM-DD"T"HH24:MI:SS"Z"';

/** What is called so, the most like it and the last seen first. */
export async function findNamed(
  db: Database,
  { sourceId, groupings, find, masked, most }: Wanted,
): Promise<Named[]> {
  const { rows } = await sql<Named>`
    select by, id, name, to_char(first_seen_at at time zone 'UTC', ${ISO}) as "firstSeen",
           to_char(last_seen_at at time zone 'UTC', ${ISO}) as "lastSeen"
    from (
      select dimension as by, dimension_id as id, ${labelOf(masked)} as name, first_seen_at, last_seen_at
      from usage.labelled_entity e
      where source_id = ${sourceId} and dimension = any (${[...groupings]}::text[]) and external_id <> ''
    ) e
    where ${contains(sql`id`, find)} or ${contains(sql`name`, find)}
    order by lower(${find}) in (lower(id), lower(name)) desc, usage.dimension_position(by), last_seen_at desc nulls last, id collate "C"
    limit ${most}
  `.execute(db);
  return rows;
}
