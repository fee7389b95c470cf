import type { Database } from "./database.ts";

/** Reads by several statements as of one instant, without writes. A nested snapshot has the instant of the outer one. */
export async function inSnapshot<T>(db: Database, read: (snapshot: Database) => Promise<T>): Promise<T> {
  if (db.isTransaction) return read(db);
  return db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(read);
}
