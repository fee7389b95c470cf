import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { SETTINGS } from "../../src/config/settings.ts";
import { poll } from "../support/poll.ts";
import { temporaryFolder } from "../support/temporary.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = join(ROOT, "docs/deploy/systemd");
const UNITS = ["usage-etl-scheduler.service", "usage-etl-worker@.service"];
/** systemd-analyze calls below 2.0 "OK" with a smile: what is left is the network, which the service needs. */
const MOST_EXPOSED = "20";

const read = (name: string) => readFileSync(join(FOLDER, name), "utf8");
const linesOf = (unit: string, key: string) =>
  [...read(unit).matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value = ""]) => value);
const isInstalled = (program: string) => spawnSync("which", [program]).status === 0;

describe.each(UNITS)("%s", (unit) => {
  test("sets settings only, and takes every secret that the service needs as a credential", () => {
    const settings = Object.keys(SETTINGS);
    const set = linesOf(unit, "Environment").flatMap((line) =>
      line.split(" ").map((one) => one.split("=")[0]),
    );
    expect(set.filter((name = "") => !settings.includes(name))).toEqual(["NODE_ENV", "NODE_COMPILE_CACHE"]);
    expect(linesOf(unit, "LoadCredential")).toEqual(
      ["USAGE_API_KEY", "DATABASE_URL", "REDIS_URL"].map((name) => `${name}:/etc/usage-etl/secrets/${name}`),
    );
  });

  test("runs the Node that was installed beside the package", () => {
    const [command = ""] = linesOf(unit, "ExecStart");
    const start =
      "/opt/usage-etl/node_modules/.bin/node --max-semi-space-size=4 node_modules/usage-etl/src/cli.js serve --role ";
    const [nothing, role = "none"] = command.split(start);
    expect(nothing).toBe("");
    expect(unit).toContain(role);
  });

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

test("the units differ in what they run and where they listen only", () => {
  const [scheduler = "", worker = ""] = UNITS.map((unit) =>
    read(unit)
      .replaceAll(/^(#.*|Description=.*|ExecStart=.*|Environment=HTTP_PORT=.*)\n/gm, "")
      .trim(),
  );
  expect(scheduler).toBe(worker);
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

test("logrotate understands the rotation of cron's log", ({ skip }) => {
  if (!isInstalled("logrotate")) return skip("logrotate is not installed");
  const home = temporaryFolder();
  const path = join(home, "rotate.conf");
  // This machine has no such user.
  writeFileSync(
    path,
    read("usage-etl.logrotate")
      .replaceAll("usage-etl usage-etl", "root root")
      .replaceAll("/var/log/usage-etl", home),
  );
  copyFileSync(path, join(home, "cron.log"));
  const { status, stderr } = spawnSync(
    "logrotate",
    ["--debug", "--force", "--state", join(home, "state"), path],
    { encoding: "utf8" },
  );
  expect(status, stderr).toBe(0);
  expect(stderr).not.toMatch(/error/i);
  expect(stderr).toContain("renaming");
});
