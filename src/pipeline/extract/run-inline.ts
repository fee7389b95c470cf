import PQueue from "p-queue";
import type { UsageRequest } from "../../domain/planning/request.ts";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import { METERS, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { noteTaskFailed } from "../../store/work/runs.ts";
import type { OpenSource } from "../source/source.ts";
import { keepStatistics } from "../statistics.ts";
import { extractSlice, NO_ROWS, type RowCounts, type SliceResult } from "./extract.ts";
import { createDownDetector } from "./platform-down.ts";
import type { OnProgress } from "./sequentially.ts";
import { isStrideRefused } from "./stride-retry.ts";

/** Slices fetched at once: enough to keep the network and Postgres busy on two cores. */
const CONCURRENCY = 4;

/** What a run did for one meter, dimension and stride. Figures of different ones are never added together. */
interface RunCounts {
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly rows: RowCounts;
  /** Slices planned, requests sent, and slices that were not loaded by the reason. */
  readonly planned: number;
  readonly requests: number;
  readonly failed: number;
  readonly notAvailable: number;
  readonly discarded: number;
}

interface SliceFailure {
  readonly slice: UsageRequest;
  readonly code: string;
  readonly message: string;
}

export interface RunResult {
  /** In order of meter and dimension, then from the coarsest stride. */
  readonly counts: readonly RunCounts[];
  readonly failures: readonly SliceFailure[];
}

/** A slice that keeps a failure until those that take its place are loaded. */
interface Replanned {
  readonly slice: UsageRequest;
  readonly result: SliceResult;
  isCounted: boolean;
}

/**
 * Runs slices in this process, with the slices that take the place of those that were split. `isRepair`: what is stored is in
 * doubt, so all of it is compared with the answers.
 */
export async function runInline(
  source: OpenSource,
  slices: readonly UsageRequest[],
  { onProgress = () => {}, isRepair }: { onProgress?: OnProgress; isRepair?: boolean } = {},
): Promise<RunResult> {
  const counts = new Map<string, RunCounts>();
  const failures: SliceFailure[] = [];
  const queue = new PQueue({ concurrency: CONCURRENCY });
  const noteGivenUp = createDownDetector();
  let [done, total] = [0, slices.length];
  let stop: unknown;

  const count = (slice: UsageRequest, add: (counts: RunCounts) => RunCounts) => {
    const key = `${slice.meter} ${slice.groupBy} ${slice.window.stride}`;
    counts.set(key, add(counts.get(key) ?? nothingOf(slice)));
  };
  const fail = (slice: UsageRequest, { code = "", message = "" }: SliceResult) =>
    failures.push({ slice, code, message });
  const work = async (slice: UsageRequest, failed: Replanned | undefined) => {
    const result = isStrideRefused(source, slice)
      ? notAvailable(slice)
      : await extractSlice(source, slice, { isRepair });
    count(slice, (before) => withResult(before, result));
    if (result.outcome === "failed") fail(slice, result);
    // Planned in a finer stride that the server does not answer in: the failure stays.
    if (result.outcome === "not_available" && failed !== undefined && !failed.isCounted) {
      failed.isCounted = true;
      fail(failed.slice, failed.result);
      count(failed.slice, (before) => ({ ...before, failed: before.failed + 1 }));
    }
    noteGivenUp(result.gaveUp);
    total += result.followUps.length;
    const replanned = result.keepsFailure ? { slice, result, isCounted: false } : failed;
    for (const followUp of result.followUps) enqueue(followUp, 1, replanned);
  };
  const enqueue = (slice: UsageRequest, priority: number, failed?: Replanned) =>
    void queue.add(
      async () => {
        if (stop !== undefined) return;
        try {
          await work(slice, failed);
        } catch (error) {
          stop ??= error;
        }
        onProgress({ done: ++done, total });
      },
      { priority },
    );

  for (const slice of slices) {
    count(slice, (before) => ({ ...before, planned: before.planned + 1 }));
    enqueue(slice, 0);
  }
  await queue.onIdle();
  for (const { code, message } of failures) {
    await noteTaskFailed(source.store.db, { runId: source.runId, code, message });
  }
  if (stop !== undefined) throw stop;
  if (slices.length > 0) {
    await source.access.confirm();
    await keepStatistics(source.store);
  }
  return { counts: [...counts.values()].sort(byMeterDimensionAndStride), failures };
}

function notAvailable(slice: UsageRequest): SliceResult {
  return {
    outcome: "not_available",
    requests: 0,
    rows: NO_ROWS,
    followUps: [],
    code: "stride_not_available",
    message: `the server does not answer in ${slice.window.stride} buckets`,
  };
}

function nothingOf({ meter, groupBy, window }: UsageRequest): RunCounts {
  const none = { planned: 0, requests: 0, failed: 0, notAvailable: 0, discarded: 0 };
  return { meter, groupBy, stride: window.stride, rows: NO_ROWS, ...none };
}

function byMeterDimensionAndStride(a: RunCounts, b: RunCounts): number {
  return (
    METERS.indexOf(a.meter) - METERS.indexOf(b.meter) ||
    GROUPINGS.indexOf(a.groupBy) - GROUPINGS.indexOf(b.groupBy) ||
    STRIDES.indexOf(b.stride) - STRIDES.indexOf(a.stride)
  );
}

function withResult(counts: RunCounts, { outcome, requests, rows }: SliceResult): RunCounts {
  return {
    ...counts,
    rows: addRows(counts.rows, rows),
    requests: counts.requests + requests,
    failed: counts.failed + Number(outcome === "failed"),
    notAvailable: counts.notAvailable + Number(outcome === "not_available"),
    discarded: counts.discarded + Number(outcome === "discarded"),
  };
}

function addRows(a: RowCounts, b: RowCounts): RowCounts {
  const names = Object.keys(NO_ROWS) as (keyof RowCounts)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as unknown as RowCounts;
}
