import { describe, expect, test } from "vitest";
import { run } from "./program.ts";

describe("a wrong command line ends with 2 and prints the reason to stderr only", () => {
  const range = ["--from", "2026-03-01", "--to", "2026-03-04"];
  test.each([
    [["plan", ...range, "--strid", "day"], /^Unknown option '--strid'\. Did you mean --stride\?\n/],
    [["plann"], /^Unknown command 'plann'\. Did you mean plan\?\n/],
    [["plan", ...range, "--stride", "fortnight"], /fortnight[\s\S]*hour, day, week, month, year/],
    [["plan", "--from", "2026-03-04", "--to", "2026-03-01"], /--from 2026-03-04.* is not before/],
    [["plan", "--from", "01.03.2026", "--to", "2026-03-04"], /01\.03\.2026/],
    [["plan", "--from", "2026-03-01"], /--to is missing/],
  ])("%j", async (args, message) => {
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
    // What happened, then the next step and the code.
    expect(stderr).toMatch(/^[A-Z"'-].*[.?]\n {2}[A-Z].*\. \[[a-z_]+\]\n$/);
  });

  test("--help ends with 0", async () => {
    const { code, stdout } = await run(["backfill", "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain("--reprocess");
  });
});

describe("colour", () => {
  test("is written to terminals only, with or without NO_COLOR", async () => {
    const args = ["plan", "--from", "2026-03-01", "--to", "2026-03-04"];
    const ends = await Promise.all([
      run(args, { NO_COLOR: "1" }),
      run(args),
      run(args, { TERM: "xterm-256color" }),
    ]);
    expect(new Set(ends.map(({ stdout }) => stdout)).size).toBe(1);
  });
});
