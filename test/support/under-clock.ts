import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { now } from "./clock.ts";
import { buildClock } from "./clock-library.ts";

/**
 * `npm run test:clock -- [--day YYYY-MM-DD] [--before SECONDS] [vitest arguments]`: runs tests with the clock moved to shortly
 * before the midnight UTC that ends a day, so that they cross it. A preloaded library adds one number of seconds to the clock of
 * every process alike: the tests, their Postgres and Redis, and the programs they start.
 */

const DAYS = ["2026-12-31", "2028-02-28", "2027-02-28"];
const SECONDS_BEFORE = 60;
const PROJECTS = ["unit", "store", "pipeline", "web", "reporting", "e2e"].map((name) => `--project=${name}`);

const args = process.argv.slice(2);
const days = take("--day");
const before = Number(take("--before")[0] ?? SECONDS_BEFORE);

const folder = mkdtempSync(join(tmpdir(), "usage-etl-clock-"));
try {
  chmodSync(folder, 0o755);
  const library = buildClock(folder);
  if (library === undefined)
    fail("The clock cannot be compiled. Run on Linux, and install a C compiler (`cc`).");
  for (const day of days.length > 0 ? days : DAYS) if (!passes(day, library)) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true });
}

function passes(day: string, library: string): boolean {
  const offset = Math.round((Date.parse(`${day}T24:00:00Z`) - now()) / 1_000 - before);
  if (Number.isNaN(offset)) fail(`--day ${day} --before ${before} is no time. Give a date and seconds.`);
  process.stderr.write(`\nThe clock starts ${before} s before the midnight that ends ${day}.\n`);
  const { status } = spawnSync("vitest", ["run", ...(args.length > 0 ? args : PROJECTS)], {
    stdio: "inherit",
    env: {
      ...process.env,
      LD_PRELOAD: library,
      CLOCK_OFFSET: `${offset}`,
      DATABASE_URL: "",
      REDIS_URL: "",
      DOCKER_HOST: "unix:///nonexistent",
    },
  });
  return status === 0;
}

function take(name: string): string[] {
  const values = [];
  for (let at = args.indexOf(name); at >= 0; at = args.indexOf(name))
    values.push(...args.splice(at, 2).slice(1));
  return values;
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  rmSync(folder, { recursive: true, force: true });
  process.exit(2);
}
