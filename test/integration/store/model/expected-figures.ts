import { HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import type { GroupBy } from "../../../../src/core/domain/usage/record.ts";
import type { Model } from "./model.ts";

export function label(id: string): string {
  return id === "" ? "(none)" : id;
}

export interface Figure {
  readonly status: string;
  readonly final: boolean;
  readonly fetchedAt?: number | undefined;
  readonly traces?: ReadonlyMap<string, number> | undefined;
}

export type Cell = { groupBy: GroupBy; workspaceId: string };

export function hoursOf(day: number): number[] {
  return Array.from({ length: 24 }, (_, i) => day + i * HOUR_MS);
}

/** The day's own record, or the sum of its 24 hours if the day is neither loaded nor unverified. */
export function dayFigure(model: Model, { groupBy, workspaceId }: Cell, day: number): Figure {
  const own = model.scope(workspaceId, groupBy, "day");
  const hours = hoursOf(day).flatMap((t) => model.scope(workspaceId, groupBy, "hour").buckets.get(t) ?? []);
  const standIn = hours.length === 24 && own.failures.get(day)?.state !== "unverified" ? hours : [];
  const parts = own.buckets.has(day) ? [own.buckets.get(day) ?? []].flat() : standIn;
  const traces = new Map<string, number>();
  for (const part of parts) for (const [id, n] of part.traces) traces.set(id, (traces.get(id) ?? 0) + n);
  const loaded = parts.length > 0 && {
    final: parts.every((part) => part.final),
    fetchedAt: Math.min(...parts.map((part) => part.fetchedAt)),
    traces,
  };
  return withStatus(loaded, own.failures.get(day)?.state, model.capabilities.has("no_day"));
}

export function hourFigure(model: Model, { groupBy, workspaceId }: Cell, hour: number): Figure {
  const scope = model.scope(workspaceId, groupBy, "hour");
  const loaded = scope.buckets.get(hour) ?? false;
  return withStatus(loaded, scope.failures.get(hour)?.state, model.capabilities.has("no_hour"));
}

/** The first status that applies (rule 10 of docs/rules.md). The figures distinguish `empty` from `ok`. */
function withStatus(
  loaded: Omit<Figure, "status"> | false,
  failure: string | undefined,
  isUnavailable: boolean,
): Figure {
  const isFinal = (loaded || { final: false }).final;
  const first = (): string => {
    if (!loaded && isUnavailable) return "not_available";
    if (failure === "failed") return "failed";
    if (!loaded && failure === undefined) return "missing";
    if (failure === "unverified") return "unverified";
    return isFinal ? "ok" : "provisional";
  };
  return { ...(loaded || { final: false }), status: first() };
}
