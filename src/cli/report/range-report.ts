import { isLoaded, type RangeLine } from "../../domain/planning/range-status.ts";
import { STRIDES } from "../../domain/time/stride.ts";
import { EXIT } from "../session/exit.ts";
import { withoutZeros } from "./fit.ts";
import { instant, table } from "./output.ts";

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
  if (lines.length === 0) return "No usage is expected in that range.";
  const open = lines.filter((line) => !isLoaded(line));
  if (open.length === 0) return `All of it is loaded: ${describeLoaded(lines)} (${UNIT}).`;
  const rows = open.map((line) => [
    ...[line.groupBy, line.stride, line.status, line.code ?? "-", line.buckets],
    ...[instant(line.first), instant(line.end), line.retryAt === null ? "-" : instant(line.retryAt)],
  ]);
  const head = ["dimension", "stride", "status", "reason", "buckets", "from", "to", "next attempt"];
  const loaded = describeLoaded(lines);
  if (loaded !== "" && open.every(({ status }) => status === "not_available")) {
    return `All that the server answers is loaded: ${loaded} (${UNIT}). Not available:\n${table(...withoutZeros(head, rows))}`;
  }
  return `Not all of it is loaded${loaded === "" ? "" : `, only ${loaded} (${UNIT})`}:\n${table(...withoutZeros(head, rows))}`;
}

const UNIT = "buckets x workspaces x dimensions";

/** Such as `by day 444 final and 36 provisional`. */
function describeLoaded(lines: readonly RangeLine[]): string {
  return STRIDES.flatMap((stride) => {
    const count = (status: RangeLine["status"]) =>
      lines.reduce((sum, one) => sum + (one.stride === stride && one.status === status ? one.buckets : 0), 0);
    const parts = (["final", "provisional"] as const)
      .filter((status) => count(status) > 0)
      .map((status) => `${count(status).toLocaleString("en-US")} ${status}`);
    return parts.length === 0 ? [] : [`by ${stride} ${parts.join(" and ")}`];
  })
    .reverse()
    .join(", ");
}

/** 0 only if all of the range is loaded. */
export function exitOfRange(lines: readonly RangeLine[]): number {
  return lines.every(isLoaded) ? EXIT.done : EXIT.partlyFailed;
}
