import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Used } from "./scale-usage.ts";

const CLI = fileURLToPath(new URL("../../src/cli.ts", import.meta.url));
const USAGE = fileURLToPath(new URL("./scale-usage.ts", import.meta.url));

export type Environment = Readonly<Record<string, string>>;

/** As the program starts. */
export const NODE_OPTIONS = ["--max-semi-space-size=4"];

/** A process of the service. Its closer asks it to end, and waits. */
export function startService(environment: Environment, ...args: string[]) {
  const child = spawn(process.execPath, [...NODE_OPTIONS, CLI, "serve", ...args], {
    env: environmentOf(environment),
    stdio: ["ignore", "ignore", "pipe"],
  });
  const errors: string[] = [];
  child.stderr.setEncoding("utf8").on("data", (line: string) => void errors.push(line));
  return {
    child,
    said: () => errors.join(""),
    close: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
    },
  };
}

/** A command to its end, with what it took. */
export async function runCommand(environment: Environment, args: readonly string[]) {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [...NODE_OPTIONS, "--import", USAGE, CLI, ...args], {
    env: environmentOf(environment),
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
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
    bytes: out.length,
    ...(JSON.parse(used) as Used),
  };
}

/** Peak memory and CPU time of a running process: `/proc` of Linux. */
export async function takenBy({ pid }: ChildProcess): Promise<Used> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
  // User and system time, in hundredths of a second.
  return {
    cpuMs: (Number(fields[11]) + Number(fields[12])) * 10,
    peakMb: (Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024) / 1e6,
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
