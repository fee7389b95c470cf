import { DatabaseSync } from "node:sqlite";

/**
 * An exclusive lock of the operating system. It ends with the process, even after SIGKILL. A file with a process id would
 * stay, and could later name another process. Node offers such locks only through its SQLite. Undefined: another process
 * holds it.
 */
export function takeLock(path: string): DatabaseSync | undefined {
  // One second, because an owner that was just killed takes a moment to disappear.
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

/** Whether a process holds the lock. It only reads: any number may look at the same time, and none is taken for an owner. */
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
