import type { FetchStamp } from "../../domain/coverage/finality.ts";
import { scopeIdsOf, type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import type { AnswerFlaw } from "../../domain/usage/answer.ts";
import { METER } from "../../domain/usage/meter.ts";
import { PlatformError } from "../../errors.ts";
import { forgetCapability, type ServerCapability } from "../../store/catalog/server-capabilities.ts";
import { type Load, type LoadResult, loadAnswer } from "../../store/load/load.ts";
import { endTask, type StoredTask } from "../../store/work/tasks.ts";
import { askUsage, collectAnswer, isKeyRefused } from "../source/ask.ts";
import { learnMeters } from "../source/learn-meters.ts";
import { type OpenSource, settleAfterIn } from "../source/source.ts";
import { settleByWorkspace } from "./by-workspace.ts";
import { afterFlaw, afterRefusal, canSplit, describe, type NextStep, takeNextStep } from "./split-or-fail.ts";
import { withEmailPolicy } from "./user-emails.ts";

export const NO_ROWS = {
  records: 0,
  traces: 0,
  inserted: 0,
  updated: 0,
  retired: 0,
  unchanged: 0,
  restated: 0,
  unverified: 0,
};
/** Sums over answers: records and traces received, rows written, scopes skipped since access is not proven. */
export type RowCounts = Readonly<typeof NO_ROWS>;

/** How one task ended. `followUps` take its place where it was split or planned in a finer stride. */
export interface TaskResult {
  /** `unchanged`: no request was sent, since what is stored still adds up to the counts by workspace. */
  readonly outcome: LoadResult["outcome"] | "unchanged" | "split" | "failed" | "not_available";
  readonly requests: number;
  readonly rows: RowCounts;
  readonly followUps: readonly UsageRequest[];
  /** Why it failed, was split or is not available. */
  readonly code?: string;
  readonly message?: string;
  /** Whether the task's own scopes keep it as a failure until its time is loaded. */
  readonly keepsFailure?: boolean;
  /** Set where a passing error outlasted every attempt: the platform may be down. */
  readonly gaveUp?: PlatformError;
}

export interface ExtractOptions {
  /** A passing error that outlasted every attempt is kept as a failure, or thrown for the queue to try again. */
  readonly onTransient?: "keep" | "throw";
  /** What is stored is in doubt, so all of it is compared with the answer. */
  readonly isRepair?: boolean | undefined;
  /**
   * Answers by workspace that were sent at this instant (epoch milliseconds) or later are believed by each other dimension too, since
   * traces are conserved: where they have no traces, there are none. Default: each dimension is asked for.
   */
  readonly workspacesSince?: number | undefined;
  /** Whether what still adds up to these answers is not asked for, until it is as old as `refreshAfterMs` allows. */
  readonly isRoutine?: boolean | undefined;
  /** The task's row, which ends with the answer that settles it: one that is loaded, or older than what is stored. */
  readonly row?: StoredTask | undefined;
}

/**
 * Fetches one task and replaces its window.
 *
 * What cannot be loaded is kept as a failure, split, or planned in a finer stride (docs/rules.md, rules 8 and
 * 12). Throws only where the source as a whole must stop: a refused key, an aborted signal, a store that fails.
 */
export async function extractTask(
  source: OpenSource,
  task: UsageRequest,
  { onTransient = "keep", isRepair, workspacesSince: since, isRoutine = false, row }: ExtractOptions = {},
): Promise<TaskResult> {
  const known =
    since === undefined ? undefined : await withoutRequest(source, task, { since, isRoutine, row });
  if (known !== undefined) return known;
  let requests = 0;
  const load = (confirms?: Load["confirms"]) =>
    loadTask(source, task, { onAttempt: () => requests++, isRepair, row, confirms });
  const notLoaded = async (stamp: FetchStamp, step: NextStep): Promise<TaskResult> => {
    const followUps = await takeNextStep(source, task, { stamp, step });
    const { outcome, code, message, keep } = step;
    return { outcome, requests, rows: NO_ROWS, followUps, code, message, keepsFailure: keep };
  };
  await source.access.fresh();
  let last = await load();
  if (last.loaded?.outcome === "unconfirmed" && task.meter !== "traces") {
    // A server may have been updated to one that counts it no more, and answers zero for ever.
    const counted = await learnMeters(source, new Set([task.meter]));
    if (!source.meters.has(task.meter)) return { ...ENDED, requests };
    if (!counted.has(task.meter)) return notLoaded(last.stamp, DOUBTFUL);
  }
  if (last.loaded?.outcome === "unconfirmed") {
    // The answer would remove every non-zero row. That needs a second answer, and proof of access newer than the first.
    const { fullyDeleted } = last.loaded;
    await source.access.renew();
    last = await load({ fullyDeleted, since: last.stamp.fetchedAt });
  }
  const { loaded, refusal } = last;
  if (loaded !== undefined && loaded.outcome !== "unconfirmed") {
    source.splitLimit.usable();
    await forget(source, `no_${task.window.stride}`);
    return { outcome: loaded.outcome, requests, rows: rowsOf(last), followUps: [] };
  }
  if (refusal?.retryable && onTransient === "throw") throw refusal;
  const result = await notLoaded(last.stamp, nextStep(source, task, last));
  return refusal?.retryable ? { ...result, gaveUp: refusal } : result;
}

/**
 * Ends a task that needs no request, because of answers by workspace. Undefined: there are none of that age, or they do not say enough.
 */
async function withoutRequest(
  source: OpenSource,
  task: UsageRequest,
  { since, isRoutine, row }: { since: number; isRoutine: boolean; row: StoredTask | undefined },
): Promise<TaskResult | undefined> {
  const { store, log } = source;
  const { meter, groupBy, window } = task;
  const [scopeId] = scopeIdsOf(task);
  const [workspaceId] = workspaceIdsOf(task);
  if (groupBy === "workspace" || METER[meter].kind !== "traces") return undefined;
  if (scopeId === undefined || workspaceId === undefined) return undefined;
  const others = [{ scopeId, groupBy, workspaceId }];
  const settled = await settleByWorkspace(source, { meter, window, others, since, isRoutine });
  const ended = settled.get(scopeId);
  if (ended === undefined) return undefined;
  log.debug({ task: describe(task), outcome: ended.outcome, byWorkspace: ended.fetchNumber }, "task");
  if (row !== undefined) await endTask(store.db, { task: row, state: "done" });
  return { outcome: ended.outcome, rows: NO_ROWS, requests: 0, followUps: [] };
}

/** More ids of one answer are asked for in parts: each takes about 1 KB of memory until it is stored. */
const MOST_KEYS = 100_000;

/** An answer that was loaded, one that cannot be used, or none. */
type Answered = { readonly stamp: FetchStamp } & (
  | {
      readonly loaded: LoadResult;
      readonly records: number;
      readonly traces: number;
      readonly flaw?: never;
      readonly refusal?: never;
    }
  | { readonly flaw: AnswerFlaw; readonly loaded?: never; readonly refusal?: never }
  | { readonly refusal: PlatformError; readonly loaded?: never; readonly flaw?: never }
);

async function loadTask(
  source: OpenSource,
  task: UsageRequest,
  {
    onAttempt,
    row,
    isRepair,
    confirms,
  }: { onAttempt: () => void; row: StoredTask | undefined } & Pick<Load, "isRepair" | "confirms">,
): Promise<Answered> {
  const { store, sourceId, settings, log } = source;
  const { meter, groupBy, window } = task;
  const admit = withEmailPolicy(groupBy, settings.userEmail);
  let lastStamp: FetchStamp | undefined;
  const noteAttempt = (stamp: FetchStamp) => {
    lastStamp = stamp;
    onAttempt();
  };
  try {
    return await askUsage<Answered>(
      source,
      { purpose: "load", request: task, onAttempt: noteAttempt },
      async ({ stamp }) => {
        // Where nothing may be split any more, a bound would only refuse what can be loaded.
        const mostKeys = canSplit(task) && source.splitLimit.allows() ? MOST_KEYS : undefined;
        const settleAfterMs = await settleAfterIn(source, meter);
        const { answer, flaw, rules } = await collectAnswer(source, task, { admit, mostKeys });
        if (flaw !== undefined) return { outcome: "refused", code: flaw.code, result: { stamp, flaw } };
        const loaded = await loadAnswer(store, {
          sourceId,
          meter,
          groupBy,
          window,
          stamp,
          scopeIds: scopeIdsOf(task),
          answer,
          rules,
          settleAfterMs,
          isRepair,
          confirms,
        });
        const { records } = answer;
        // The measures of deployment usage are never added up.
        const traces = METER[meter].kind === "traces" ? answer.traces : 0;
        log.debug({ task: describe(task), fetch: stamp.fetchNumber, ...loaded }, "task");
        const ends =
          row !== undefined && isFinalBy(loaded) ? { task: row, state: "done" as const } : undefined;
        const result = { stamp, loaded, records, traces };
        return { outcome: loaded.outcome, records, traces, task: ends, result };
      },
    );
  } catch (error) {
    if (lastStamp === undefined || !(error instanceof PlatformError)) throw error;
    if (isKeyRefused(error, task.meter)) throw error;
    return { stamp: lastStamp, refusal: error };
  }
}

/** Whether nothing is left to be done about the task. */
export function isFinalBy({ outcome }: Pick<TaskResult | LoadResult, "outcome">): boolean {
  return outcome === "loaded" || outcome === "discarded" || outcome === "unchanged";
}

function rowsOf({ loaded, records, traces }: Extract<Answered, { loaded: LoadResult }>): RowCounts {
  const { inserted, updated, retired, unchanged, restated, unverified } = loaded;
  return {
    records,
    traces,
    inserted,
    updated,
    retired,
    unchanged,
    restated,
    unverified: unverified.length,
  };
}

/** Nothing was replaced: what was counted before stays. */
const ENDED = {
  outcome: "not_available",
  rows: NO_ROWS,
  followUps: [],
  code: "meter_not_available",
  message: "the server counts this usage no more",
} as const;

/** Nothing was replaced. Which answer is right is not known, so the window is kept as a failure until one is loaded. */
const CONTRADICTED: NextStep = {
  outcome: "failed",
  code: "window_unconfirmed",
  message: "two answers in a row were empty for different workspaces; neither was stored",
  parts: [],
  keep: true,
};

/** The same, of usage that the server may count no more. */
const DOUBTFUL: NextStep = {
  outcome: "failed",
  code: "meter_doubtful",
  message:
    "the answer has no usage where some was counted, and it is not known whether the server still counts it; nothing was stored",
  parts: [],
  keep: true,
};

function nextStep(source: OpenSource, task: UsageRequest, last: Answered): NextStep {
  const maySplit = source.splitLimit.allows();
  if (last.flaw !== undefined) return afterFlaw(task, last.flaw, maySplit, source.capabilities);
  if (last.refusal !== undefined) return afterRefusal(task, last.refusal, last.stamp.fetchedAt, maySplit);
  return CONTRADICTED;
}

async function forget(source: OpenSource, capability: ServerCapability): Promise<void> {
  if (source.capabilities.delete(capability))
    await forgetCapability(source.store.db, { sourceId: source.sourceId, capability });
}

/**
 * Whether a task is dropped since the server does not answer in its stride. Once a day one task is let through: it
 * uses up the stride's retry.
 */
export function isStrideRefused(
  { capabilities, strideRetries }: Pick<OpenSource, "capabilities" | "strideRetries">,
  { window }: Pick<UsageRequest, "window">,
): boolean {
  const capability = `no_${window.stride}` as const;
  const isRetry = strideRetries.delete(capability);
  return capabilities.has(capability) && !isRetry;
}
