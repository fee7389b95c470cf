import { isLoaded, type RangeLine, rangeSentence } from "../../domain/coverage/range-status.ts";
import { EXIT } from "../session/exit.ts";
import { withoutZeros } from "./fit.ts";
import { instant, table } from "./output.ts";
import { dimensionText } from "./run-report.ts";

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
