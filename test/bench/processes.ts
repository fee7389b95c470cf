import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

export const CLI = fileURLToPath(new URL("../../src/cli.js", import.meta.url));
const COUNTER = fileURLToPath(new URL("./count-used.ts", import.meta.url));

export type Environment = Readonly<Record<string, string>>;

interface Used {
  readonly cpuMs: number;
  readonly peakMb: number;
}

export const NODE_OPTIONS = ["--max-semi-space-size=4"];

export function start(environment: Environment, ...args: string[]): ChildProcess & { stderr: Readable } {
  const child = spawn(process.execPath, [...NODE_OPTIONS, CLI, ...args], {
    env: environmentOf(environment),
    stdio: ["ignore", "ignore", "pipe"],
  });
  child.stderr.setEncoding("utf8");
  return child;
}

export function startService(environment: Environment, ...args: string[]) {
  const child = start(environment, "serve", ...args);
  const errors: string[] = [];
  child.stderr.on("data", (line: string) => void errors.push(line));
  return { child, said: () => errors.join(""), close: () => end(child) };
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  await gone;
}

export async function runCommand(
  environment: Environment,
  args: readonly string[],
  { cli = CLI, nodeOptions = [] }: { cli?: string; nodeOptions?: readonly string[] } = {},
) {
  const startedAt = performance.now();
  const child = spawn(
    process.execPath,
    [...NODE_OPTIONS, ...nodeOptions, "--import", COUNTER, cli, ...args],
    {
      env: environmentOf(environment),
      stdio: ["ignore", "pipe", "pipe", "pipe"],
    },
  );
  const [out, errors, used] = await Promise.all([
    text(child.stdout as Readable),
    text(child.stderr as Readable),
    text(child.stdio[3] as Readable),
  ]);
  if (child.exitCode === null) await once(child, "exit");
  if (used === "") throw new Error(`usage-etl ${args.join(" ")}: ${errors}`);
  return {
    ms: performance.now() - startedAt,
    exit: child.exitCode,
    out,
    ...(JSON.parse(used) as Used),
  };
}

function environmentOf(environment: Environment): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH ?? "",
    USAGE_ENV_FILE: "/dev/null",
    HTTP_PORT: "0",
    USAGE_LOG_LEVEL: "warn",
    ...environment,
  };
}

interface Counted {
  readonly own: number;
  readonly ended: number;
}

export function countedOf(pid: number | string | undefined): Counted {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ").map(Number) ?? [];
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15);
    return { own: (user + system) * 10, ended: (endedUser + endedSystem) * 10 };
  } catch {
    return { own: 0, ended: 0 };
  }
}

/** 0: it is gone. */
export function parentOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1]);
  } catch {
    return 0;
  }
}

export function memoryOf({ pid }: ChildProcess): { now: number; own: number; peak: number } {
  let status = "";
  try {
    status = readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {}
  const field = (name: string) =>
    (Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) * 1024) / 1e6;
  return { now: field("VmRSS"), own: field("RssAnon"), peak: field("VmHWM") };
}
