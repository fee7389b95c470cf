import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SETTINGS } from "../../src/core/base/settings.ts";

/** `npm run size`: how much there is to read, counted over the files that git has. Aims count bytes as well as lines. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

function filesOf(...patterns: readonly string[]): string[] {
  const { stdout } = spawnSync("git", ["ls-files", "-z", ...patterns], { cwd: ROOT, encoding: "utf8" });
  return stdout.split("\0").filter(Boolean);
}

function sizeOf(files: readonly string[]): { lines: number; bytes: number; words: number } {
  const texts = files.map((file) => readFileSync(join(ROOT, file), "utf8"));
  const count = (pattern: RegExp) => texts.reduce((sum, text) => sum + (text.match(pattern)?.length ?? 0), 0);
  return {
    lines: count(/\n/g),
    bytes: texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0),
    words: count(/\S+/g),
  };
}

const grouped = (value: number) => value.toLocaleString("en-US");
/** Written by programs: types of tables, locked versions of packages, and the published columns of FOCUS. */
const GENERATED = [
  "src/core/store/db/schema.ts",
  "test/tools/package-lock.json",
  "test/tools/agents/requirements-0.16.7.txt",
  "test/tools/agents/requirements-0.4.21.txt",
  "test/reporting/focus/1.4.csv",
];
const byHand = (files: readonly string[]) => sizeOf(files.filter((file) => !GENERATED.includes(file)));
const code = filesOf("src/*.ts", "jobs/*.ts");
const written = byHand(code);
const tests = filesOf("test");
const documents = filesOf("docs/*.md").filter((file) => file.split("/").length === 2);
const sql = sizeOf(filesOf("sql/migrations", "sql/reporting"));

const lines = [
  `src and jobs: ${grouped(sizeOf(code).lines)} lines; by hand ${grouped(written.lines)} lines, ${grouped(written.bytes)} bytes, ${(written.bytes / written.lines).toFixed(1)} bytes a line`,
  `sql, by hand: ${grouped(sql.lines)} lines`,
  `test: ${grouped(sizeOf(tests).lines)} lines; by hand ${grouped(byHand(tests).lines)}`,
  `settings: ${Object.keys(SETTINGS).length}`,
  `documents: ${documents.length} in docs, ${grouped(sizeOf(documents).words)} words; README ${sizeOf(["README.md"]).lines} lines`,
];
process.stdout.write(`${lines.join("\n")}\n`);
