import PQueue from "p-queue";
import type { Slice } from "../../domain/planning/slice.ts";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { type PlatformError, UnreachableError } from "../../errors.ts";
import type { OpenSource } from "../source/source.ts";
import { extractSlice, NO_ROWS, type RowCounts, type SliceResult } from "./extract.ts";

/** Slices fetched at once: enough to keep the network and Postgres busy on two cores. */
const CONCURRENCY = 4;
/** Slices in a row that failed after every attempt: then the platform is down, and asking on only makes it worse. */
export const GIVE_UP_AFTER = 3;

export function platformUnreachable(last: PlatformError | undefined): UnreachableError {
  return new UnreachableError({
    code: "platform_unreachable",
    message: `${GIVE_UP_AFTER} slices in a row failed after every attempt, the last with: ${last?.message}`,
    next: "See whether the platform is up; what was loaded stays, and the next round goes on from there.",
    retryable: true,
    cause: last,
  });
}

/** What a run did for one grouping and stride: figures of different strides or groupings are never added together. */
interface RunCounts {
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly rows: RowCounts;
  /** Slices, requests, and slices by how they ended where that was not a load. */
  readonly planned: number;
  readonly requests: number;
  readonly failed: number;
  readonly notAvailable: number;
  readonly discarded: number;
}

export interface RunResult {
  /** In order of grouping, then from the coarsest stride. */
  readonly counts: readonly RunCounts[];
  readonly failures: readonly { slice: Slice; code: string; message: string }[];
}

/** Runs slices in this process, with the slices that take the place of those that were split. */
export async function runInline(
  source: OpenSource,
  slices: readonly Slice[],
  onProgress: (progress: { done: number; total: number }) => void = () => {},
): Promise<RunResult> {
  const counts = new Map<string, RunCounts>();
  const failures: { slice: Slice; code: string; message: string }[] = [];
  const queue = new PQueue({ concurrency: CONCURRENCY });
  let done = 0;
  let total = slices.length;
  let gaveUpInARow = 0;
  let stop: unknown;

  const note = (slice: Slice, result: SliceResult) => {
    const key = `${slice.groupBy} ${slice.window.stride}`;
    counts.set(key, withResult(counts.get(key) ?? nothingOf(slice), result));
    if (result.outcome === "failed") {
      failures.push({ slice, code: result.code ?? "", message: result.message ?? "" });
    }
    gaveUpInARow = result.gaveUp === undefined ? 0 : gaveUpInARow + 1;
    if (gaveUpInARow < GIVE_UP_AFTER) return;
    throw platformUnreachable(result.gaveUp);
  };
  const run = async (slice: Slice): Promise<void> => {
    if (stop !== undefined) return;
    try {
      const isStrideRetry = source.strideRetries.delete(`no_${slice.window.stride}`);
      if (source.capabilities.has(`no_${slice.window.stride}`) && !isStrideRetry) {
        note(slice, notAvailable(slice));
      } else {
        const result = await extractSlice(source, slice);
        note(slice, result);
        total += result.followUps.length;
        for (const followUp of result.followUps) enqueue(followUp, 1);
      }
    } catch (error) {
      stop ??= error;
    }
    done++;
    onProgress({ done, total });
  };
  const enqueue = (slice: Slice, priority: number) => void queue.add(() => run(slice), { priority });

  for (const slice of slices) {
    const key = `${slice.groupBy} ${slice.window.stride}`;
    const before = counts.get(key) ?? nothingOf(slice);
    counts.set(key, { ...before, planned: before.planned + 1 });
    enqueue(slice, 0);
  }
  await queue.onIdle();
  if (stop !== undefined) throw stop;
  return { counts: [...counts.values()].sort(byGroupingAndStride), failures };
}

function notAvailable(slice: Slice): SliceResult {
  return {
    outcome: "not_available",
    requests: 0,
    rows: NO_ROWS,
    followUps: [],
    code: "stride_not_available",
    message: `the server does not answer in ${slice.window.stride} buckets`,
  };
}

function nothingOf({ groupBy, window }: Slice): RunCounts {
  const none = { planned: 0, requests: 0, failed: 0, notAvailable: 0, discarded: 0 };
  return { groupBy, stride: window.stride, rows: NO_ROWS, ...none };
}

function byGroupingAndStride(a: RunCounts, b: RunCounts): number {
  return (
    GROUPINGS.indexOf(a.groupBy) - GROUPINGS.indexOf(b.groupBy) ||
    STRIDES.indexOf(b.stride) - STRIDES.indexOf(a.stride)
  );
}

function withResult(counts: RunCounts, { outcome, requests, rows }: SliceResult): RunCounts {
  return {
    ...counts,
    rows: addRows(counts.rows, rows),
    requests: counts.requests + requests,
    failed: counts.failed + (outcome === "failed" ? 1 : 0),
    notAvailable: counts.notAvailable + (outcome === "not_available" ? 1 : 0),
    discarded: counts.discarded + (outcome === "discarded" ? 1 : 0),
  };
}

function addRows(a: RowCounts, b: RowCounts): RowCounts {
  const names = Object.keys(NO_ROWS) as (keyof RowCounts)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as unknown as RowCounts;
}
