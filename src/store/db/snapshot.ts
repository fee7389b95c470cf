import type { Database } from "./database.ts";

/** Reads by several statements as of one instant: what commits between them is not seen. Writes are refused. */
export async function inSnapshot<T>(db: Database, read: (snapshot: Database) => Promise<T>): Promise<T> {
  return db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(read);
}
