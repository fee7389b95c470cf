import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { clockVariables } from "../../src/local/servers/watchdog.ts";

const RELEASE = fileURLToPath(new URL("../..", import.meta.url));

export interface Ended {
  /** Null where a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Said {
  readonly stdout: string;
  /** Both kinds, where a file takes its output. */
  readonly stderr: string;
}

export interface Running {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
  /** What it has written so far. */
  readonly said: Said;
}

/** Where a program runs. */
export interface Where {
  /** A command that runs the one after it in its place, as `ip netns exec` does. */
  readonly within?: readonly string[];
  /** Folder of another release. */
  readonly release?: string;
  /** Working folder. Default: that of the tests. */
  readonly cwd?: string;
  /** A file that takes its output, both kinds, in place of pipes. */
  readonly output?: string | undefined;
}

/**
 * Starts `usage-etl` as a user does. Its environment is what is given, where Node keeps compiled modules, and the
 * clock of the tests. Killed when the test ends.
 */
export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { within = [], release = RELEASE, cwd, output }: Where = {},
): Running {
  const [program = "", ...rest] = [...within, process.execPath, join(release, "src/cli.ts"), ...args];
  const file = output === undefined ? "pipe" : openSync(output, "a");
  const child = spawn(program, rest, {
    cwd,
    env: { ...environment(), ...env },
    stdio: ["ignore", file, file],
  });
  if (typeof file === "number") closeSync(file);
  const piped = { stdout: "", stderr: "" };
  child.stdout?.on("data", (piece) => {
    piped.stdout += piece;
  });
  child.stderr?.on("data", (piece) => {
    piped.stderr += piece;
  });
  const said: Said =
    output === undefined
      ? piped
      : {
          stdout: "",
          get stderr() {
            return readFileSync(output, "utf8");
          },
        };
  const ended = new Promise<Ended>((resolve) => child.on("close", (code) => resolve({ code, ...said })));
  onTestFinished(async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await ended;
  });
  return { process: child, ended, said };
}

/**
 * What every program of a test finds: where programs and compiled modules are, the clock of the tests, and no settings of
 * whoever runs them.
 */
export function environment(): Record<string, string> {
  const { PATH = "", HOME = "/tmp", NODE_COMPILE_CACHE = "" } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, USAGE_ENV_FILE: "/dev/null", ...clockVariables() };
}

/** Runs `usage-etl` to its end. */
export function usageEtl(
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
  where?: Where,
): Promise<Ended> {
  return start(args, env, where).ended;
}
