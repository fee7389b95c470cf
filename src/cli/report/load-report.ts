import { rangeSentence } from "../../domain/coverage/range-sentence.ts";
import { isLoaded, type RangeLine } from "../../domain/coverage/range-status.ts";
import { METER_NAME, type Meter } from "../../domain/usage/meter.ts";
import { dimensionOf, type GroupBy } from "../../domain/usage/record.ts";
import type { RunResult } from "../../pipeline/extract/run-inline.ts";
import { EXIT } from "../session/exit.ts";
import { instant, table, withoutZeros } from "./output.ts";

/** What `--json` shows of the range that was asked for. */
export function rangeToData(lines: readonly RangeLine[]) {
  return lines.map(({ first, end, retryAt, ...line }) => ({
    ...line,
    from: new Date(first),
    to: new Date(end),
    nextRetry: retryAt === null ? null : new Date(retryAt),
  }));
}

/** The statement at the end of a load: what the tables say about the range that was asked for. */
export function describeRange(lines: readonly RangeLine[]): string {
  const { sentence, open } = rangeSentence(lines);
  if (open.length === 0) return sentence;
  const rows = open.map((line) => [
    ...[dimensionText(line.meter, line.groupBy), line.stride, line.status, line.code ?? "-", line.buckets],
    ...[instant(line.first), instant(line.end), line.retryAt === null ? "-" : instant(line.retryAt)],
  ]);
  const head = ["dimension", "stride", "status", "reason", "buckets", "from", "to", "next attempt"];
  return `${sentence}\n${table(...withoutZeros(head, rows))}`;
}

/** 0 only if all of the range is loaded. */
export function exitOfRange(lines: readonly RangeLine[]): number {
  return lines.every(isLoaded) ? EXIT.done : EXIT.partlyFailed;
}

const HEAD = ["dimension", "stride", "windows", "requests", "records", "traces"]
  .concat(["inserted", "updated", "retired", "unchanged"])
  .concat(["failed", "not available"]);
const ROWS = ["records", "traces", "inserted", "updated", "retired", "unchanged"] as const;

/** A run as a table by dimension and stride, with its failures. */
export function describeRun(run: RunResult): string {
  const rows = run.counts.map(
    ({ meter, groupBy, stride, planned, requests, failed, notAvailable, rows: counts }) => {
      const numbers = ROWS.map((name) => counts[name]);
      return [
        dimensionText(meter, groupBy),
        stride,
        planned,
        requests,
        ...numbers,
        failed + counts.unverified,
        notAvailable,
      ];
    },
  );
  const failures = run.failures.map(({ task, code, message }) => {
    const { meter, groupBy, window, members } = task;
    const what = `${dimensionText(meter, groupBy)} ${window.stride} ${instant(window.start)} to ${instant(window.end)}`;
    const where =
      members.length === 1 ? `workspace ${members[0]?.workspaceId}` : `${members.length} workspaces`;
    return `failed: ${what}, ${where}: ${message} [${code}]`;
  });
  return [table(...withoutZeros(HEAD, rows)), ...failures].join("\n");
}

/** Such as `project`, or `long-lived traces by project`. */
export function dimensionText(meter: Meter, groupBy: GroupBy): string {
  return meter === "traces" ? groupBy : `${METER_NAME[meter]} by ${dimensionOf(meter, groupBy)}`;
}

export function exitOfRun(run: RunResult): number {
  const hasFailed = run.counts.some((counts) => counts.failed > 0 || counts.rows.unverified > 0);
  return hasFailed ? EXIT.partlyFailed : EXIT.done;
}
