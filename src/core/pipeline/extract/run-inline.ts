import PQueue from "p-queue";
import type { UsageRequest } from "../../domain/planning/request.ts";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import { METERS, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { storeNow } from "../../store/work/fetch-ledger.ts";
import { noteTaskFailed } from "../../store/work/runs.ts";
import type { OpenSource } from "../source/source.ts";
import { keepStatistics } from "../upkeep.ts";
import { type ExtractOptions, extractTask, NO_ROWS, type RowCounts, type TaskResult } from "./extract.ts";
import { createDownDetector, type OnProgress } from "./sequentially.ts";

/** Enough parallel fetches to keep the network and Postgres busy on two cores. */
const CONCURRENCY = 4;

/** Counts of a run for one meter, dimension and stride. Those of different ones are never added. */
interface RunCounts {
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly rows: RowCounts;
  readonly planned: number;
  readonly requests: number;
  readonly failed: number;
  readonly notAvailable: number;
  readonly discarded: number;
  readonly unasked: number;
}

interface TaskFailure {
  readonly task: UsageRequest;
  readonly code: string;
  readonly message: string;
}

export interface RunResult {
  readonly counts: readonly RunCounts[];
  readonly failures: readonly TaskFailure[];
}

interface Replanned {
  readonly task: UsageRequest;
  readonly result: TaskResult;
  isCounted: boolean;
}

export async function runInline(
  source: OpenSource,
  tasks: readonly UsageRequest[],
  {
    onProgress = () => {},
    isRepair,
    isRoutine,
  }: { onProgress?: OnProgress } & Pick<ExtractOptions, "isRepair" | "isRoutine"> = {},
): Promise<RunResult> {
  const counts = new Map<string, RunCounts>();
  const failures: TaskFailure[] = [];
  const queue = new PQueue({ concurrency: CONCURRENCY });
  const noteGivenUp = createDownDetector();
  const began = await storeNow(source.store.db);
  let [done, total] = [0, tasks.length];
  let stop: unknown;

  const count = (task: UsageRequest, add: (counts: RunCounts) => RunCounts) => {
    const key = `${task.meter} ${task.groupBy} ${task.window.stride}`;
    counts.set(key, add(counts.get(key) ?? nothingOf(task)));
  };
  const fail = (task: UsageRequest, { code = "", message = "" }: TaskResult) =>
    failures.push({ task, code, message });
  const work = async (task: UsageRequest, failed: Replanned | undefined) => {
    const result = source.server.refuses(task.window.stride)
      ? notAvailable(task)
      : await extractTask(source, task, {
          isRepair,
          isRoutine,
          workspacesSince: isRepair ? undefined : began,
        });
    count(task, (before) => withResult(before, result));
    if (result.outcome === "failed") fail(task, result);
    // The follow-ups need a finer stride that the server does not support, so the failure of the task stays.
    if (result.outcome === "not_available" && failed !== undefined && !failed.isCounted) {
      failed.isCounted = true;
      fail(failed.task, failed.result);
      count(failed.task, (before) => ({ ...before, failed: before.failed + 1 }));
    }
    noteGivenUp(result.gaveUp);
    total += result.followUps.length;
    const replanned = result.keepsFailure ? { task, result, isCounted: false } : failed;
    for (const followUp of result.followUps) enqueue(followUp, 1, replanned);
  };
  const enqueue = (task: UsageRequest, priority: number, failed?: Replanned) =>
    void queue.add(
      async () => {
        if (stop !== undefined) return;
        try {
          await work(task, failed);
        } catch (error) {
          stop ??= error;
        }
        onProgress({ done: ++done, total });
      },
      { priority },
    );

  for (const task of tasks) count(task, (before) => ({ ...before, planned: before.planned + 1 }));
  // Workspace tasks run first: where a workspace has no traces, no other dimension is requested.
  const { first = [], then = [] } = Object.groupBy(tasks, ({ groupBy }) =>
    groupBy === "workspace" ? "first" : "then",
  );
  for (const part of [first, then]) {
    for (const task of part) enqueue(task, 0);
    await queue.onIdle();
  }
  for (const { code, message } of failures) {
    await noteTaskFailed(source.store.db, { runId: source.runId, code, message });
  }
  if (stop !== undefined) throw stop;
  if (tasks.length > 0) {
    await source.access.confirm();
    await keepStatistics(source.store);
  }
  return { counts: [...counts.values()].sort(byMeterDimensionAndStride), failures };
}

function notAvailable(task: UsageRequest): TaskResult {
  return {
    outcome: "not_available",
    requests: 0,
    rows: NO_ROWS,
    followUps: [],
    code: "stride_not_available",
    message: `the server does not respond in ${task.window.stride} buckets`,
  };
}

function nothingOf({ meter, groupBy, window }: UsageRequest): RunCounts {
  const none = { planned: 0, requests: 0, failed: 0, notAvailable: 0, discarded: 0, unasked: 0 };
  return { meter, groupBy, stride: window.stride, rows: NO_ROWS, ...none };
}

function byMeterDimensionAndStride(a: RunCounts, b: RunCounts): number {
  return (
    METERS.indexOf(a.meter) - METERS.indexOf(b.meter) ||
    GROUPINGS.indexOf(a.groupBy) - GROUPINGS.indexOf(b.groupBy) ||
    STRIDES.indexOf(b.stride) - STRIDES.indexOf(a.stride)
  );
}

function withResult(counts: RunCounts, { outcome, requests, rows }: TaskResult): RunCounts {
  return {
    ...counts,
    rows: addRows(counts.rows, rows),
    requests: counts.requests + requests,
    failed: counts.failed + Number(outcome === "failed"),
    notAvailable: counts.notAvailable + Number(outcome === "not_available"),
    discarded: counts.discarded + Number(outcome === "discarded"),
    unasked: counts.unasked + Number(outcome === "unchanged"),
  };
}

function addRows(a: RowCounts, b: RowCounts): RowCounts {
  const names = Object.keys(NO_ROWS) as (keyof RowCounts)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as unknown as RowCounts;
}
