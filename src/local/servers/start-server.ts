import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { UnreachableError } from "../../errors.ts";

/** `url` holds the password: not for logs. */
export interface Service {
  readonly url: string;
  readonly origin: "named" | "docker" | "local";
  /** Stops a server that was started here, and removes its data. */
  close(): Promise<void>;
}

export interface StartInput {
  /** Holds the temporary folder of Postgres. Default: memory where there is enough, else a disk. */
  readonly base?: string | undefined;
  /** Further settings of Postgres, as `name=value`. */
  readonly settings?: readonly string[] | undefined;
  readonly say: (line: string) => void;
  readonly env: NodeJS.ProcessEnv;
  /** Asked before an installation: `what` completes "Install ...". Default: yes. */
  readonly mayInstall?: ((what: string) => Promise<boolean>) | undefined;
}

export interface ServerInput {
  readonly name: "Postgres" | "Redis";
  readonly home: Home;
  readonly signal: "INT" | "TERM";
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  readonly command: (port: number) => readonly string[];
  readonly url: (port: number) => string;
  /** How long its stop may take before it is killed, in milliseconds. Default: a minute. */
  readonly stopMs?: number;
  /** Rejects until the server takes its password, so it is no other one on the same port. */
  readonly ping: (url: string) => Promise<void>;
}

const READY_MS = 120_000;
/** A checkpoint of a small database takes seconds, on a busy disk too. */
const STOP_MS = 60_000;
const PORT_ATTEMPTS = 5;

/** Waits until the server answers on a free port of 127.0.0.1. Error: `*_start_failed`, with the end of its log. */
export async function startServer(input: ServerInput): Promise<Service> {
  const { name, home } = input;
  const log = join(home.dir, "server.log");
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const url = input.url(port);
    const server = watch(input, port, log);
    if (await answers(server.gone, () => input.ping(url))) {
      server.unref();
      let closing: Promise<void> | undefined;
      const close = () => {
        closing ??= server.stop().finally(home.release);
        return closing;
      };
      return { url, origin: "local", close };
    }
    const end = readFileSync(log, "utf8").trimEnd().split("\n").slice(-8).join("\n");
    await server.stop();
    // Another process may have taken the port meanwhile.
    if (
      attempt < PORT_ATTEMPTS &&
      /address already in use|could not bind|port is already allocated/i.test(end)
    )
      continue;
    throw new UnreachableError({
      code: `${name.toLowerCase()}_start_failed`,
      message: `${name} did not start in ${home.dir}:\n${end}`,
      next: `Fix the reason in its log, or set ${name === "Postgres" ? "DATABASE_URL" : "REDIS_URL"} to a running server.`,
    });
  }
}

/** False if the server ends first, or does not answer in time. */
async function answers(gone: Promise<unknown>, ping: () => Promise<void>): Promise<boolean> {
  const ended = new AbortController();
  gone.finally(() => ended.abort()).catch(() => {});
  const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(READY_MS)]);
  while (!signal.aborted) {
    try {
      await ping();
      return true;
    } catch {
      await pause(20);
    }
  }
  return false;
}

/**
 * The kernel closes the pipe when this process ends, also by SIGKILL, and the shell stops the server. It repeats the signal,
 * which may come before the server handles it. If the server ends by itself, `asked` stays 0 and its folder stays.
 */
const WATCHDOG = `
signal=$1 remove=$2; shift 2
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

function watch(
  { home, signal, user, command, stopMs = STOP_MS }: ServerInput,
  port: number,
  logFile: string,
) {
  const log = openSync(logFile, "w", 0o600);
  const args = [signal, home.dir, ...command(port)];
  const shell = spawn("/bin/sh", ["-c", WATCHDOG, "watchdog", ...args], {
    // The server's user may be unable to enter our folder.
    cwd: "/",
    env: serverEnvironment(),
    stdio: ["ignore", log, log, "pipe"],
    // In its own session, so that Ctrl-C reaches this process first.
    detached: true,
    ...user,
  });
  closeSync(log);
  const pipe = shell.stdio[3] as Socket;
  pipe.on("error", () => {});
  const gone = once(shell, "exit");
  gone.catch(() => {}).finally(() => pipe.destroy());
  return {
    gone,
    /** Lets this process end without `stop`. */
    unref: () => {
      shell.unref();
      pipe.unref();
    },
    /** A server that does not heed its signal is killed, with its watchdog. */
    stop: async () => {
      shell.ref();
      pipe.destroy();
      const kill = setTimeout(() => {
        // All of its session. A group of 0 would be ours.
        if (shell.pid !== undefined) process.kill(-shell.pid, "SIGKILL");
      }, stopMs);
      await gone.finally(() => clearTimeout(kill));
    },
  };
}

/** Neither secrets nor PGOPTIONS and the like reach a server. Tests move its clock. Its log is searched in English. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => /^(PATH|LD_PRELOAD|CLOCK_OFFSET)$/.test(name));
  return { ...Object.fromEntries(kept), LC_ALL: "C" };
}

/** `wanted` if it is free, else any port. */
export async function freePort(wanted = 0): Promise<number> {
  const server = createServer().listen(wanted, "127.0.0.1");
  try {
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  } catch (error) {
    if (wanted === 0) throw error;
    return await freePort();
  } finally {
    await server[Symbol.asyncDispose]().catch(() => {});
  }
}

/** Folder of one server. */
export interface Home {
  readonly dir: string;
  /** Made for the folder, so that no other local user can connect. */
  readonly password: string;
  /** Removes the folder. */
  release(): void;
}

export function temporaryHome(kind: string, base: string): Home {
  const dir = mkdtempSync(join(base, `usage-etl-${kind}-`));
  const release = () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  return { dir, password: randomBytes(18).toString("base64url"), release };
}
