import { createHash } from "node:crypto";
import type { FetchStamp } from "../../domain/planning/coverage.ts";
import type { Slice } from "../../domain/planning/slice.ts";
import { AnswerCollector, type AnswerFlaw } from "../../domain/usage/answer.ts";
import type { UsageRecord } from "../../domain/usage/record.ts";
import { EtlError, PlatformError } from "../../errors.ts";
import { scopesOf } from "../../store/catalog/scopes.ts";
import {
  forgetCapability,
  learnCapability,
  type ServerCapability,
} from "../../store/catalog/server-capabilities.ts";
import { failScopes } from "../../store/load/failures.ts";
import { beginFetch, finishFetch } from "../../store/load/fetch-ledger.ts";
import { type LoadResult, loadAnswer } from "../../store/load/load.ts";
import { withRetries } from "../source/retry.ts";
import { isKeyRefused, keepRefusal, type OpenSource } from "../source/source.ts";
import { afterFlaw, afterRefusal, type NextStep } from "./split.ts";

/** Sums over answers: records and traces received, rows written, scopes left alone for want of evidence. */
export interface RowCounts {
  readonly records: number;
  readonly traces: number;
  readonly inserted: number;
  readonly updated: number;
  readonly retired: number;
  readonly unchanged: number;
  readonly restated: number;
  readonly unverified: number;
}

export const NO_ROWS: RowCounts = {
  records: 0,
  traces: 0,
  inserted: 0,
  updated: 0,
  retired: 0,
  unchanged: 0,
  restated: 0,
  unverified: 0,
};

/** What one slice came to. `followUps` are the slices that take its place where it was split or planned finer. */
export interface SliceResult {
  readonly outcome: LoadResult["outcome"] | "split" | "failed" | "not_available";
  readonly requests: number;
  readonly rows: RowCounts;
  readonly followUps: readonly Slice[];
  /** Why it failed, was split or is not available. */
  readonly code?: string;
  readonly message?: string;
  /** Set where it failed for something passing that outlasted every attempt: the source may be down. */
  readonly gaveUp?: PlatformError;
}

interface ExtractOptions {
  /** What becomes of a passing error that outlasted `attempts`: kept as a failure, or thrown for the queue to try again. */
  readonly onTransient?: "keep" | "throw";
}

/**
 * Fetches one slice and replaces its window.
 *
 * Transient errors are tried again, each time with a new fetch number. What cannot be loaded is kept as a failure, split,
 * or planned finer (rules 8 and 12). Throws only where the source as a whole must stop: a refused key, an aborted
 * signal, a store that fails.
 */
export async function extractSlice(
  source: OpenSource,
  slice: Slice,
  { onTransient = "keep" }: ExtractOptions = {},
): Promise<SliceResult> {
  let requests = 0;
  const count = () => requests++;
  await source.access.fresh();
  try {
    const first = await fetchOnce(source, slice, count);
    let last = first;
    if (first.load?.outcome === "unconfirmed") {
      // Every non-zero row would go: only a second answer, and newer evidence that the workspaces are readable, may do that.
      await source.access.renew();
      last = await fetchOnce(source, slice, count, {
        fullyDeleted: first.load.fullyDeleted,
        since: first.stamp.fetchedAt,
      });
    }
    if (last.load === undefined) {
      return await takeNextStep(source, slice, last.stamp, {
        requests,
        step: afterFlaw(slice, last.flaw, source.splitBudget.allows()),
      });
    }
    if (last.load.outcome === "unconfirmed") {
      return await takeNextStep(source, slice, last.stamp, { requests, step: CONTRADICTED });
    }
    source.splitBudget.usable();
    await forget(source, `no_${slice.window.stride}`);
    const { outcome, inserted, updated, retired, unchanged, restated, unverified } = last.load;
    const { records, traces } = last;
    const rows = {
      records,
      traces,
      inserted,
      updated,
      retired,
      unchanged,
      restated,
      unverified: unverified.length,
    };
    return { outcome, requests, rows, followUps: [] };
  } catch (error) {
    if (isKeyRefused(error)) await keepRefusal(source, source.sourceId, error);
    if (!(error instanceof FetchFailed)) throw error;
    if (error.retryable && onTransient === "throw") throw error.cause;
    const step = afterRefusal(slice, error.cause, error.stamp.fetchedAt, source.splitBudget.allows());
    const result = await takeNextStep(source, slice, error.stamp, { requests, step });
    return error.retryable ? { ...result, gaveUp: error.cause } : result;
  }
}

/** Nothing was replaced, so the window stays required and the next round asks again. */
const CONTRADICTED: NextStep = {
  outcome: "failed",
  code: "window_unconfirmed",
  message: "two answers in a row emptied windows of different workspaces; neither was believed",
  parts: [],
  keep: false,
};

/** A request that got no usable answer, with the stamp it was sent under. */
class FetchFailed extends EtlError {
  readonly stamp: FetchStamp;
  override readonly cause: PlatformError;
  constructor(stamp: FetchStamp, cause: PlatformError) {
    super({ ...cause, message: cause.message, cause });
    this.stamp = stamp;
    this.cause = cause;
  }
}

interface Fetched {
  readonly stamp: FetchStamp;
  readonly records: number;
  readonly traces: number;
}
type Answered = Fetched &
  (
    | { readonly load: LoadResult; readonly flaw?: never }
    | { readonly load?: never; readonly flaw: AnswerFlaw }
  );

async function fetchOnce(
  source: OpenSource,
  slice: Slice,
  count: () => void,
  confirms?: { fullyDeleted: readonly number[]; since: number },
): Promise<Answered> {
  return withRetries(source, async () => {
    await source.admit();
    source.signal?.throwIfAborted();
    const { groupBy, window, workspaceIds, scopeIds } = slice;
    const stamp = await beginFetch(source.store.db, {
      sourceId: source.sourceId,
      purpose: "load",
      groupBy,
      window,
      workspaces: workspaceIds.length,
    });
    count();
    const answer = new AnswerCollector({ window, groupBy, workspaceIds });
    try {
      const { stride } = await source.billing.usage(
        { start: window.start, end: window.end, groupBy, workspaceIds },
        {
          signal: source.signal,
          onRecords: (records) => answer.add(withEmailPolicy(source, slice, records)),
        },
      );
      const flaw = answer.flaw(stride);
      if (flaw !== undefined) {
        await finishFetch(source.store.db, { ...stamp, outcome: "refused", code: flaw.code });
        return { stamp, records: answer.records, traces: answer.traces, flaw };
      }
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      const { code, status } = error;
      await finishFetch(source.store.db, { ...stamp, outcome: "failed", code, status });
      throw isKeyRefused(error) ? error : new FetchFailed(stamp, error);
    }
    const load = await loadAnswer(source.store, {
      sourceId: source.sourceId,
      groupBy,
      window,
      stamp,
      scopeIds,
      answer,
      settleAfterMs: source.settings.settleAfterMs,
      confirms,
    });
    const { records, traces } = answer;
    await finishFetch(source.store.db, { ...stamp, outcome: load.outcome, records, traces });
    source.log.debug({ slice: describe(slice), fetch: stamp.fetchNumber, ...load }, "slice");
    return { stamp, load, records, traces };
  });
}

async function takeNextStep(
  source: OpenSource,
  slice: Slice,
  stamp: FetchStamp,
  { requests, step }: { requests: number; step: NextStep },
): Promise<SliceResult> {
  const { code, message, outcome } = step;
  source.splitBudget.refused();
  source.log.warn({ slice: describe(slice), code, reason: message, outcome }, "slice not loaded");
  if (step.learn !== undefined) await learn(source, step.learn, message);
  if (step.keep) {
    await failScopes(source.store, {
      scopeIds: slice.scopeIds,
      period: slice.window,
      stamp,
      state: "failed",
      code,
      message,
    });
  }
  const followUps = await Promise.all(
    step.parts.map(async ({ window, workspaceIds }) => ({
      groupBy: slice.groupBy,
      window,
      workspaceIds,
      scopeIds: await scopesOf(source.store.db, {
        sourceId: source.sourceId,
        groupBy: slice.groupBy,
        stride: window.stride,
        workspaceIds,
      }),
    })),
  );
  return { outcome, requests, rows: NO_ROWS, followUps, code, message };
}

async function learn(source: OpenSource, capability: ServerCapability, evidence: string): Promise<void> {
  source.capabilities.add(capability);
  await learnCapability(source.store.db, { sourceId: source.sourceId, capability, evidence });
}

async function forget(source: OpenSource, capability: ServerCapability): Promise<void> {
  if (source.capabilities.delete(capability))
    await forgetCapability(source.store.db, { sourceId: source.sourceId, capability });
}

/** What `USAGE_USER_EMAIL` lets in: before anything is stored, so that nothing has to be removed. */
function withEmailPolicy(source: OpenSource, slice: Slice, records: UsageRecord[]): UsageRecord[] {
  const policy = source.settings.userEmail;
  if (slice.groupBy !== "user" || policy === "keep") return records;
  return records.map((record) => ({
    ...record,
    dimensionName: policy === "drop" || record.dimensionName === null ? null : digestOf(record.dimensionName),
  }));
}

function digestOf(email: string): string {
  return `sha256:${createHash("sha256").update(email.toLowerCase()).digest("hex").slice(0, 16)}`;
}

/** A slice in a log line. */
function describe({ groupBy, window, workspaceIds }: Slice): object {
  return {
    groupBy,
    stride: window.stride,
    from: new Date(window.start).toISOString(),
    to: new Date(window.end).toISOString(),
    workspaces: workspaceIds.length,
  };
}
