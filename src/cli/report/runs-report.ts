import { describeDuration } from "../../clock.ts";
import { outcomeOf } from "../../pipeline/runs.ts";
import type { Run, RunOutcome } from "../../store/activity/runs.ts";
import { EXIT } from "../session/exit.ts";
import { table } from "./output.ts";
import { wrapped } from "./wrap.ts";

/** `2026-03-01 05:00:12`, UTC. */
export function second(instant: string): string {
  return instant.slice(0, 19).replace("T", " ");
}

export function describeRuns(runs: readonly Run[]): string {
  if (runs.length === 0) return "Nothing ran yet. Run `usage-etl sync --inline`.";
  const hasSources = new Set(runs.map(({ source }) => source)).size > 1;
  const head = [
    "run",
    ...(hasSources ? ["source"] : []),
    "kind",
    "started (UTC)",
    "took",
    "requests",
    "outcome",
  ];
  const rows = runs.map((run) => [
    run.runId,
    ...(hasSources ? [run.source] : []),
    ...[nameOf(run), second(run.startedAt).slice(0, -":00".length), describeDuration(run.seconds * 1000)],
    ...[run.requests, outcomeOf(run)],
  ]);
  const width = Math.max(...runs.map(({ runId }) => String(runId).length));
  const reasons = runs
    .filter(({ reason }) => reason !== null)
    .map((run) => wrapped(`${String(run.runId).padStart(width)}  `, reasonOf(run)));
  return [table(head, rows), ...(reasons.length === 0 ? [] : ["", ...reasons])].join("\n");
}

function reasonOf({ reason, code }: Run): string {
  return `${reason ?? ""}${code === null ? "" : ` [${code}]`}`;
}

export function describeRun(run: Run): string {
  const { runId, source, startedAt, finishedAt, seconds, requests, reason } = run;
  const lines = [
    `Run ${runId}: ${nameOf(run)} of source ${source}, ${outcomeOf(run)}`,
    `started   ${second(startedAt)} UTC`,
    finishedAt === null
      ? `running   for ${describeDuration(seconds * 1000)}`
      : `finished  ${second(finishedAt)} UTC, after ${describeDuration(seconds * 1000)}`,
    `requests  ${requests === null ? "none, or not counted" : requests.toLocaleString("en-US")}`,
  ];
  if (reason !== null) lines.push(wrapped("reason    ", reasonOf(run)));
  return lines.join("\n");
}

function nameOf({ kind, backfillId }: Run): string {
  return backfillId === null ? kind : `backfill ${backfillId}`;
}

/** The exit code of the command that ran, as far as the tables know it. */
export function exitOfOutcome(outcome: RunOutcome): number {
  if (outcome === "differs") return EXIT.mismatch;
  return outcome === "failed" || outcome === "partly_failed" || outcome === "lost"
    ? EXIT.partlyFailed
    : EXIT.done;
}
