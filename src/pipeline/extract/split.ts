import type { Slice } from "../../domain/planning/slice.ts";
import { planWindows } from "../../domain/planning/windows.ts";
import { DAY_MS, finerStride, floorToGrid, HOUR_MS, STRIDE_MS } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import type { AnswerFlaw } from "../../domain/usage/answer.ts";
import type { PlatformError } from "../../errors.ts";
import type { ServerCapability } from "../../store/catalog/server-capabilities.ts";

/** A part of a slice that takes its place. */
interface SlicePart {
  readonly window: Window;
  readonly workspaceIds: readonly string[];
}

/** What to do about a slice that could not be loaded. */
export interface NextStep {
  readonly outcome: "split" | "failed" | "not_available";
  readonly code: string;
  readonly message: string;
  readonly parts: readonly SlicePart[];
  /** Whether the slice's own scopes keep it as a failure, to be asked again later. */
  readonly keep: boolean;
  readonly learn?: ServerCapability;
}

/** Statuses that may be one workspace's or one record's fault; 414 and 431 are an address that is too long. */
const SPLITTABLE = new Set([400, 413, 414, 422, 431]);

/** After an answer that is whole but cannot be used (rule 8). */
export function afterFlaw(slice: Slice, flaw: AnswerFlaw, maySplit: boolean): NextStep {
  const { code, message } = flaw;
  if (flaw.kind === "record") return split(slice, flaw, maySplit);
  const finer = finerStride(slice.window.stride);
  if (finer !== undefined) {
    const parts = planWindows(slice.window, finer).map((window) => ({
      window,
      workspaceIds: slice.workspaceIds,
    }));
    return { outcome: "split", code, message, parts, keep: true };
  }
  // One misplaced bucket is a bad answer; only another stride says that the server has no hours.
  if (code === "stride_differs")
    return { outcome: "not_available", code, message, parts: [], keep: false, learn: "no_hour" };
  return { outcome: "failed", code, message, parts: [], keep: true };
}

/** After a request that the platform refused, or whose answer failed its schema (rule 12). */
export function afterRefusal(slice: Slice, error: PlatformError, now: number, maySplit: boolean): NextStep {
  const { code, message, status } = error;
  const endsInFuture = slice.window.end > now;
  if (
    endsInFuture &&
    (status === 400 || status === 422) &&
    error.locations.some((at) => at.includes("end_time"))
  ) {
    const end = floorToGrid(now, slice.window.stride === "hour" ? HOUR_MS : DAY_MS);
    const past: Interval = { start: slice.window.start, end };
    const windows = past.start < past.end ? planWindows(past, slice.window.stride) : [];
    const parts = windows.map((window) => ({ window, workspaceIds: slice.workspaceIds }));
    return { outcome: "split", code, message, parts, keep: false, learn: "no_future_end" };
  }
  // Without a location the whole answer is foreign, an HTML page say, and less of it would be no better.
  const isOneRecord = code === "answer_invalid" && error.locations.length > 0;
  if (isOneRecord || (status !== undefined && SPLITTABLE.has(status))) {
    return split(slice, { code, message }, maySplit);
  }
  return { outcome: "failed", code, message, parts: [], keep: true };
}

/** By workspace, then by time, down to one bucket: one bad record costs one bucket. */
function split(slice: Slice, reason: { code: string; message: string }, maySplit: boolean): NextStep {
  const { window, workspaceIds } = slice;
  const { code, message } = reason;
  const parts = maySplit
    ? [...halvesByWorkspace(window, workspaceIds), ...halvesByTime(window, workspaceIds)]
    : [];
  if (parts.length === 0) return { outcome: "failed", code, message, parts, keep: true };
  return { outcome: "split", code, message, parts, keep: false };
}

function halvesByWorkspace(window: Window, workspaceIds: readonly string[]): SlicePart[] {
  if (workspaceIds.length < 2) return [];
  const half = Math.ceil(workspaceIds.length / 2);
  return [workspaceIds.slice(0, half), workspaceIds.slice(half)].map((ids) => ({
    window,
    workspaceIds: ids,
  }));
}

function halvesByTime(window: Window, workspaceIds: readonly string[]): SlicePart[] {
  const bucketMs = STRIDE_MS[window.stride];
  const buckets = (window.end - window.start) / bucketMs;
  // Half a window of a coarser stride would be answered in another one.
  if (workspaceIds.length > 1 || buckets < 2 || bucketMs > DAY_MS) return [];
  const cut = window.start + Math.ceil(buckets / 2) * bucketMs;
  return [
    { window: { ...window, end: cut }, workspaceIds },
    { window: { ...window, start: cut }, workspaceIds },
  ];
}

/** Keeps a server that refuses everything from being asked for every bucket by itself. */
export interface SplitBudget {
  allows(): boolean;
  refused(): void;
  usable(): void;
}

/** Splitting is allowed until refusals outnumber 40 plus ten for each usable answer. */
export function createSplitBudget(): SplitBudget {
  let [refusals, answers] = [0, 0];
  return {
    allows: () => refusals < 40 + 10 * answers,
    refused: () => void refusals++,
    usable: () => void answers++,
  };
}
