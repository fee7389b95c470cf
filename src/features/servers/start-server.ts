import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chownSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { UnreachableError } from "../../core/base/errors.ts";
import { isExecutable } from "./install.ts";

/** Servers for demo, tests and benchmarks: those of the settings, otherwise a container, otherwise a local process. */

/** `url` contains the password, so never log it. */
export interface Service {
  readonly url: string;
  readonly origin: "named" | "docker" | "local";
  close(): Promise<void>;
}

export interface StartInput {
  readonly settings?: readonly string[] | undefined;
  /** Version of Postgres from npm. Default: that of `package.json`. */
  readonly version?: string | undefined;
  readonly say: (line: string) => void;
  readonly env: NodeJS.ProcessEnv;
  /** Called before an installation. `what` completes "Install ...". Default: yes. */
  readonly mayInstall?: ((what: string) => Promise<boolean>) | undefined;
}

export const DEFAULTS: StartInput = { say: (line) => console.error(line), env: process.env };

export interface Place {
  readonly dir: string;
  readonly port: number;
  readonly password: string;
  /** Only the server's user can read the file. Every local user can read a command line. */
  readonly secretFile: string;
}

interface ServerInput {
  readonly name: "Postgres" | "Redis";
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  readonly signal: "INT" | "TERM";
  readonly at: (place: Place) => { secrets: string; command: readonly string[]; url: string };
  /** Rejects until the server accepts its password, so another server on the port does not count. */
  readonly ping: (url: string) => Promise<void>;
  /** Longest stop before the server is killed, in ms. Default: a minute. */
  readonly stopMs?: number;
}

/** A start takes a second; on a slow disk, minutes. */
const READY_MS = 300_000;
/** A checkpoint of a small database takes seconds, even on a busy disk. */
const STOP_MS = 60_000;
const PORT_ATTEMPTS = 5;

const SETTINGS = {
  Postgres: "DATABASE_URL=postgresql://user:password@host:5432/database",
  Redis: "REDIS_URL=redis://host:6379, or install redis-server or valkey-server",
};

/** `code` begins with the server's name. */
export function missing(code: string, reason: string, cause?: unknown): UnreachableError {
  const name = code.startsWith("redis") ? "Redis" : "Postgres";
  const [variable] = SETTINGS[name].split("=");
  return new UnreachableError({
    code,
    message: `No ${name} to use: ${variable} is not set, ${reason}`,
    next: `Set ${SETTINGS[name]}.`,
    cause,
  });
}

/** Waits until the server responds on a free port of 127.0.0.1. Error: `*_start_failed`, with the end of its log. */
export async function startServer({ name, user, signal, at, ping, stopMs }: ServerInput): Promise<Service> {
  const dir = mkdtempSync(join(temporaryBase(user), `usage-etl-${name.toLowerCase()}-`));
  const remove = () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  const password = randomBytes(18).toString("base64url");
  const secretFile = join(dir, "secrets");
  for (let attempt = 1; ; attempt++) {
    const { secrets, command, url } = at({ dir, port: await freePort(), password, secretFile });
    writeFileSync(secretFile, secrets, { mode: 0o600 });
    if (user !== undefined) for (const path of [dir, secretFile]) chownSync(path, user.uid, user.gid);
    const shell = watch([signal, dir, ...command], user);
    if (await responses(shell, () => ping(url))) {
      // This process may end without `close`, in spite of the server.
      for (const handle of [shell, pipeOf(shell)]) handle.unref();
      return { url, origin: "local", close: () => stop(shell, stopMs).finally(remove) };
    }
    const end = readFileSync(join(dir, "server.log"), "utf8").trimEnd().split("\n").slice(-8).join("\n");
    await stop(shell, stopMs);
    // Another process may have taken the port in the meantime.
    if (attempt < PORT_ATTEMPTS && /address already in use|could not bind/i.test(end)) continue;
    remove();
    throw missing(`${name.toLowerCase()}_start_failed`, `and a local one did not start:\n${end}`);
  }
}

/**
 * Folder that the server's user can enter, in memory if it has 2 GiB: creating a test's database takes 13 ms there, and 30 to
 * 370 ms on disks.
 */
function temporaryBase(user: ServerInput["user"]): string {
  const memory = "/dev/shm";
  const { bavail, bsize } = isExecutable(memory) ? statfsSync(memory) : { bavail: 0, bsize: 0 };
  if (bavail * bsize >= 2 * 2 ** 30) return memory;
  return user === undefined ? tmpdir() : "/tmp";
}

async function responses(shell: ChildProcess, ping: () => Promise<void>): Promise<boolean> {
  const deadline = AbortSignal.timeout(READY_MS);
  while (isRunning(shell) && !deadline.aborted) {
    const isUp = ping().then(() => true);
    if (await isUp.catch(() => false)) return true;
    await pause(20);
  }
  return false;
}

/**
 * The kernel closes the pipe when this process ends, even by SIGKILL. Then the shell stops the server. It repeats the signal,
 * because the server may not handle it yet. If the server ends on its own, `asked` stays 0 and its folder stays.
 */
const WATCHDOG = `
signal=$1 remove=$2; shift 2
exec >"$remove/server.log" 2>&1
asked=0
trap 'asked=1' HUP INT TERM
"$@" </dev/null 3<&- &
server=$!
(
  while read -r _ <&3; do :; done
  while kill -TERM $$ 2>/dev/null; do sleep 1; done
) &
watcher=$!
while kill -0 $server 2>/dev/null; do
  [ $asked -eq 0 ] || kill -$signal $server
  wait $server
done 2>/dev/null
kill $watcher 2>/dev/null
[ $asked -eq 0 ] || rm -rf -- "$remove"
`;

function watch(args: readonly string[], user: ServerInput["user"]): ChildProcess {
  const { PATH, LD_PRELOAD, CLOCK_OFFSET } = process.env;
  const shell = spawn("/bin/sh", ["-c", WATCHDOG, "watchdog", ...args], {
    // The server's user may be unable to enter our folder.
    cwd: "/",
    // No secrets, no PGOPTIONS. Tests move the clock. The log must be English, because it is searched.
    env: { PATH, LD_PRELOAD, CLOCK_OFFSET, LC_ALL: "C" },
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    // In its own session, so that Ctrl-C reaches this process first.
    detached: true,
    ...user,
  });
  pipeOf(shell).on("error", () => {});
  return shell;
}

const pipeOf = ({ stdio }: ChildProcess) => stdio[3] as Socket;
const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

/** If a server ignores its signal, it is killed together with its watchdog. */
async function stop(shell: ChildProcess, stopMs = STOP_MS): Promise<void> {
  pipeOf(shell).destroy();
  if (!isRunning(shell)) return;
  shell.ref();
  const gone = once(shell, "exit");
  const kill = setTimeout(() => process.kill(-(shell.pid as number), "SIGKILL"), stopMs);
  await gone.finally(() => clearTimeout(kill));
}

export async function freePort(wanted = 0): Promise<number> {
  const server = createServer().listen(wanted, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await server[Symbol.asyncDispose]();
  return port;
}
