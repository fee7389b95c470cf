import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { poll } from "../support/poll.ts";
import { temporaryFolder } from "../support/temporary.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = join(ROOT, "docs/deploy/systemd");
const UNITS = ["usage-etl-scheduler.service", "usage-etl-worker@.service"];
/** systemd-analyze calls below 2.0 "OK" with a smile: what is left is the network, which the service needs. */
const MOST_EXPOSED = "20";

const read = (name: string) => readFileSync(join(FOLDER, name), "utf8");
const isInstalled = (program: string) => spawnSync("which", [program]).status === 0;

describe.each(UNITS)("%s", (unit) => {
  test("is one that systemd understands, and is hardened", ({ skip }) => {
    if (!isInstalled("systemd-analyze")) return skip("systemd-analyze is not installed");
    const made = temporaryFolder();
    const path = join(made, unit.replace("@.", "@1."));
    // It checks that the program is there. The folder of a clone may have a space in its name.
    const program = join(made, "program");
    symlinkSync(ROOT, program);
    writeFileSync(path, read(unit).replaceAll("/opt/usage-etl", program));
    const analyze = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync("systemd-analyze", [...args, path], { encoding: "utf8" });
      return { status, said: `${stdout}${stderr}` };
    };
    expect(analyze("verify", "--man=no")).toEqual({ status: 0, said: "" });
    const { status, said } = analyze("security", "--offline=true", `--threshold=${MOST_EXPOSED}`);
    expect(status, said).toBe(0);
  });
});

/** A crontab with folders of the test's own, whose Node is a script. */
function crontab(script: string) {
  const home = temporaryFolder();
  mkdirSync(join(home, "node_modules/.bin"), { recursive: true });
  writeFileSync(join(home, "node_modules/.bin/node"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(home, "node_modules/.bin/node"), 0o755);
  const text = read("usage-etl.cron")
    .replaceAll("/opt/usage-etl", home)
    .replaceAll("/var/log/usage-etl", home);
  const commands = text
    .split("\n")
    .flatMap((line) => /^\S+ \S+ \S+ \S+ \S+ usage-etl (.*)$/.exec(line)?.[1] ?? []);
  return { home, commands, log: () => readFileSync(join(home, "cron.log"), "utf8") };
}

test("cron never runs two syncs at once, and checks at night after the sync", async ({ skip }) => {
  if (!isInstalled("flock")) return skip("flock is not installed");
  const { commands, log, home } = crontab('echo "ran $*"; [ "$2" != sync ] || read -r line < pipe');
  const [sync = "", night = ""] = commands;
  expect(commands).toHaveLength(2);
  spawnSync("mkfifo", [join(home, "pipe")]);
  const first = spawn("sh", ["-c", sync]);
  await poll(() => log().includes("ran"));
  expect(spawnSync("sh", ["-c", sync]).status).toBe(0);
  expect(log().match(/ran/g)).toHaveLength(1);
  const checks = spawn("sh", ["-c", night]);
  const ended = Promise.all([once(first, "close"), once(checks, "close")]);
  writeFileSync(join(home, "pipe"), "go on\n");
  await ended;
  expect(log().match(/ran .*/g)).toEqual(
    ["sync --inline", "reconcile", "totals", "prune"].map(
      (command) => `ran node_modules/usage-etl/src/cli.js ${command}`,
    ),
  );
});
