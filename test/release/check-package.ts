import { type ExecFileSyncOptions, execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Packs this release, installs it as a user without rights into an empty folder, and runs it there on the oldest Node that it
 * takes and on the current one: `npm run package:check`. It needs npm's registry, and takes some minutes.
 */

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const NODES = ["22.19.0", "24"];

/** Certificates and proxies, but no settings of ours and none of the npm that runs this. */
const surroundings = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(npm_|USAGE_|DATABASE_|REDIS_|XDG_|INIT_CWD)/i.test(name),
  ),
);

const folder = mkdtempSync(join(tmpdir(), "usage-etl-package-"));
chmodSync(folder, 0o755);
try {
  execFileSync("npm", ["pack", "--pack-destination", folder], { cwd: ROOT, stdio: "inherit" });
  const [tarball = ""] = readdirSync(folder);
  for (const version of NODES) checkOn(version, join(folder, tarball));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log("The package installs and runs.");

function checkOn(version: string, tarball: string): void {
  console.log(`\nNode ${version}`);
  const home = join(folder, version);
  mkdirSync(home);
  if (NOBODY.uid !== undefined) chownSync(home, NOBODY.uid, NOBODY.gid);
  const env = {
    ...surroundings,
    PATH: `${home}/node/node_modules/.bin:${home}/global/bin:/usr/local/bin:/usr/bin:/bin`,
    HOME: home,
    npm_config_prefix: join(home, "global"),
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
  };
  const options: ExecFileSyncOptions = { cwd: home, env, stdio: "inherit", ...NOBODY };
  execFileSync("npm", ["install", "--prefix", join(home, "node"), "--no-save", `node@${version}`], options);
  execFileSync("npm", ["install", "--global", tarball], options);
  const runs: readonly (readonly [exit: number, says: RegExp, ...args: string[]])[] = [
    [0, /^\d+\.\d+\.\d+\n$/, "--version"],
    [0, /Set up:\n {2}demo /, "--help"],
    [0, /usage-etl/, "completion", "bash"],
    [2, /DATABASE_URL is not set.*Run `usage-etl init`/s, "doctor"],
    [0, /^day: .* 0 differences left$/m, "demo", "--once"],
    [0, /^day: .* 0 differences left$/m, "demo", "--once", "--inline"],
  ];
  const empty = join(home, "empty");
  mkdirSync(empty);
  for (const [exit, says, ...args] of runs) {
    const { status, stdout, stderr } = spawnSync("usage-etl", args, {
      env,
      cwd: empty,
      encoding: "utf8",
      ...NOBODY,
    });
    const said = `${stdout}${stderr}`.replace(/^.*ExperimentalWarning: SQLite.*\n/m, "");
    console.log(`usage-etl ${args.join(" ")}: exit ${status}`);
    if (status !== exit || !says.test(said) || /Warning/.test(said)) {
      throw new Error(`Expected exit ${exit}, ${says} and no warning of:\n${said}`);
    }
  }
}
