import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { listenInTest } from "../support/listen.ts";
import { poll } from "../support/poll.ts";
import { bench, dayOf, envOf, run } from "../support/program.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

async function silentServer(): Promise<string> {
  return `127.0.0.1:${await listenInTest(createServer())}`;
}

test("a dead Redis ends sync and backfill with 6 at once, one error, and nothing entered", async () => {
  const made = await bench({ workspaces: [0] });
  const silent = await silentServer();
  const range = ["--from", dayOf(made.dataStart), "--to", "2090-01-01"];
  const cases = [
    [["sync"], "127.0.0.1:1"],
    [["backfill", ...range], "127.0.0.1:1"],
    [["backfill", ...range, "--detach"], silent],
  ] as const;
  await Promise.all(
    cases.map(async ([args, host]) => {
      const { code, stdout, stderr } = await run(args, { ...envOf(made), REDIS_URL: `redis://${host}` });
      expect([code, stdout]).toEqual([6, ""]);
      expect(stderr.trimEnd().split("\n")).toEqual([
        expect.stringContaining(`Redis at ${host} does not respond`),
        expect.stringMatching(/--inline.*\[redis_unreachable\]$/),
      ]);
    }),
  );
  expect(await made.sql("SELECT FROM usage.backfill")).toEqual([]);
});

async function throughNpm() {
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  const npm = spawn("npm", ["run", "-s", "usage-etl", "--", "standin", "--port", "0"], {
    cwd: ROOT,
    env: { PATH, HOME, NODE_COMPILE_CACHE },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void npm.kill("SIGKILL"));
  let said = "";
  npm.stdout.on("data", (piece) => {
    said += piece;
  });
  const url = await poll(() => /listens on (\S+?)\. /.exec(said)?.[1] ?? "", { deadlineMs: 60_000 });
  return { npm, url };
}

test("ending npm ends the program, also by a signal that npm does not pass on", async () => {
  await Promise.all(
    (["SIGTERM", "SIGHUP"] as const).map(async (signal) => {
      const { npm, url } = await throughNpm();
      npm.kill(signal);
      const isGone = () =>
        fetch(url).then(
          () => false,
          () => true,
        );
      await poll(isGone, { deadlineMs: 10_000, everyMs: 100 });
    }),
  );
});
