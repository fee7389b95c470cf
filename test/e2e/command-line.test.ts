import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { listenInTest } from "../support/listen.ts";
import { run } from "../support/program.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

describe("a wrong command line ends with 2 and prints the reason to stderr only", () => {
  const range = ["--from", "2026-03-01", "--to", "2026-03-04"];
  test.each([
    [["plan", ...range, "--strid", "day"], /^Unknown option '--strid'\. Did you mean --stride\?\n/],
    [["plann"], /^Unknown command 'plann'\. Did you mean plan\?\n/],
    [["plan", ...range, "--stride", "fortnight"], /fortnight[\s\S]*hour, day, week, month, year/],
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

test("--version prints the release", async () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(await run(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
});

test("what cannot be listened on, and a serve without Redis, end with what to set", async () => {
  const port = await listenInTest(createServer());
  const ends = await Promise.all([
    run(["standin", "--port", String(port)]),
    run(["serve"], { DATABASE_URL: "postgres://127.0.0.1:1/db" }),
  ]);
  expect(ends.map(({ code }) => code)).toEqual([2, 2]);
  expect(ends.map(({ stderr }) => stderr)).toEqual([
    `The stand-in cannot be served: 127.0.0.1:${port} is in use.\n` +
      "  Choose another address with --host and --port; --port 0 takes any free one. [http_unavailable]\n",
    expect.stringMatching(
      /^REDIS_URL is not set\.\n {2}Set it .*redis:\/\/.*sync --inline` by cron.*\[redis_missing\]\n$/,
    ),
  ]);
});
