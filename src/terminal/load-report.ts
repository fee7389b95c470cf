import { printableLine } from "../core/base/printable.ts";
import { isLoaded, type RangeLine, rangeSentence } from "../core/domain/coverage/range-status.ts";
import { METER, METER_NAME, METER_NOT_KNOWN, type Meter } from "../core/domain/usage/meter.ts";
import { dimensionOf, type GroupBy } from "../core/domain/usage/record.ts";
import type { RunResult } from "../core/pipeline/extract/run-inline.ts";
import type { UnknownMeter } from "../core/store/catalog/source-meters.ts";
import { EXIT } from "./exit.ts";
import { cellsOf, instant, linesOf, table, withoutZeros } from "./output.ts";

export function rangeToData(lines: readonly RangeLine[]) {
  return lines.map(({ first, end, retryAt, ...line }) => ({
    ...line,
    from: new Date(first),
    to: new Date(end),
    nextRetry: retryAt === null ? null : new Date(retryAt),
  }));
}

export function describeRange(lines: readonly RangeLine[], unknown: readonly UnknownMeter[] = []): string {
  const { sentence, open } = rangeSentence(lines, unknown.length > 0);
  const notKnown = unknown.map(describeUnknown);
  if (open.length === 0) return linesOf(sentence, notKnown);
  const cells = cellsOf(joined(open), {
    dimension: (line) => {
      if (!line.isOfAll) return dimensionText(line.meter, line.groupBy);
      return line.meter === "traces" ? "all" : METER_NAME[line.meter];
    },
    stride: "stride",
    status: "status",
    reason: "code",
    buckets: "buckets",
    from: ({ first }) => instant(first),
    to: ({ end }) => instant(end),
    "next attempt": ({ retryAt }) => retryAt && instant(retryAt),
  });
  return linesOf(sentence, table(...withoutZeros(...cells)), notKnown);
}

export function describeUnknown({ meter, evidence }: Pick<UnknownMeter, "meter" | "evidence">): string {
  return `It is not known whether the server counts ${METER_NAME[meter]}: ${printableLine(evidence)}. Each sync tests it again. [${METER_NOT_KNOWN}]`;
}

function joined(lines: readonly RangeLine[]): (RangeLine & { readonly isOfAll: boolean })[] {
  const [lacking, others] = [true, false].map((is) =>
    lines.filter(({ status }) => (status === "not_available") === is),
  ) as [RangeLine[], RangeLine[]];
  const alike = Map.groupBy(lacking, ({ meter, stride, code, first, end }) =>
    JSON.stringify([meter, stride, code, first, end]),
  );
  const some = [...alike.values()].flatMap((group) => {
    const [line] = group as [RangeLine];
    if (group.length < Math.max(2, METER[line.meter].groupings.length))
      return group.map((one) => ({ ...one, isOfAll: false }));
    const buckets = group.reduce((sum, one) => sum + one.buckets, 0);
    return [{ ...line, buckets, isOfAll: true }];
  });
  return [...others.map((one) => ({ ...one, isOfAll: false })), ...some];
}

export function exitOfRange(lines: readonly RangeLine[]): number {
  return lines.every(isLoaded) ? EXIT.done : EXIT.partlyFailed;
}

export function describeRun(run: RunResult): string {
  const cells = cellsOf(run.counts, {
    dimension: ({ meter, groupBy }) => dimensionText(meter, groupBy),
    stride: "stride",
    windows: "planned",
    requests: "requests",
    "not asked": "unasked",
    records: ({ rows }) => rows.records,
    traces: ({ rows }) => rows.traces,
    inserted: ({ rows }) => rows.inserted,
    updated: ({ rows }) => rows.updated,
    retired: ({ rows }) => rows.retired,
    unchanged: ({ rows }) => rows.unchanged,
    failed: ({ failed, rows }) => failed + rows.unverified,
    "not available": "notAvailable",
  });
  const failures = run.failures.map(({ task, code, message }) => {
    const { meter, groupBy, window, members } = task;
    const what = `${dimensionText(meter, groupBy)} ${window.stride} ${instant(window.start)} to ${instant(window.end)}`;
    const where =
      members.length === 1 ? `workspace ${members[0]?.workspaceId}` : `${members.length} workspaces`;
    return `failed: ${what}, ${where}: ${message} [${code}]`;
  });
  const isSpared = run.counts.some(({ unasked }) => unasked > 0);
  return linesOf(
    table(...withoutZeros(...cells)),
    isSpared &&
      "not requested: stored figures still match the new counts by workspace (USAGE_REFRESH_AFTER). Records and traces are those of the requests.",
    run.counts.some((of) => of.requests < of.planned - of.unasked - of.notAvailable - of.failed) &&
      "Fewer requests than windows: none is sent for a window in which the response by workspace has no traces.",
    failures,
  );
}

export function dimensionText(meter: Meter, groupBy: GroupBy): string {
  return meter === "traces" ? groupBy : `${METER_NAME[meter]} by ${dimensionOf(meter, groupBy)}`;
}

export function exitOfRun(run: RunResult): number {
  const hasFailed = run.counts.some((counts) => counts.failed > 0 || counts.rows.unverified > 0);
  return hasFailed ? EXIT.partlyFailed : EXIT.done;
}

export function moreThan(shown: number, differences: number): string | false {
  return (
    differences > shown && `... and ${differences - shown} more in reporting_detail.usage_reconciliation`
  );
}
