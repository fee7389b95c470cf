import { counted } from "../../core/base/printable.ts";

export interface LimitUse {
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  /** The platform's word. */
  readonly limitType: string;
  readonly value: number | null;
  readonly isRejecting: boolean;
  /** First day of the month, ISO. */
  readonly month: string;
  /** Lower bound: days that are not loaded are left out. Null: it is unknown which usage the limit counts. */
  readonly traces: number | null;
  readonly isComplete: boolean;
  readonly daysFinal: number;
  readonly percent: number | null;
  /** ISO day on which usage reaches the limit at the pace of the final days. Null: not this month. */
  readonly reachedOn: string | null;
  /** Workspaces that the limit counts and no sync loads, and their traces in a month. */
  readonly workspacesNotLoaded: number;
  readonly tracesNotLoaded: number;
  readonly readAt: string;
}

const MARKS = [50, 75, 90, 100] as const;

export function marksPassed({ percent }: Pick<LimitUse, "percent">): number {
  return percent === null ? 0 : MARKS.filter((mark) => percent >= mark).length;
}

const LIMITED: Readonly<Record<string, string>> = {
  monthly_traces: "Monthly limit of traces",
  monthly_longlived_traces: "Monthly limit of long-lived traces",
};

export function describeLimit(use: LimitUse): string {
  const { limitType, value, traces, percent, month, isComplete, isRejecting } = use;
  const whose =
    use.workspaceId === "(all)" ? "whole organization" : `workspace ${use.workspaceName ?? use.workspaceId}`;
  const name = `${LIMITED[limitType] ?? `Limit ${limitType}`}, ${whose}`;
  const rejecting = isRejecting ? " The platform rejects its traces now." : "";
  if (value === null) return `${name}: no limit.${rejecting}`;
  const limit = value.toLocaleString("en-US");
  if (traces === null || percent === null)
    return `${name}: ${limit}; its usage is not known here.${rejecting}`;
  const least = isComplete ? "" : "at least ";
  return `${name}: ${least}${traces.toLocaleString("en-US")} of ${limit} traces (${shortPercent(percent)} %) in ${month.slice(0, 7)}.${notLoaded(use)}${paceOf(use)}${rejecting}`;
}

function notLoaded({ workspacesNotLoaded, tracesNotLoaded }: LimitUse): string {
  if (workspacesNotLoaded === 0) return "";
  const are = workspacesNotLoaded === 1 ? "is" : "are";
  return ` ${counted(workspacesNotLoaded, "workspace")} ${are} not loaded: about ${counted(tracesNotLoaded, "trace")} a month more.`;
}

function paceOf({ percent, reachedOn, daysFinal, workspacesNotLoaded }: LimitUse): string {
  if (percent !== null && percent >= 100) return " It is reached.";
  const days = `${daysFinal} final ${daysFinal === 1 ? "day" : "days"}${workspacesNotLoaded === 0 ? "" : ", and with these traces,"}`;
  if (reachedOn !== null) return ` At the pace of the ${days} it is reached on ${reachedOn}.`;
  return daysFinal === 0 ? "" : ` At the pace of the ${days} it is not reached this month.`;
}

/** Rounded down, because 99.99 % is not 100 %. */
function shortPercent(percent: number): string {
  return (Math.floor(percent * 10) / 10).toFixed(1);
}
