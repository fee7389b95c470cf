import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { UnreachableError, UsageError } from "../../errors.ts";
import { takeLock } from "../../lock.ts";
import type { Service } from "./service.ts";
import { type Watched, type WatchInput, watch } from "./watchdog.ts";

const READY_MS = 120_000;
const LEFTOVER_MS = 90_000;
const POLL_MS = 20;
const PORT_ATTEMPTS = 5;

interface ServerInput {
  readonly name: "Postgres" | "Redis";
  readonly home: Home;
  readonly signal: "INT" | "TERM";
  readonly user?: WatchInput["user"];
  readonly command: (port: number) => { readonly program: string; readonly args: readonly string[] };
  /** Rejects until the server answers to its password. */
  readonly ping: (url: string) => Promise<void>;
  readonly url: (port: number) => string;
}

/**
 * Starts a local server on a free port of 127.0.0.1 and waits until it answers. Closing it releases its home. Throws
 * `UnreachableError` (`*_start_failed`) with the end of the server's log.
 */
export async function startServer(input: ServerInput): Promise<Service> {
  const { home } = input;
  const log = join(home.dir, "server.log");
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(attempt === 1 ? home.lastPort : undefined);
    home.remember(port);
    const server = watch({
      ...input.command(port),
      signal: input.signal,
      user: input.user,
      log,
      remove: home.temporary ? home.dir : undefined,
    });
    if (await answers(server, () => input.ping(input.url(port)))) {
      server.unref();
      return {
        url: input.url(port),
        origin: "local",
        close: once(() => server.stop().finally(home.release)),
      };
    }
    // Read the log before the watchdog removes a temporary home.
    const end = lastLines(log);
    await server.stop();
    // Another process may have taken the port meanwhile.
    if (attempt < PORT_ATTEMPTS && /address already in use|could not bind/i.test(end)) continue;
    throw new UnreachableError({
      code: `${input.name.toLowerCase()}_start_failed`,
      message: `${input.name} did not start in ${home.dir}:\n${end}`,
      next: `Fix the reason in its log, or set ${input.name === "Postgres" ? "DATABASE_URL" : "REDIS_URL"} to a running server.`,
    });
  }
}

/** A second call does nothing: the folder may have its next owner by then. */
function once(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => {
    closing ??= close();
    return closing;
  };
}

/** True once `ping` resolves. False if the server ends first, or the deadline passes. */
async function answers(server: Watched, ping: () => Promise<void>): Promise<boolean> {
  let gone = false;
  server.gone
    .finally(() => {
      gone = true;
    })
    .catch(() => {});
  const deadline = Date.now() + READY_MS;
  while (!gone && Date.now() < deadline) {
    try {
      await ping();
      // The server knows the password, so it is ours and not another one on the same port.
      return true;
    } catch {
      await pause(POLL_MS);
    }
  }
  return false;
}

interface LeftoverInput {
  /** File with the server's process id in its first line. */
  readonly pidFile: string;
  /** Text that only this server has on its command line. */
  readonly mark: string;
  readonly say: (line: string) => void;
}

/**
 * Waits until the Postgres of an earlier owner of this folder has ended. The caller holds the folder's lock. The watchdog of
 * that server stops it, unless it was killed as well; so the server is asked again, which is harmless. A process that has
 * merely got the same process id after a restart of the machine or container is not touched.
 */
export async function clearLeftover(input: LeftoverInput): Promise<void> {
  const deadline = Date.now() + LEFTOVER_MS;
  for (let asked = false; ; ) {
    const pid = readPid(input.pidFile);
    if (pid === undefined || !(await commandLine(pid)).includes(input.mark)) return;
    if (!asked) input.say(`Waiting for the Postgres of an earlier run (process ${pid}) to stop.`);
    asked = true;
    try {
      process.kill(pid, "SIGINT");
    } catch {
      // The process has ended, or belongs to another user. The next check shows which.
    }
    if (Date.now() > deadline) {
      throw new UsageError({
        code: "data_directory_in_use",
        message: `Postgres of an earlier run (process ${pid}) still runs in the data directory of ${input.pidFile}.`,
        next: `Stop it (kill -INT ${pid}), or choose another directory.`,
      });
    }
    await pause(200);
  }
}

function readPid(path: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(path, "utf8"), 10);
    return pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Empty for a process that has ended, even if its parent has not collected it yet. */
async function commandLine(pid: number): Promise<string> {
  try {
    if (process.platform === "linux")
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    return (await promisify(execFile)("ps", ["-o", "args=", "-p", String(pid)])).stdout;
  } catch {
    return "";
  }
}

/** The port `wanted` if it is free, else any free port. */
export async function freePort(wanted = 0): Promise<number> {
  const server = createServer();
  try {
    return await new Promise<number>((taken, failed) => {
      server.once("error", failed);
      server.listen(wanted, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo;
        server.close(() => taken(port));
      });
    });
  } catch (error) {
    if (wanted === 0) throw error;
    return await freePort();
  }
}

function lastLines(path: string): string {
  return readFileSync(path, "utf8").trimEnd().split("\n").slice(-8).join("\n");
}

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

/** The folder `postgres` under `dataDir`, for this process alone. Throws `UsageError` (`data_directory_in_use`). */
export function keptHome(dataDir: string): Home {
  const dir = join(resolve(dataDir), "postgres");
  const noteFile = join(dir, "server.json");
  let lock: ReturnType<typeof takeLock>;
  try {
    mkdirSync(dir, { recursive: true });
    // The server's user must pass through it, whatever the umask. The note and the data have their own modes.
    chmodSync(dir, 0o711);
    lock = takeLock(join(dir, "lock"));
    if (lock === undefined) throw inUse(dir, readNote(noteFile));
    const held = lock;
    const last = readNote(noteFile);
    const password = last?.password ?? newPassword();
    writeNote(noteFile, { ...last, pid: process.pid, password });
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
      next: "Name one that this user may write to: `--data-dir FOLDER`.",
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
