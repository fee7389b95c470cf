import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { backfillRounds, type Round } from "../bench/backfill-rounds.ts";
import type { Company } from "../bench/company.ts";
import { CLI } from "../bench/processes.ts";
import { now } from "../support/clock.ts";

/**
 * The commit that a load is compared with. Name a newer one when loads have become faster, or slower for a good reason, or when
 * the command of this one no longer runs with the installed packages.
 */
const REFERENCE = "f8d92b481669a68d0b016b3dc62fda399bf065fd";
const MOST = 1.1;
/** A difference that is clear by then ends the test early. */
const CLEAR_AFTER = 4;
const MOST_ROUNDS = 14;
const MOST_MS = 200_000;
const COMPANY: Company = { workspaces: 4, windows: 2, users: 640, projects: 120, keys: 46 };
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

it("a load takes no more CPU time and memory than at the reference commit", async ({ skip }) => {
  if (process.platform !== "linux") skip("the comparison of loads with an older commit needs Linux");
  if (git("cat-file", "-e", `${REFERENCE}^{commit}`).status !== 0)
    skip(
      `this clone lacks the commit ${REFERENCE.slice(0, 10)} that loads are compared with (\`git fetch --unshallow\`)`,
    );
  const reference = mkdtempSync(join(tmpdir(), "usage-etl-reference-"));
  try {
    const tree = `git archive ${REFERENCE} | tar -x -C '${reference}'`;
    expect(spawnSync("/bin/sh", ["-c", tree], { cwd: ROOT }).status).toBe(0);
    symlinkSync(join(ROOT, "node_modules"), join(reference, "node_modules"));
    const startedAt = now();
    const rounds: (readonly Round[])[] = [];
    for await (const round of backfillRounds(COMPANY, [CLI, join(reference, "src/cli.js")])) {
      rounds.push(round);
      const { ratio } = compared(rounds, "cpuMs");
      const isClear = rounds.length >= CLEAR_AFTER && Math.abs(ratio - MOST) > 0.05;
      if (isClear || rounds.length === MOST_ROUNDS || now() - startedAt > MOST_MS) break;
    }
    const [cpu, memory] = [compared(rounds, "cpuMs"), compared(rounds, "peakMb")];
    process.stdout.write(
      `A load compared with ${REFERENCE.slice(0, 10)}: CPU ${cpu.text}; memory ${memory.text}.\n`,
    );
    expect(cpu.ratio, cpu.text).toBeLessThan(MOST);
    expect(memory.ratio, memory.text).toBeLessThan(MOST);
  } finally {
    rmSync(reference, { recursive: true, force: true });
  }
});

/**
 * The ratio of the least of each side, because whatever else the machine does only adds. The spread is that of single rounds.
 */
function compared(rounds: readonly (readonly Round[])[], measure: "cpuMs" | "peakMb") {
  const of = (at: number, target: keyof Round) =>
    rounds.map((round) => (round[at] as Round)[target][measure]);
  const sums = (at: number) =>
    rounds.map((_, i) => (of(at, "empty")[i] as number) + (of(at, "unchanged")[i] as number));
  const least = (at: number) => Math.min(...of(at, "empty")) + Math.min(...of(at, "unchanged"));
  const ratio = least(0) / least(1);
  const each = sums(0).map((sum, i) => sum / (sums(1)[i] as number));
  const spread = [Math.min(...each), Math.max(...each)].map((one) => one.toFixed(2)).join(" to ");
  return { ratio, text: `${ratio.toFixed(3)} (${spread} in ${rounds.length} rounds)` };
}

function git(...args: string[]) {
  return spawnSync("git", args, { cwd: ROOT });
}
