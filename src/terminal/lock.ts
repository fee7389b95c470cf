import { DatabaseSync } from "node:sqlite";

/**
 * Takes an exclusive lock of the operating system, which Node offers through SQLite only. Undefined: another process holds
 * it. The lock ends with the process, even after SIGKILL. A process id in a file could later name another process.
 */
export function takeLock(path: string): DatabaseSync | undefined {
  // A killed process keeps its lock for a moment.
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

/** Only reads, so that no check is mistaken for an owner of the lock. */
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
