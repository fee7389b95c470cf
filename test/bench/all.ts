import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Measure } from "./harness.ts";

/**
 * `npm run bench`: loads. `-- --all`: the benchmarks that have a floor or an aim, one after the other, into one table of
 * docs/size.md. `-- --nightly`: fewer rounds of the same, held against that table; exit code 1 if something became slower or
 * larger by more than 15 %. Both take `--rounds N`.
 */

const TABLE = fileURLToPath(new URL("../../docs/size.md", import.meta.url));
const [BEGIN, END] = ["<!-- npm run bench -- --all -->\n", "<!-- end -->"];
const HEAD = "| measure | 1 is | median | spread |\n| --- | --- | --- | --- |\n";
const TOLERATED = 1.15;
const DEADLINE_MS = 3_600_000;

const BENCHES: readonly { readonly file: string; readonly args: (rounds: number) => readonly string[] }[] = [
  { file: "./load.ts", args: (rounds) => ["--rounds", `${rounds}`] },
  { file: "./reconcile.ts", args: (rounds) => ["--rounds", `${rounds}`] },
  { file: "./queue.ts", args: (rounds) => ["--rounds", `${rounds}`, "--without-due"] },
  { file: "./disk.ts", args: () => [] },
  { file: "./start.ts", args: (rounds) => [`${rounds}`] },
  { file: "./idle.ts", args: () => [] },
];

const { values } = parseArgs({
  options: { all: { type: "boolean" }, nightly: { type: "boolean" }, rounds: { type: "string" } },
  strict: false,
});
if (values.all !== true && values.nightly !== true) await import("./load.ts");
else {
  const nightly = values.nightly === true;
  await measureAll({ nightly, rounds: Number(values.rounds ?? (nightly ? 3 : 5)) });
}

async function measureAll({ nightly, rounds }: { nightly: boolean; rounds: number }): Promise<void> {
  const measures: Measure[] = [];
  const loadBefore = loadavg()[0] ?? 0;
  for (const { file, args } of BENCHES) measures.push(...(await run(file, args(rounds))));
  const page = readFileSync(TABLE, "utf8");
  const [head = "", tail = ""] = page.split(BEGIN);
  const [committed = "", rest = ""] = tail.split(END);
  process.stdout.write(`\n${asMarkdown(measures)}\n`);
  if (nightly) return compare(measures, readMarkdown(committed));
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

function compare(measures: readonly Measure[], committed: ReadonlyMap<string, number>): void {
  const worse = measures.filter(
    ({ name, median }) => median > TOLERATED * (committed.get(name) ?? Number.POSITIVE_INFINITY),
  );
  const unknown = measures.filter(({ name }) => !committed.has(name));
  for (const { name, of, median } of worse) {
    process.stdout.write(`${name}: ${median.toFixed(2)} instead of ${committed.get(name)} (1 is ${of})\n`);
  }
  for (const { name } of unknown) process.stdout.write(`${name}: not in the table of docs/size.md\n`);
  const measured = new Set(measures.map(({ name }) => name));
  const missing = [...committed.keys()].filter((name) => !measured.has(name));
  for (const name of missing) process.stdout.write(`${name}: in the table, but not measured any more\n`);
  const held = measures.length - unknown.length;
  process.stdout.write(
    `${worse.length} of ${held} measures are more than 15 % worse than the table of docs/size.md.\n`,
  );
  process.exitCode = worse.length + missing.length === 0 ? 0 : 1;
}

function asMarkdown(measures: readonly Measure[]): string {
  const lines = measures.map(
    ({ name, of, median, low, high }) =>
      `| ${name} | ${of} | ${short(median)} | ${short(low)} to ${short(high)} |\n`,
  );
  return HEAD + lines.join("");
}

/** Medians by name, of a text that `asMarkdown` wrote. */
function readMarkdown(text: string): Map<string, number> {
  const [, body = ""] = text.split(HEAD);
  const rows = body.split("\n\n")[0]?.trim().split("\n") ?? [];
  return new Map(
    rows.map((row) => {
      const [, name = "", , median] = row.split("|").map((cell) => cell.trim());
      return [name, Number(median)];
    }),
  );
}

/** Three digits, and whole from a hundred on. */
function short(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}
