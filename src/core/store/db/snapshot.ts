import type { Database } from "./database.ts";

/** Reads by several statements as of one instant, without writes. A nested snapshot reads as of the outer one's instant. */
export async function inSnapshot<T>(db: Database, read: (snapshot: Database) => Promise<T>): Promise<T> {
  if (db.isTransaction) return read(db);
  return db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(read);
}
