import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { UnreachableError, UsageError } from "../errors.ts";
import type { Home } from "./home.ts";
import type { Service } from "./service.ts";
import { type Watched, type WatchInput, watch } from "./watchdog.ts";

/** Starting a server of our own on a free port of 127.0.0.1, and clearing away what an earlier owner left running. */

const READY_MS = 120_000;
const LEFTOVER_MS = 90_000;
const POLL_MS = 20;
const PORT_ATTEMPTS = 5;

export interface ServerInput {
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
 * Resolves once the server answers; closing it gives up its home. Throws `UnreachableError` (`*_start_failed`) with the
 * end of its log.
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
    // Before the watchdog removes a temporary home with its log.
    const end = lastLines(log);
    await server.stop();
    // Between looking for a free port and taking it, another process may have taken it.
    if (attempt < PORT_ATTEMPTS && /address already in use|could not bind/i.test(end)) continue;
    throw new UnreachableError({
      code: `${input.name.toLowerCase()}_start_failed`,
      message: `${input.name} did not start in ${home.dir}:\n${end}`,
      next: `Mend what its log names, or set ${input.name === "Postgres" ? "DATABASE_URL" : "REDIS_URL"} to a server that runs.`,
    });
  }
}

/** Closing twice is closing once: the folder may have its next owner by then. */
function once(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => {
    closing ??= close();
    return closing;
  };
}

/** True once `ping` resolves; false when the server is gone before, or the deadline has passed. */
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
      // Who answered knows the password, so it is ours, not a stranger on the same port.
      return true;
    } catch {
      await pause(POLL_MS);
    }
  }
  return false;
}

export interface LeftoverInput {
  readonly name: "Postgres" | "Redis";
  /** File whose first line is the server's process id. */
  readonly pidFile: string;
  /** Text on the server's command line that no other process's has. */
  readonly mark: string;
  readonly signal: "SIGINT" | "SIGTERM";
  readonly say: (line: string) => void;
}

/**
 * Waits until a server that an earlier owner of this folder started is gone; to be called with the folder's lock held.
 * Its watchdog is stopping it; asking again is harmless, and needed where the watchdog was killed as well. A process
 * that merely got the number in the file (after a restart of the machine or container) is not touched.
 */
export async function clearLeftover(input: LeftoverInput): Promise<void> {
  const deadline = Date.now() + LEFTOVER_MS;
  for (let asked = false; ; ) {
    const pid = readPid(input.pidFile);
    if (pid === undefined || !(await commandLine(pid)).includes(input.mark)) return;
    if (!asked) input.say(`Waiting for the ${input.name} of an earlier run (process ${pid}) to stop.`);
    asked = true;
    try {
      process.kill(pid, input.signal);
    } catch {
      // Gone meanwhile, or of another user: the next look tells which.
    }
    if (Date.now() > deadline) {
      throw new UsageError({
        code: "data_directory_in_use",
        message: `${input.name} of an earlier run (process ${pid}) still runs in the data directory of ${input.pidFile}.`,
        next: `Stop it (kill -${input.signal.slice(3)} ${pid}), or name another directory.`,
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

/** Empty for a process that is gone, or dead and not yet collected by its parent. */
async function commandLine(pid: number): Promise<string> {
  try {
    if (process.platform === "linux")
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    return (await promisify(execFile)("ps", ["-o", "args=", "-p", String(pid)])).stdout;
  } catch {
    return "";
  }
}

/** `wanted`, where it is free, else any port that is. */
async function freePort(wanted = 0): Promise<number> {
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
