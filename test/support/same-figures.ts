import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildClock } from "./clock-library.ts";
import { compareFolders } from "./same-figures/compare.ts";

/**
 * `npm run same-figures -- --old REVISION`: shows whether a change of the code leaves the figures as they were. It builds two
 * databases with the code of an old revision and again with the code of this tree: fifty random histories, and the demo. Then it
 * compares every view row by row, what the commands that only read print with `--json`, and the numbers on pages, at most three of
 * those that differ in their days alone. Counts of requests, the timeline and workbooks are not compared. What moved or went on
 * purpose is named in same-figures/moved.ts. Exit code 4: something differs. It needs Linux and a C compiler, because both builds
 * run under the same slowed clock.
 *
 * `--keep FOLDER` writes this tree's figures there. `--histories N` builds fewer histories.
 */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "usage-etl-same-figures");
const COLLECTOR = join(ROOT, "test/support/same-figures/collect.ts");

const option = (name: string): string | undefined => {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
};

const histories = option("--histories") ?? "50";
const revision = run("git", ["rev-parse", `${option("--old") ?? "origin/main"}^{commit}`], ROOT).trim();
const folder = mkdtempSync(join(tmpdir(), "usage-etl-figures-"));
try {
  chmodSync(folder, 0o755);
  const library = buildClock(folder);
  if (library === undefined)
    throw new Error("The clock cannot be moved. Run on Linux with a C compiler (`cc`).");
  const old = join(CACHE, `figures-${revision.slice(0, 12)}-${collectorVersion()}-${histories}`);
  if (!existsSync(join(old, "complete"))) collect(oldTree(), old, library);
  const own = option("--keep") ?? join(folder, "figures");
  collect(ROOT, own, library, join(old, "demo/paths"));
  const differences = compareFolders(old, own);
  process.stdout.write(
    differences.length === 0 ? "All figures are the same.\n" : `${differences.join("\n")}\n`,
  );
  process.exitCode = differences.length === 0 ? 0 : 4;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function oldTree(): string {
  const tree = join(CACHE, revision.slice(0, 12));
  if (existsSync(join(tree, "node_modules/.package-lock.json"))) return tree;
  mkdirSync(tree, { recursive: true });
  run("/bin/sh", ["-c", `git archive ${revision} | tar -x -C '${tree}'`], ROOT);
  run("npm", ["ci", "--no-audit", "--no-fund"], tree);
  return tree;
}

function collectorVersion(): string {
  const hash = createHash("sha256");
  const own = join(ROOT, "test/support/same-figures");
  for (const file of readdirSync(own).sort()) {
    if (!["compare.ts", "moved.ts"].includes(file)) hash.update(readFileSync(join(own, file)));
  }
  return hash.digest("hex").slice(0, 12);
}

function collect(tree: string, to: string, library: string, paths?: string): void {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const clock = join(folder, "clock");
  writeFileSync(clock, Buffer.alloc(24));
  chmodSync(clock, 0o644);
  const { PATH = "", HOME = "/tmp" } = process.env;
  const { status } = spawnSync(
    process.execPath,
    [COLLECTOR, tree, to, histories, ...(paths === undefined ? [] : [paths])],
    {
      stdio: ["ignore", "inherit", "inherit"],
      env: {
        PATH,
        HOME,
        LD_PRELOAD: library,
        CLOCK_OFFSET: clock,
        DOCKER_HOST: "unix:///nonexistent",
        NO_COLOR: "1",
      },
    },
  );
  if (status !== 0) throw new Error(`The figures of ${tree} could not be built (exit code ${status}).`);
  writeFileSync(join(to, "complete"), "");
}

function run(program: string, args: readonly string[], cwd: string): string {
  const { status, stdout } = spawnSync(program, args, {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed.`);
  return stdout;
}
