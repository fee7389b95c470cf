import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { environment } from "../support/cli.ts";
import { bench, document, envOf, run } from "../support/program.ts";
import { onTerminal } from "../support/terminal.ts";

test("a terminal shows what a pipe carries, and lines that do not fit are found", async () => {
  const args = ["plan", "--from", "2026-03-04", "--to", "2026-03-01"];
  const [terminal, narrow] = [onTerminal(args), onTerminal(args, {}, { columns: 30 })];
  const piped = await run(args);
  expect(await terminal.ended).toBe(piped.code);
  await narrow.ended;
  const lines = `${piped.stdout}${piped.stderr}`.trimEnd().split("\n");
  expect((await terminal.lines()).join("")).toBe(lines.join(""));
  expect(await narrow.tooLong()).toEqual(lines.filter((line) => line.length > 30));
});

test("a program on a terminal is typed to, and Ctrl-C ends it", async () => {
  const terminal = onTerminal(["standin"]);
  await terminal.shows(/USAGE_BASE_URL=http:/);
  terminal.type("\u0003");
  expect(await terminal.ended).toBe(0);
});

test("status --watch shows it again, and Ctrl-C ends it with 130", async () => {
  const made = await bench({ workspaces: [0] });
  await run(["sync", "--inline"], envOf(made));
  const terminal = onTerminal(["status", "--watch"], envOf(made));
  await terminal.shows(/^alerts /);
  await made.sql("UPDATE usage.source SET slug = 'renamed'");
  await terminal.shows(/renamed/, 30_000);
  terminal.type("\u0003");
  expect(await terminal.ended).toBe(130);
});

const BAR = /^default \[[=>-]{20}\] \d+\/\d+ requests \d+%/;

test("a sync on a terminal shows its progress, and a warning of the log as a sentence above it", async () => {
  const made = await bench({ workspaces: [0] });
  const [path, refused] = ["granular-usage", { kind: "status", status: 404 } as const];
  made.standin.faults.script({ fault: refused, times: 1, match: { path, query: { group_by: "user" } } });
  made.standin.faults.script({ fault: { kind: "slow", ms: 3_000 }, times: 1_000, match: { path } });
  const terminal = onTerminal(["sync", "--inline"], envOf(made));
  await terminal.shows(BAR, 60_000);
  expect(await terminal.ended).toBe(3);
  const lines = await terminal.lines();
  const text = lines.join("\n");
  expect(text).toMatch(/^warning: default: task not loaded: /m);
  expect(text).toMatch(/^Not all of it is loaded/m);
  // It was drawn below each of them, and is gone.
  expect(lines.filter((line) => line.startsWith("{") || BAR.test(line))).toEqual([]);
});

const PROGRAM = fileURLToPath(new URL("../../src/cli.js", import.meta.url));
/** What a person looks at, and its exit code after a first sync without the service. */
const SCREENS: readonly (readonly [args: string, code: number])[] = [
  ["doctor", 0],
  ["status", 0],
  ["runs list", 0],
  ["runs show 1", 0],
  ["config", 0],
  ["workspace list", 0],
  ["source list", 0],
  ["data-start", 0],
  ["plan --from 2026-01-01 --to 2090-01-01", 0],
  ["coverage", 0],
  ["coverage --days", 0],
  ["backfill list", 0],
];

/** What a person starts. Its sentences may be longer than a line; its tables are not. */
const WORK: readonly string[] = [
  "sync --inline",
  "backfill --from 2026-01-05 --to 2090-01-01 --reprocess all --inline",
  "reconcile",
  "totals --reach month",
  "export --view dim_workspace",
  "prune",
];

test("what a person looks at fits a terminal of 80 columns, and is one document for a program", async () => {
  const made = await bench();
  const env = { ...envOf(made), NO_COLOR: "1" };
  expect((await run(["sync", "--inline"], env)).code).toBe(0);
  for (const [command, code] of SCREENS) {
    const args = command.split(" ");
    const terminal = onTerminal(args, env);
    expect([command, await terminal.ended, await terminal.tooLong()]).toEqual([command, code, []]);
    expect(terminal.written(), command).not.toContain("\u001b");
    const piped = await run([...args, "--json"], env);
    expect([command, piped.code], piped.stderr).toEqual([command, code]);
    expect(document(piped), command).toBeTypeOf("object");
  }
});

test("what a person starts says the same on a terminal as in a pipe, without colours where nobody wants them", async () => {
  const made = await bench({ workspaces: [0] });
  const env = { ...envOf(made), NO_COLOR: "1" };
  for (const command of WORK) {
    const args = command.split(" ");
    const terminal = onTerminal(args, env);
    const code = await terminal.ended;
    const piped = await run(args, env);
    expect([command, code, piped.code], piped.stderr).toEqual([command, 0, 0]);
    expect(await terminal.tooLong(), command).toEqual(
      expect.not.arrayContaining([expect.stringMatching(/^(dimension|workspace|project|user|api_key) /)]),
    );
    // Cursor movements draw the progress; colours end with "m".
    expect(terminal.written(), command).not.toMatch(/\[[\d;]+m/);
  }
});

test("a reader that closes the pipe early gets no error, and the exit code stays", async () => {
  const made = await bench();
  const env = { ...environment(), ...envOf(made) };
  expect((await run(["sync", "--inline"], envOf(made))).code).toBe(0);
  // Ends at once, before anything is written.
  const script = `"$0" "$1" coverage --days --json | true; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await promisify(execFile)("bash", ["-c", script, process.execPath, PROGRAM], {
    env,
  });
  expect([stdout, stderr]).toEqual(["0\n", ""]);
});
