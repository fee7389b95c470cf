import { DatabaseSync } from "node:sqlite";

/**
 * An exclusive lock of the operating system, which Node offers through SQLite only; undefined if another
 * process holds it. It ends with the process, even by SIGKILL: a process id in a file could later name
 * another process.
 */
export function takeLock(path: string): DatabaseSync | undefined {
  // An owner that was just killed takes a moment to disappear.
  const lock = new DatabaseSync(path, { timeout: 1_000 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

/** Only reads: many may look at once, and none is taken for an owner. */
export function isLocked(path: string): boolean {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(path, { readOnly: true, timeout: 0 });
    lock.exec("SELECT 1 FROM sqlite_master");
    return false;
  } catch (error) {
    return isBusy(error);
  } finally {
    lock?.close();
  }
}

/** SQLITE_BUSY: another process holds the lock. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === 5;
}
