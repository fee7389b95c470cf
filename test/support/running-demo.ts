import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { poll } from "./poll.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const LONGEST_MS = 900_000;

/** Starts the demo of a tree on any ports, and waits until it has loaded, planted and proved everything. */
export async function startDemo(
  dataDir: string,
  {
    tree = ROOT,
    options = [],
    env = {},
  }: { tree?: string; options?: string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<{ said: string; close(): Promise<void> }> {
  const cli = [join(tree, "src/cli.js"), "demo", "--data-dir", dataDir, "--port", "0", ...options];
  const demo = spawn(process.execPath, cli, {
    env: { ...process.env, USAGE_ENV_FILE: "/dev/null", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(demo, "close");
  let said = "";
  for (const stream of [demo.stdout, demo.stderr])
    stream.on("data", (piece) => {
      said += piece;
    });
  const isOver = () => said.includes("psql '") || demo.exitCode !== null;
  await poll(isOver, { deadlineMs: LONGEST_MS, everyMs: 200 });
  if (demo.exitCode !== null) throw new Error(`The demo ended:\n${said}`);
  return {
    said,
    close: async () => {
      demo.kill("SIGINT");
      await ended;
    },
  };
}
