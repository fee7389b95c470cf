import type { Command } from "commander";
import { METER_NAME } from "../../core/domain/usage/meter.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import { EXIT } from "../../terminal/exit.ts";
import {
  type MeterOptions,
  type RangeOptions,
  rangeOf,
  requestedMeter,
  withMeter,
  withRange,
} from "../../terminal/options.ts";
import { linesOf, table, withoutZeros } from "../../terminal/output.ts";
import { inSession, type Session } from "../../terminal/session.ts";
import { storedSources } from "../catalog/named.ts";
import { type CoverageLine, coverageLines, GAPS, isGap, otherGapLines } from "./coverage-lines.store.ts";

export const examples = [
  ["coverage --from 2026-10-01 --to 2026-11-01", "how much of October is loaded"],
  ["coverage --days --fail-on-gaps", "each day; a script sees gaps by exit code 4"],
] as const;

export function define(command: Command): void {
  withMeter(withRange(command), {})
    .option("--source <slug>", "only this source")
    .option("--days", "show every day, in place of their sum")
    .option("--fail-on-gaps", "exit with 4 if a past day is failed, missing or unverified")
    .action(inSession(run));
}

interface CoverageOptions extends RangeOptions, Partial<MeterOptions> {
  readonly source?: string;
  readonly days?: boolean;
  readonly failOnGaps?: boolean;
}

async function run(session: Session, options: CoverageOptions): Promise<number> {
  const { db } = await session.migratedStore();
  const isWhole = options.from === undefined && options.to === undefined;
  const range = isWhole ? undefined : rangeOf(options, { start: 0, end: Date.now() });
  const { days: byDay = false } = options;
  const requested = requestedMeter(options);
  const { source } = options;
  if (source !== undefined) storedSources(await listSources(db), source);
  const all = await coverageLines(db, { range, byDay, meter: requested ?? "traces" });
  // Without a meter, the user wants to know whether anything is missing.
  const others = requested === undefined ? await otherGapLines(db, { range, byDay }) : [];
  const isMeant = (line: CoverageLine) => source === undefined || line.source === source;
  const [lines, gaps] = [all.filter(isMeant), others.filter(isMeant)];
  session.output.data([...lines, ...gaps], () =>
    linesOf(describeCoverage(lines, byDay), gaps.length > 0 && describeCoverage(gaps, byDay)),
  );
  const hasGaps = gaps.length > 0 || lines.some(isGap);
  return options.failOnGaps === true && (hasGaps || lines.length === 0) ? EXIT.mismatch : EXIT.done;
}

const STATUSES = ["ok", "empty", "provisional", "unverified", "missing", "failed", "not_available"];

function describeCoverage(lines: readonly CoverageLine[], byDay: boolean): string {
  if (lines.length === 0) {
    return "No usage is expected in that range, or no source is loaded yet. `usage-etl status` shows what is loaded.";
  }
  const groups = Map.groupBy(
    lines,
    ({ source, meter, stride }) =>
      `${source}, ${meter === "traces" ? "" : `${METER_NAME[meter]} `}by ${stride}`,
  );
  return [...groups].map(([name, group]) => describeGroup(name, group, byDay)).join("\n\n");
}

function describeGroup(name: string, lines: readonly CoverageLine[], byDay: boolean): string {
  const first = lines.map((line) => line.firstDay).sort()[0];
  const last = lines
    .map((line) => line.lastDay)
    .sort()
    .at(-1);
  const rows = [
    ...Map.groupBy(lines, ({ firstDay, groupBy }) => (byDay ? `${firstDay} ${groupBy}` : groupBy)),
  ];
  const cells = rows.map(([row, counted]) => [
    ...row.split(" "),
    ...STATUSES.map((status) => counted.find((line) => line.status === status)?.days ?? 0),
  ]);
  const head = [
    ...(byDay ? ["day"] : []),
    "dimension",
    ...STATUSES.map((status) => status.replace("_", " ")),
  ];
  const gaps = byDay ? [] : lines.filter(({ status }) => GAPS.includes(status)).map(describeGap);
  return [`${name}, ${first} to ${last}: workspace days`, table(...withoutZeros(head, cells)), ...gaps].join(
    "\n",
  );
}

function describeGap({ status, groupBy, firstDay, lastDay }: CoverageLine): string {
  return `${status}: ${groupBy}, ${firstDay === lastDay ? `on ${firstDay}` : `between ${firstDay} and ${lastDay}; --days shows each`}`;
}
