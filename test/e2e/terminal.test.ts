import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { environment } from "../support/cli.ts";
import { bench, document, envOf, run } from "../support/program.ts";
import { onTerminal } from "../support/terminal.ts";

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
