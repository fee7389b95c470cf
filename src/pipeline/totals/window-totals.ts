import type { FetchStamp } from "../../domain/planning/coverage.ts";
import { HOUR_MS, STRIDE_MS, type Stride, strideOfRange } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { AnswerCollector } from "../../domain/usage/answer.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { PlatformError } from "../../errors.ts";
import { beginFetch, finishFetch } from "../../store/load/fetch-ledger.ts";
import type { ControlTotal } from "../../store/reconcile/control-totals.ts";
import { withRetries } from "../source/retry.ts";
import type { OpenSource } from "../source/source.ts";

/** What one request for totals asks for. `scopeIds[i]` is the day scope of `workspaceIds[i]`. */
export interface TotalsRequest {
  readonly groupBy: GroupBy;
  readonly window: Interval;
  readonly workspaceIds: readonly string[];
  readonly scopeIds: readonly number[];
}

export interface WindowTotals {
  readonly stamp: FetchStamp;
  readonly answer: AnswerCollector;
  /** The answer's buckets where they tile the window, else the window as a whole: its sum is right on any grid. */
  readonly parts: readonly Interval[];
  readonly totals: readonly ControlTotal[];
}

/** All of time, by the hour: where the platform puts its buckets is of no account for a sum. */
const ANY_GRID = { start: 0, end: 8.64e15, stride: "hour" } as const;

/** Asks for the totals of a window, whatever its buckets, and stores nothing. Throws what the client throws. */
export async function fetchTotals(source: OpenSource, request: TotalsRequest): Promise<WindowTotals> {
  const { groupBy, window, workspaceIds, scopeIds } = request;
  const stride = strideOfRange(window.end - window.start);
  return withRetries(source, async () => {
    await source.admit();
    const stamp = await beginFetch(source.store.db, {
      sourceId: source.sourceId,
      purpose: "reconcile",
      groupBy,
      window: { ...window, stride },
      workspaces: workspaceIds.length,
    });
    try {
      const answer = new AnswerCollector({ window: ANY_GRID, groupBy, workspaceIds });
      await source.billing.usage(
        { start: window.start, end: window.end, groupBy, workspaceIds },
        { signal: source.signal, onRecords: (records) => answer.add(records) },
      );
      const flaw = answer.flaw(ANY_GRID.stride);
      if (flaw !== undefined) {
        throw new PlatformError({
          code: flaw.code,
          method: "GET",
          url: source.config.baseUrl,
          message: `The totals by ${groupBy} cannot be used: ${flaw.message}.`,
          next: "Nothing was changed. `usage-etl doctor` shows what the server was seen to answer.",
        });
      }
      const { records, traces } = answer;
      await finishFetch(source.store.db, { ...stamp, outcome: "compared", records, traces });
      return { stamp, answer, ...totalsOf(answer, { window, stride, scopeIds }) };
    } catch (error) {
      if (error instanceof PlatformError) {
        const { code, status } = error;
        await finishFetch(source.store.db, { ...stamp, outcome: "failed", code, status });
      }
      throw error;
    }
  });
}

function totalsOf(
  answer: AnswerCollector,
  { window, stride, scopeIds }: { window: Interval; stride: Stride; scopeIds: readonly number[] },
): Pick<WindowTotals, "parts" | "totals"> {
  const keys = answer.keys.map((_, key) => key);
  const size = STRIDE_MS[stride];
  let tiles = (window.end - window.start) % size === 0;
  for (const { bucketHour } of answer.rows(keys)) {
    const at = bucketHour * HOUR_MS;
    if (at < window.start || at >= window.end || (at - window.start) % size !== 0) tiles = false;
  }
  const partLength = tiles ? size : window.end - window.start;
  const parts = Array.from({ length: (window.end - window.start) / partLength }, (_, n) => ({
    start: window.start + n * partLength,
    end: window.start + (n + 1) * partLength,
  }));
  const totals: ControlTotal[] = [];
  for (const { seriesId, bucketHour, traces } of answer.rows(keys)) {
    const key = answer.keys[seriesId];
    if (key === undefined) continue;
    const part = tiles ? (bucketHour * HOUR_MS - window.start) / size : 0;
    totals.push({ scopeId: scopeIds[key.workspace] as number, part, dimensionId: key.dimensionId, traces });
  }
  return { parts, totals };
}
