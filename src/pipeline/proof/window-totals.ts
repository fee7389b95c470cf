import type { Member, UsageRequest } from "../../domain/planning/request.ts";
import { HOUR_MS, STRIDE_MS } from "../../domain/time/stride.ts";
import type { AnswerCollector } from "../../domain/usage/answer.ts";
import type { ControlTotal } from "../../store/proof/control-totals.ts";
import { askUsage, collectUsable } from "../source/ask.ts";
import type { OpenSource } from "../source/source.ts";

/** All of time, by the hour: a sum does not depend on where the platform puts its buckets. */
const ANY_GRID = { start: 0, end: 8.64e15, stride: "hour" } as const;

/** Asks for the totals of a window and stores nothing. The scopes of the members are their day scopes. */
export async function fetchTotals(source: OpenSource, request: UsageRequest) {
  return askUsage(source, { purpose: "reconcile", request }, async ({ stamp }) => {
    const answer = await collectUsable(source, request, ANY_GRID);
    const { records, traces } = answer;
    const result = { stamp, answer, ...totalsOf(answer, request) };
    return { outcome: "compared", records, traces, result };
  });
}

/** `parts`: the answer's buckets where they tile the window, else the window as a whole: its sum is right on any grid. */
function totalsOf(answer: AnswerCollector, { window, members }: UsageRequest) {
  const { start, end } = window;
  const size = STRIDE_MS[window.stride];
  let tiles = (end - start) % size === 0;
  for (const { bucketHour } of answer.rows()) {
    const at = bucketHour * HOUR_MS;
    if (at < start || at >= end || (at - start) % size !== 0) tiles = false;
  }
  const length = tiles ? size : end - start;
  const parts = Array.from({ length: (end - start) / length }, (_, n) => ({
    start: start + n * length,
    end: start + (n + 1) * length,
  }));
  const totals: ControlTotal[] = [];
  for (const { id: key, bucketHour, traces } of answer.rows()) {
    const { workspace, dimensionId, measure } = answer.keys.at(key);
    const { scopeId } = members[workspace] as Member;
    const part = tiles ? (bucketHour * HOUR_MS - start) / size : 0;
    totals.push({ scopeId, part, dimensionId, measure, traces });
  }
  return { parts, totals };
}
