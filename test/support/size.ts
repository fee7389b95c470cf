import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SETTINGS } from "../../src/config/settings.ts";

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
const code = sizeOf(filesOf("src/*.ts", "jobs/*.ts"));
const tests = filesOf("test");
const written = sizeOf(tests.filter((file) => file !== "test/tools/package-lock.json"));
const documents = filesOf("docs/*.md").filter((file) => file.split("/").length === 2);
const sql = sizeOf(filesOf("sql/migrations", "sql/reporting"));

const lines = [
  `src and jobs: ${grouped(code.lines)} lines, ${grouped(code.bytes)} bytes, ${(code.bytes / code.lines).toFixed(1)} bytes a line`,
  `sql, written by hand: ${grouped(sql.lines)} lines`,
  `test: ${grouped(sizeOf(tests).lines)} lines, ${grouped(written.lines)} of them written by hand`,
  `settings: ${Object.keys(SETTINGS).length}`,
  `documents: ${documents.length} in docs, ${grouped(sizeOf(documents).words)} words; README ${sizeOf(["README.md"]).lines} lines`,
];
process.stdout.write(`${lines.join("\n")}\n`);
