import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Ended days x workspaces x dimensions of one stride, of traces of all tiers. */
export interface OpenDays {
  readonly stride: string;
  readonly final: number;
  readonly provisional: number;
  readonly missing: number;
  readonly failed: number;
  readonly unverified: number;
}

/** The days of a source by stride; a stride without any is left out. */
export async function openDays(db: Database, source: string): Promise<OpenDays[]> {
  const ended = (status: "final" | "provisional" | "missing" | "failed" | "unverified") =>
    sql`sum(usage.count_days(${sql.ref(`c.${status}`)} * t.ended))::integer as ${sql.ref(status)}`;
  const { rows } = await sql<OpenDays>`
    select c.stride, ${sql.join((["final", "provisional", "missing", "failed", "unverified"] as const).map(ended))}
    -- OFFSET 0: each set is computed once, not for each mention.
    from (select * from usage.coverage_cell where slug = ${source} and meter = 'traces' offset 0) c
    cross join (select datemultirange(daterange(null, (now() at time zone 'UTC')::date)) as ended) t
    group by c.stride
    order by c.stride
  `.execute(db);
  return rows;
}
