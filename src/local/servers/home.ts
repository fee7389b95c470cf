import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { UsageError } from "../../errors.ts";
import { takeLock } from "../../lock.ts";

/** The folder of a local server, with its lock, port, password and log, and its data in `data/`. */
export interface Home {
  readonly dir: string;
  readonly temporary: boolean;
  /** Generated once for the folder, so that no other local user can connect. */
  readonly password: string;
  /** The port of the last start. It is tried first, so that a kept server keeps its address. */
  readonly lastPort: number | undefined;
  /** Notes the port before a start, for the next start and for a process that finds the folder in use. */
  remember(port: number): void;
  /** Releases the folder. A temporary folder is removed. */
  release(): void;
}

interface Note {
  readonly pid: number;
  readonly port?: number;
  readonly password: string;
}

/** A new folder under `base`. */
export function temporaryHome(kind: "postgres" | "redis", base: string): Home {
  const dir = mkdtempSync(join(base, `usage-etl-${kind}-`));
  return {
    dir,
    temporary: true,
    password: newPassword(),
    lastPort: undefined,
    remember: () => {},
    // If this process ends first, the server's watchdog removes the folder.
    release: () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/** The folder `kind` under `dataDir`, for this process alone. Throws `UsageError` (`data_directory_in_use`). */
export function keptHome(kind: "postgres" | "redis", dataDir: string): Home {
  const dir = join(resolve(dataDir), kind);
  const noteFile = join(dir, "server.json");
  let lock: ReturnType<typeof takeLock>;
  try {
    mkdirSync(dir, { recursive: true });
    // The server's user must pass through it, whatever the umask. The note and the data have their own modes.
    chmodSync(dir, 0o711);
    lock = takeLock(join(dir, "lock"));
    const last = lock === undefined ? undefined : readNote(noteFile);
    const password = last?.password ?? newPassword();
    if (lock !== undefined) writeNote(noteFile, { ...last, pid: process.pid, password });
    if (lock === undefined) throw inUse(dir, readNote(noteFile));
    const held = lock;
    return {
      dir,
      temporary: false,
      password,
      lastPort: last?.port,
      remember: (port) => writeNote(noteFile, { pid: process.pid, port, password }),
      release: () => held.close(),
    };
  } catch (cause) {
    lock?.close();
    if (cause instanceof UsageError) throw cause;
    throw new UsageError({
      code: "data_directory_unusable",
      message: `The data directory ${dir} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`,
      next: "Run as the user who owns it, or choose another directory.",
      cause,
    });
  }
}

function inUse(dir: string, note: Note | undefined): UsageError {
  const holder = note === undefined ? "another process" : `process ${note.pid}`;
  return new UsageError({
    code: "data_directory_in_use",
    message: `The data directory ${dir} is in use by ${holder}.`,
    next: `Stop ${holder} first${note === undefined ? "" : ` (kill ${note.pid})`}, or choose another directory.`,
  });
}

function readNote(path: string): Note | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Note;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Written in one step: a kill in the middle of a write would lose the password. */
function writeNote(path: string, note: Note): void {
  writeFileSync(`${path}.new`, JSON.stringify(note), { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
}

function newPassword(): string {
  return randomBytes(18).toString("base64url");
}
