import { PlatformError } from "../../base/errors.ts";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { scopeIdsOf, type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import { METER } from "../../domain/usage/meter.ts";
import type { ResponseProblem } from "../../domain/usage/response.ts";
import { type Load, type LoadResult, loadResponse } from "../../store/load/load.ts";
import { endTask, type StoredTask } from "../../store/work/tasks.ts";
import { addUpResponse, fetchUsage } from "../source/fetch-usage.ts";
import { learnMeters } from "../source/learn-meters.ts";
import { isKeyRefused } from "../source/refused-key.ts";
import { type OpenSource, settleAfterIn } from "../source/source.ts";
import { skipByWorkspace } from "./by-workspace.ts";
import {
  afterProblem,
  afterRefusal,
  canSplit,
  describe,
  type NextStep,
  takeNextStep,
} from "./split-or-fail.ts";
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
export type RowCounts = Readonly<typeof NO_ROWS>;

export interface TaskResult {
  /** `unchanged`: no request was sent, because the stored figures still match the workspace counts. */
  readonly outcome: LoadResult["outcome"] | "unchanged" | "split" | "failed" | "not_available";
  readonly requests: number;
  readonly rows: RowCounts;
  readonly followUps: readonly UsageRequest[];
  readonly code?: string;
  readonly message?: string;
  readonly keepsFailure?: boolean;
  readonly gaveUp?: PlatformError;
}

export interface ExtractOptions {
  /** After the last attempt of a transient error, `keep` stores a failure, `throw` lets the queue retry. */
  readonly onTransient?: "keep" | "throw";
  readonly isRepair?: boolean | undefined;
  /**
   * Workspace responses sent at or after this instant (epoch ms) can make the task needless. Undefined: the task is always
   * requested.
   */
  readonly workspacesSince?: number | undefined;
  /** True: figures that match the workspace counts are requested only if older than `refreshAfterMs`. */
  readonly isRoutine?: boolean | undefined;
  /** Row of the task. The task ends with its fetch if the response is loaded, or is older than the stored one. */
  readonly row?: StoredTask | undefined;
}

/**
 * Fetches one task and replaces its window. Time that cannot be loaded is kept as a failure, split, or planned in a finer
 * stride (docs/rules.md, rules 8 and 12). Throws only if the whole source must stop: a refused key, an aborted signal, a
 * store that fails.
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
  const notLoaded = async (fetchToken: FetchToken, step: NextStep): Promise<TaskResult> => {
    const followUps = await takeNextStep(source, task, { fetchToken, step });
    const { outcome, code, message, keep } = step;
    return { outcome, requests, rows: NO_ROWS, followUps, code, message, keepsFailure: keep };
  };
  await source.access.fresh();
  let last = await load();
  if (last.loaded?.outcome === "unconfirmed" && task.meter !== "traces") {
    // A server that was updated may no longer count the meter and respond with zeros forever.
    const counted = await learnMeters(source, new Set([task.meter]));
    if (!source.meters.has(task.meter)) return { ...ENDED, requests };
    if (!counted.has(task.meter)) return notLoaded(last.fetchToken, DOUBTFUL);
  }
  if (last.loaded?.outcome === "unconfirmed") {
    // The response would remove every non-zero row. A second one must agree, with proof of access newer than the first
    // response.
    const { fullyDeleted } = last.loaded;
    await source.access.renew();
    last = await load({ fullyDeleted, since: last.fetchToken.fetchedAt });
  }
  const { loaded, refusal } = last;
  if (loaded !== undefined && loaded.outcome !== "unconfirmed") {
    source.splitLimit.usable();
    await source.server.respondsIn(task.window.stride);
    return { outcome: loaded.outcome, requests, rows: rowsOf(last), followUps: [] };
  }
  if (refusal?.retryable && onTransient === "throw") throw refusal;
  const result = await notLoaded(last.fetchToken, nextStep(source, task, last));
  return refusal?.retryable ? { ...result, gaveUp: refusal } : result;
}

/** Ends a task that newer workspace responses make needless. Undefined if the task still needs its request. */
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
  const skipped = await skipByWorkspace(source, { meter, window, others, since, isRoutine });
  const ended = skipped.get(scopeId);
  if (ended === undefined) return undefined;
  log.debug({ task: describe(task), outcome: ended.outcome, byWorkspace: ended.fetchNumber }, "task");
  if (row !== undefined) await endTask(store.db, { task: row, state: "done" });
  return { outcome: ended.outcome, rows: NO_ROWS, requests: 0, followUps: [] };
}

/** Most ids in one response. If a response has more, its task is split where possible. */
const MOST_KEYS_AT_ONCE = 100_000;

type Responded = { readonly fetchToken: FetchToken } & (
  | {
      readonly loaded: LoadResult;
      readonly records: number;
      readonly traces: number;
      readonly problem?: never;
      readonly refusal?: never;
    }
  | { readonly problem: ResponseProblem; readonly loaded?: never; readonly refusal?: never }
  | { readonly refusal: PlatformError; readonly loaded?: never; readonly problem?: never }
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
): Promise<Responded> {
  const { store, sourceId, settings, log } = source;
  const { meter, groupBy, window } = task;
  const admit = withEmailPolicy(groupBy, settings.userEmail);
  let lastFetchToken: FetchToken | undefined;
  const noteAttempt = (fetchToken: FetchToken) => {
    lastFetchToken = fetchToken;
    onAttempt();
  };
  try {
    return await fetchUsage<Responded>(
      source,
      { purpose: "load", request: task, onAttempt: noteAttempt },
      async ({ fetchToken }) => {
        const mostKeys = canSplit(task) && source.splitLimit.allows() ? MOST_KEYS_AT_ONCE : undefined;
        const settleAfterMs = await settleAfterIn(source, meter);
        const { response, problem, rules } = await addUpResponse(source, task, { admit, mostKeys });
        if (problem !== undefined)
          return { outcome: "refused", code: problem.code, result: { fetchToken, problem } };
        const loaded = await loadResponse(store, {
          sourceId,
          meter,
          groupBy,
          window,
          fetchToken,
          scopeIds: scopeIdsOf(task),
          response,
          rules,
          settleAfterMs,
          isRepair,
          confirms,
        });
        const { records } = response;
        const traces = METER[meter].kind === "traces" ? response.traces : 0;
        log.debug({ task: describe(task), fetch: fetchToken.fetchNumber, ...loaded }, "task");
        const ends =
          row !== undefined && isFinalBy(loaded) ? { task: row, state: "done" as const } : undefined;
        const result = { fetchToken, loaded, records, traces };
        return { outcome: loaded.outcome, records, traces, task: ends, result };
      },
    );
  } catch (error) {
    if (lastFetchToken === undefined || !(error instanceof PlatformError)) throw error;
    if (isKeyRefused(error, task.meter)) throw error;
    return { fetchToken: lastFetchToken, refusal: error };
  }
}

export function isFinalBy({ outcome }: Pick<TaskResult | LoadResult, "outcome">): boolean {
  return outcome === "loaded" || outcome === "discarded" || outcome === "unchanged";
}

function rowsOf({ loaded, records, traces }: Extract<Responded, { loaded: LoadResult }>): RowCounts {
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

/** The server no longer counts the meter. Earlier counts stay. */
const ENDED = {
  outcome: "not_available",
  rows: NO_ROWS,
  followUps: [],
  code: "meter_not_available",
  message: "the server no longer counts this usage",
} as const;

/** Two responses contradict each other, so nothing is stored. The window is a failure until a response is loaded. */
const CONTRADICTED: NextStep = {
  outcome: "failed",
  code: "window_unconfirmed",
  message: "two responses in a row were empty for different workspaces; neither was stored",
  parts: [],
  keep: true,
};

/** The server may no longer count this usage, so nothing is stored. The window is kept as a failure. */
const DOUBTFUL: NextStep = {
  outcome: "failed",
  code: "meter_doubtful",
  message:
    "the response has no usage where some was counted, and it is not known whether the server still counts it; nothing was stored",
  parts: [],
  keep: true,
};

function nextStep(source: OpenSource, task: UsageRequest, last: Responded): NextStep {
  const maySplit = source.splitLimit.allows();
  if (last.problem !== undefined) return afterProblem(task, last.problem, maySplit, source.capabilities);
  if (last.refusal !== undefined)
    return afterRefusal(task, last.refusal, last.fetchToken.fetchedAt, maySplit);
  return CONTRADICTED;
}
