import type { Command } from "commander";
import { type CoverageLine, coverageLines } from "../../store/report/overview.ts";
import { table } from "../report/output.ts";
import { EXIT } from "../session/exit.ts";
import { type RangeOptions, rangeOf, withRange } from "../session/options.ts";
import { inSession, type Session } from "../session/session.ts";

/** Days that lack a figure which can be trusted. */
const GAPS = ["failed", "missing", "unverified"];

export function define(command: Command): void {
  withRange(command)
    .option("--fail-on-gaps", "exit with 4 if a past day is failed, missing or unverified")
    .action(inSession(run));
}

async function run(session: Session, options: RangeOptions & { failOnGaps?: boolean }): Promise<number> {
  const { db } = await session.migratedStore();
  const isWhole = options.from === undefined && options.to === undefined;
  const lines = await coverageLines(
    db,
    isWhole ? undefined : rangeOf(options, { start: 0, end: Date.now() }),
  );
  session.output.data(lines, describeCoverage);
  const hasGaps = lines.some((line) => GAPS.includes(line.status) && line.endedDays > 0);
  return options.failOnGaps === true && (hasGaps || lines.length === 0) ? EXIT.mismatch : EXIT.done;
}

function describeCoverage(lines: readonly CoverageLine[]): string {
  if (lines.length === 0) {
    return "No usage is expected in that range, or no source is loaded yet. `usage-etl status` shows what is loaded.";
  }
  return table(
    ["source", "dimension", "stride", "status", "days x workspaces", "first", "last"],
    lines.map((l) => [l.source, l.groupBy, l.stride, l.status, l.days, l.firstDay, l.lastDay]),
  );
}
