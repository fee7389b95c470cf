import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import type { Line } from "./world/report.ts";

/**
 * `npm run chaos`: every fault alone. `-- --short`: those of the short form, about five minutes. `-- --only TEXT`: those whose
 * name has the text. `-- --times N`: again and again. `-- --random 60m --seed N --seeds N`: an hour of random faults.
 * `-- --patience SECONDS`: for a busy machine, in place of each fault's limit. Needs root, since Postgres, small disks and clocks
 * are handled.
 */

const { values } = parseArgs({
  options: {
    short: { type: "boolean" },
    only: { type: "string" },
    times: { type: "string" },
    random: { type: "string" },
    seed: { type: "string" },
    seeds: { type: "string" },
    patience: { type: "string" },
  },
});
const out = mkdtempSync(join(tmpdir(), "usage-etl-chaos-"));
process.exitCode = repeat(Number(values.times ?? 1));
printTable();

function repeat(times: number): number {
  let failed = 0;
  for (let time = 0; time < times; time++) failed += run(environment()) ? 0 : 1;
  return failed === 0 ? 0 : 1;
}

function environment(): Record<string, string> {
  const { short, only, random, seed, seeds, patience } = values;
  return {
    ...(short === true ? { CHAOS_SHORT: "1" } : {}),
    ...(only === undefined ? {} : { CHAOS_ONLY: only }),
    ...(random === undefined ? {} : { CHAOS_RANDOM_MS: String(milliseconds(random)) }),
    ...(seed === undefined ? {} : { CHAOS_SEED: seed }),
    ...(seeds === undefined ? {} : { CHAOS_SEEDS: seeds }),
    ...(patience === undefined ? {} : { CHAOS_PATIENCE: patience }),
  };
}

function run(env: Readonly<Record<string, string>>): boolean {
  const file = env.CHAOS_RANDOM_MS === undefined ? "faults" : "random";
  const config = fileURLToPath(new URL("vitest.config.ts", import.meta.url));
  const { status } = spawnSync("vitest", ["run", "--config", config, `test/chaos/${file}.chaos.ts`], {
    stdio: "inherit",
    env: { ...process.env, ...env, CHAOS_OUT: out },
  });
  return status === 0;
}

function milliseconds(text: string): number {
  const [, count, unit] = /^(\d+)(s|m|h)$/.exec(text) ?? [];
  if (unit === undefined) throw new Error(`--random ${text}: give a time such as 60m.`);
  return Number(count) * { s: 1_000, m: 60_000, h: 3_600_000 }[unit as "s" | "m" | "h"];
}

function printTable(): void {
  const rows = join(out, "rows.jsonl");
  if (!existsSync(rows)) return;
  const table = new Table({ head: ["fault", "lasted", "well again after", "limit"] });
  for (const text of readFileSync(rows, "utf8").trim().split("\n")) {
    const line = JSON.parse(text) as Line;
    if ("failed" in line) table.push([line.fault, "", "FAILED", ""]);
    else table.push([line.fault, `${line.lasted} s`, `${line.recovered} s`, `${line.within} s`]);
  }
  process.stdout.write(`${table}\nhistories, and logs of what failed: ${out}\n`);
}
