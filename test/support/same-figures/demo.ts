import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { startDemo } from "../running-demo.ts";

const SOURCES = ["demo", "demo-trouble", "demo-bill"] as const;
const MONTHS = ["2026-01", "2026-08", "2026-09", "2026-10", "2026-11"] as const;

interface Demo {
  readonly pages: string;
  readonly envFile: string;
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
  const { close } = await startDemo(data, { tree, options: ["--inline"], env: { DATABASE_URL: url } });
  const envFile = join(data, "demo.env");
  const pages = parseEnv(readFileSync(envFile, "utf8")).DEMO_PAGES ?? "";
  return { pages, envFile, commands: readCommands, close };
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
