import type { RunResult } from "../../pipeline/extract/run-inline.ts";
import { EXIT } from "../session/exit.ts";
import { instant, table } from "./output.ts";

/** A run as a table by grouping, and what failed. */
export function describeRun(run: RunResult): string {
  const rows = run.counts.map(({ groupBy, stride, planned, requests, failed, notAvailable, rows: sums }) => [
    groupBy,
    stride,
    planned,
    requests,
    sums.records,
    sums.traces,
    sums.inserted,
    sums.updated,
    sums.retired,
    sums.unchanged,
    failed + sums.unverified,
    notAvailable,
  ]);
  if (rows.length === 0) return "Nothing was required: all of it is settled.";
  const head = [
    "group_by",
    "stride",
    "windows",
    "requests",
    "records",
    "traces",
    "inserted",
    "updated",
    "retired",
  ];
  return [
    table([...head, "unchanged", "failed", "not available"], rows),
    ...run.failures.map(({ slice, code, message }) => {
      const { groupBy, window, members } = slice;
      const where = `${groupBy} ${window.stride} ${instant(window.start)} to ${instant(window.end)}`;
      const whom =
        members.length === 1 ? `workspace ${members[0]?.workspaceId}` : `${members.length} workspaces`;
      return `failed: ${where}, ${whom}: ${message} [${code}]`;
    }),
  ].join("\n");
}

export function exitOfRun(run: RunResult): number {
  const hasFailed = run.counts.some((counts) => counts.failed > 0 || counts.rows.unverified > 0);
  return hasFailed ? EXIT.partlyFailed : EXIT.done;
}
