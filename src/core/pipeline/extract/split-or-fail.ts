import type { PlatformError } from "../../base/errors.ts";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import {
  halvesByMember,
  scopeIdsOf,
  type UnstoredRequest,
  type UsageRequest,
  workspaceIdsOf,
} from "../../domain/planning/request.ts";
import { planWindows } from "../../domain/planning/windows.ts";
import {
  DAY_MS,
  finerStride,
  floorToGrid,
  HOUR_MS,
  STRIDE_MS,
  type Stride,
} from "../../domain/time/stride.ts";
import type { Window } from "../../domain/time/window.ts";
import type { ResponseProblem } from "../../domain/usage/response.ts";
import { failScopes } from "../../store/catalog/failures.ts";
import { scopesOf } from "../../store/catalog/scopes.ts";
import type { ServerCapability } from "../../store/catalog/server-capabilities.ts";
import type { LearnableMeter } from "../../store/catalog/source-meters.ts";
import { isMeterRefused } from "../source/refused-key.ts";
import type { OpenSource } from "../source/source.ts";

/**
 * Takes the next step of a task that was not loaded, such as to learn a capability or keep a failure. Returns the requests
 * that replace the task.
 */
export async function takeNextStep(
  source: OpenSource,
  task: UsageRequest,
  { fetchToken, step }: { fetchToken: FetchToken; step: NextStep },
): Promise<UsageRequest[]> {
  const { store, log } = source;
  const { code, message, outcome } = step;
  source.splitLimit.refused();
  // A server without hours is normal, so this is logged only once and not as a warning.
  if (step.learn !== "no_hour") {
    log.warn({ task: describe(task), code, reason: message, outcome }, "task not loaded");
  } else if (!source.capabilities.has("no_hour")) {
    log.info({ code, reason: message }, "The server does not support hours. Only days are loaded.");
  }
  if (step.learn !== undefined) await source.server.lacks(step.learn, message);
  if (step.ends !== undefined) await source.server.mayCountNoMore(step.ends, message);
  if (step.keep) {
    const failure = { scopeIds: scopeIdsOf(task), period: task.window, fetchToken };
    await failScopes(store, { ...failure, state: "failed", code, message });
  }
  return Promise.all(step.parts.map((part) => withScopes(source, part)));
}

async function withScopes({ store, sourceId }: OpenSource, part: UnstoredRequest): Promise<UsageRequest> {
  const { meter, groupBy, window } = part;
  const workspaceIds = workspaceIdsOf(part);
  const { stride } = window;
  const scopeIds = await scopesOf(store.db, { sourceId, meter, groupBy, stride, workspaceIds });
  const members = workspaceIds.map((workspaceId, i) => ({ workspaceId, scopeId: scopeIds[i] as number }));
  return { meter, groupBy, window, members };
}

export function describe({ meter, groupBy, window, members }: UsageRequest): object {
  return {
    meter,
    groupBy,
    stride: window.stride,
    from: new Date(window.start).toISOString(),
    to: new Date(window.end).toISOString(),
    workspaces: members.length,
  };
}

export interface NextStep {
  readonly outcome: "split" | "failed" | "not_available";
  readonly code: string;
  readonly message: string;
  readonly parts: readonly UnstoredRequest[];
  /** True if the task's own scopes keep it as a failure, which is retried later. */
  readonly keep: boolean;
  readonly learn?: ServerCapability;
  /** Meter that the server no longer counts, according to this response. */
  readonly ends?: LearnableMeter;
}

/** Statuses that one workspace or one record may cause; 414 and 431 mean a URL that is too long. */
const SPLITTABLE = new Set([400, 413, 414, 422, 431]);

/**
 * The step after a complete response that cannot be used (docs/rules.md, rule 8). `lacks`: features that the server is known
 * to lack.
 */
export function afterProblem(
  task: UsageRequest,
  problem: ResponseProblem,
  maySplit: boolean,
  lacks: ReadonlySet<ServerCapability> = new Set(),
): NextStep {
  const { code, message } = problem;
  if (problem.kind === "record") return split(task, problem, maySplit);
  const finer = finerOf(task);
  if (finer !== undefined && !lacks.has(`no_${finer}`)) {
    const parts = over(task, planWindows(task.window, finer));
    return { outcome: "split", code, message, parts, keep: true };
  }
  // One misplaced bucket is a bad response. Only a response in another stride shows that the server has no hours.
  if (task.window.stride === "hour" && code === "stride_differs")
    return { outcome: "not_available", code, message, parts: [], keep: false, learn: "no_hour" };
  return { outcome: "failed", code, message, parts: [], keep: true };
}

function finerOf({ meter, window }: UsageRequest): Stride | undefined {
  const finer = finerStride(window.stride);
  return finer === "hour" && meter !== "traces" ? undefined : finer;
}

/** The step after a refused request, or a response that failed its schema (docs/rules.md, rule 12). */
export function afterRefusal(
  task: UsageRequest,
  error: PlatformError,
  now: number,
  maySplit: boolean,
): NextStep {
  const { code, message, status, locations } = error;
  const { start, end, stride } = task.window;
  if (task.meter !== "traces" && isMeterRefused(task.meter, error))
    return { outcome: "not_available", code, message, parts: [], keep: false, ends: task.meter };
  if (
    end > now &&
    (status === 400 || status === 422) &&
    locations.some((location) => location.includes("end_time"))
  ) {
    const pastEnd = floorToGrid(now, stride === "hour" ? HOUR_MS : DAY_MS);
    const parts = start < pastEnd ? over(task, planWindows({ start, end: pastEnd }, stride)) : [];
    return { outcome: "split", code, message, parts, keep: false, learn: "no_future_end" };
  }
  // An error without a location concerns the whole response, such as an HTML page: a smaller request would not help. It does
  // help if the response is too large. Otherwise the split limit ends this.
  const isTooLarge = code === "response_too_large";
  if (error.isAboutRecords || isTooLarge || (status !== undefined && SPLITTABLE.has(status))) {
    return split(task, { code, message }, maySplit);
  }
  return { outcome: "failed", code, message, parts: [], keep: true };
}

function split(task: UsageRequest, reason: { code: string; message: string }, maySplit: boolean): NextStep {
  const { code, message } = reason;
  const parts = maySplit ? halvesOf(task) : [];
  if (parts.length === 0) return { outcome: "failed", code, message, parts, keep: true };
  return { outcome: "split", code, message, parts, keep: false };
}

export function canSplit(task: UsageRequest): boolean {
  return halvesOf(task).length > 0;
}

function halvesOf(task: UsageRequest): UnstoredRequest[] {
  const { window, members } = task;
  if (members.length > 1) return halvesByMember(task);
  const bucketMs = STRIDE_MS[window.stride];
  const buckets = (window.end - window.start) / bucketMs;
  // The platform responds in another stride to half a window of weeks or longer buckets.
  if (buckets < 2 || bucketMs > DAY_MS) return [];
  const cut = window.start + Math.ceil(buckets / 2) * bucketMs;
  return over(task, [
    { ...window, end: cut },
    { ...window, start: cut },
  ]);
}

function over(task: UsageRequest, windows: readonly Window[]): UnstoredRequest[] {
  return windows.map((window) => ({ ...task, window }));
}
