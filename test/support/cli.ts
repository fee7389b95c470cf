import { type ChildProcess, fork, spawn } from "node:child_process";
import { on, once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { type CommandTask, END } from "./command-process.ts";
import { atEnd } from "./share.ts";

const RELEASE = fileURLToPath(new URL("../..", import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Said {
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
  /** What it has written so far. */
  readonly said: Said;
}

export interface Where {
  readonly within?: readonly string[];
  readonly release?: string;
  /** Working folder. Default: that of the tests. */
  readonly cwd?: string;
  readonly output?: string | undefined;
}

export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { within = [], release = RELEASE, cwd, output }: Where = {},
): Running {
  const [program = "", ...rest] = [...within, process.execPath, join(release, "src/cli.js"), ...args];
  const file = output === undefined ? "pipe" : openSync(output, "a");
  const child = spawn(program, rest, {
    cwd,
    env: { ...environment(), ...env },
    stdio: ["ignore", file, file],
  });
  if (typeof file === "number") closeSync(file);
  for (const one of [child.stdout, child.stderr]) one?.setEncoding("utf8");
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
  atEnd(async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await ended;
  });
  return { process: child, ended, said };
}

export function environment(): Record<string, string> {
  const { PATH = "", HOME = "/tmp", NODE_COMPILE_CACHE = "" } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, USAGE_ENV_FILE: "/dev/null", ...clockVariables() };
}

/** What moves the clock of the tests (`npm run test:clock`): all processes of a run need the same. */
export function clockVariables(): Record<string, string> {
  const { LD_PRELOAD, CLOCK_OFFSET } = process.env;
  return LD_PRELOAD === undefined || CLOCK_OFFSET === undefined ? {} : { LD_PRELOAD, CLOCK_OFFSET };
}

/** What a command reads of its environment. What Node or the system read must be there when a process starts. */
const READ_LATER = /^(?:USAGE|DATABASE|REDIS|AWS)_/;
let commands: { readonly child: ChildProcess; isBusy: boolean } | undefined;

export async function usageEtl(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  where?: Where,
): Promise<Ended> {
  const isOrdinary = where === undefined && Object.keys(env).every((name) => READ_LATER.test(name));
  if (!isOrdinary || commands?.isBusy === true) return start(args, env, where).ended;
  commands ??= { child: forkCommands(), isBusy: false };
  const used = commands;
  used.isBusy = true;
  try {
    return await inProcess(used.child, { args, env: { ...environment(), ...env } });
  } catch (error) {
    commands = undefined;
    throw error;
  } finally {
    used.isBusy = false;
  }
}

function forkCommands(): ChildProcess {
  const path = fileURLToPath(new URL("command-process.ts", import.meta.url));
  const child = fork(path, { env: environment(), execArgv: [], stdio: ["ignore", "pipe", "pipe", "ipc"] });
  // A character may lie in two pieces.
  for (const one of [child.stdout, child.stderr]) one?.setEncoding("utf8");
  for (const one of [child, child.channel, child.stdout, child.stderr] as { unref?(): void }[]) one.unref?.();
  return child;
}

async function inProcess(child: ChildProcess, task: CommandTask): Promise<Ended> {
  const listening = new AbortController();
  const { signal } = listening;
  const whole = async (stream: Readable) => {
    let said = "";
    for await (const [piece] of on(stream, "data", { signal })) {
      said += piece;
      if (said.endsWith(END)) break;
    }
    return said.slice(0, -END.length);
  };
  const gone = async () => {
    const [code] = await once(child, "exit", { signal });
    throw new Error(`the process of the commands ended with ${code}: ${task.args.join(" ")}`);
  };
  const ended = async (): Promise<Ended> => {
    const [[code], stdout, stderr] = await Promise.all([
      once(child, "message", { signal }),
      whole(child.stdout as Readable),
      whole(child.stderr as Readable),
    ]);
    return { code, stdout, stderr };
  };
  const first = Promise.race([ended(), gone()]);
  child.send(task);
  return first.finally(() => listening.abort());
}
