import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";

const LONGEST_MS = 300_000;
const SOURCES = ["demo", "demo-trouble", "demo-bill"] as const;
const MONTHS = ["2026-01", "2026-08", "2026-09", "2026-10", "2026-11"] as const;

interface Demo {
  /** Address of its pages. */
  readonly pages: string;
  /** The settings with which a command reads this demo. */
  readonly envFile: string;
  /** Commands that change nothing. */
  commands(): readonly (readonly string[])[];
  close(): Promise<void>;
}

/** Starts the demo of a tree without Redis, and waits until it has loaded, planted and proved everything. */
export async function openDemo({
  tree,
  url,
  folder,
}: {
  tree: string;
  url: string;
  folder: string;
}): Promise<Demo> {
  const data = join(folder, "demo");
  const command = ["demo", "--inline", "--data-dir", data, "--port", "0"];
  const cli = ["src/cli.js", "src/cli.ts"].map((one) => join(tree, one)).find((one) => existsSync(one)) ?? "";
  const child = spawn(process.execPath, [cli, ...command], {
    cwd: folder,
    env: { ...process.env, DATABASE_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (output += piece));
  const gone = once(child, "exit");
  const until = performance.now() + LONGEST_MS;
  // It prints a line for psql once everything is there.
  while (!/psql '/.test(output)) {
    if (child.exitCode !== null || performance.now() > until)
      throw new Error(`The demo did not start:\n${output}`);
    await new Promise((done) => setTimeout(done, 200));
  }
  const envFile = join(data, "demo.env");
  const pages = parseEnv(readFileSync(envFile, "utf8")).DEMO_PAGES ?? "";
  return {
    pages,
    envFile,
    commands: readCommands,
    close: async () => {
      child.kill("SIGINT");
      await gone;
    },
  };
}

function readCommands(): string[][] {
  const each = (build: (source: string) => string[][]) => SOURCES.flatMap(build);
  return [
    ["status"],
    ["source", "list"],
    ["workspace", "list"],
    ["data-start"],
    ["alerts", "list"],
    ["backfill", "list"],
    ["prices", "list"],
    ["owners", "export"],
    ["owners", "suggest"],
    ["owners", "budgets"],
    ["owners", "budgets", "2026-10"],
    ...MONTHS.map((month) => ["bill", month]),
    ...MONTHS.map((month) => ["bill", month, "--by", "owner"]),
    ...each((source) => [
      ["coverage", "--source", source],
      ["coverage", "--source", source, "--days", "--from", "2026-11-01"],
      ["plan", "--source", source, "--from", "2026-09-01", "--to", "2026-11-22"],
      ["bill", "2026-10", "--source", source],
    ]),
  ];
}
