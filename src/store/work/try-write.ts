import { sql } from "kysely";
import type { Store } from "../db/database.ts";

/**
 * Fails as a load would: while Postgres is away or refuses writes, or its disk has no room for a megabyte. Room in pages
 * that exist lets smaller writes succeed on a full disk.
 */
export async function tryWrite({ db }: Store): Promise<void> {
  await sql`
    create temporary table room_for_a_load on commit drop as select repeat('x', 1000) as x from generate_series(1, 1000)
  `.execute(db);
}
