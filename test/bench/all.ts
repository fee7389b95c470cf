import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Measure } from "./harness.ts";

/**
 * `npm run bench`: loads. `-- --all [--rounds N]`: the benchmarks that have a floor or an aim, one after the other, into one table
 * of docs/size.md.
 */

const TABLE = fileURLToPath(new URL("../../docs/size.md", import.meta.url));
const [BEGIN, END] = ["<!-- npm run bench -- --all -->\n", "<!-- end -->"];
const HEAD = "| measure | 1 is | median | spread |\n| --- | --- | --- | --- |\n";
const DEADLINE_MS = 3_600_000;

const BENCHES: readonly { readonly file: string; readonly args: (rounds: number) => readonly string[] }[] = [
  { file: "./load.ts", args: (rounds) => ["--rounds", `${rounds}`] },
  { file: "./reconcile.ts", args: (rounds) => ["--rounds", `${rounds}`] },
  { file: "./queue.ts", args: (rounds) => ["--rounds", `${rounds}`] },
  { file: "./disk.ts", args: () => [] },
];

const { values } = parseArgs({
  options: { all: { type: "boolean" }, rounds: { type: "string", default: "5" } },
  strict: false,
});
if (values.all === true) await measureAll(Number(values.rounds));
else await import("./load.ts");

async function measureAll(rounds: number): Promise<void> {
  const measures: Measure[] = [];
  const loadBefore = loadavg()[0] ?? 0;
  for (const { file, args } of BENCHES) measures.push(...(await run(file, args(rounds))));
  const page = readFileSync(TABLE, "utf8");
  const [head = "", tail = ""] = page.split(BEGIN);
  const [, rest = ""] = tail.split(END);
  process.stdout.write(`\n${asMarkdown(measures)}\n`);
  const machine = `${new Date().toISOString().slice(0, 10)}, ${cpus().length} cores (${cpus()[0]?.model}), ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}, ${rounds} rounds, load average ${loadBefore.toFixed(1)} when it began.`;
  writeFileSync(TABLE, `${head}${BEGIN}${machine}\n\n${asMarkdown(measures)}\n${END}${rest}`);
}

async function run(file: string, args: readonly string[]): Promise<readonly Measure[]> {
  process.stderr.write(`\n${file} ${args.join(" ")}\n`);
  const child = fork(new URL(file, import.meta.url), [...args], { timeout: DEADLINE_MS });
  const measures: Measure[] = [];
  child.on("message", (measure: Measure) => void measures.push(measure));
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`${file} ended with ${code}.`);
  if (measures.length === 0) throw new Error(`${file} measured nothing.`);
  return measures;
}

function asMarkdown(measures: readonly Measure[]): string {
  const lines = measures.map(
    ({ name, of, median, low, high }) =>
      `| ${name} | ${of} | ${short(median)} | ${short(low)} to ${short(high)} |\n`,
  );
  return HEAD + lines.join("");
}

function short(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}
