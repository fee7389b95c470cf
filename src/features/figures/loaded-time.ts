import { type Days, intervalOf, monthsOfDays } from "../../core/domain/time/days.ts";
import { intersect, subtract } from "../../core/domain/time/intervals.ts";
import { DAY_MS, HOUR_MS } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import type { LoadedWorkspace } from "../../core/store/figures/loaded.ts";
import type { Per } from "../../core/store/figures/records.ts";

export interface Bucket extends Interval {
  readonly at: string;
}

export function bucketsOf({ from, to }: Days, per: Per): Bucket[] {
  const { start, end } = intervalOf({ from, to });
  if (start >= end) return [];
  if (per === "month") {
    return monthsOfDays({ from, to }).map((month) => ({
      at: month.from,
      start: Math.max(Date.parse(month.from), start),
      end: Math.min(Date.parse(month.to), end),
    }));
  }
  const step = per === "day" ? DAY_MS : HOUR_MS;
  return Array.from({ length: Math.round((end - start) / step) }, (_, n) => {
    const iso = new Date(start + n * step).toISOString();
    return {
      at: per === "day" ? iso.slice(0, 10) : `${iso.slice(0, 19)}Z`,
      start: start + n * step,
      end: start + (n + 1) * step,
    };
  });
}

export interface State {
  /** All of the interval that has ended is loaded. */
  readonly isComplete: boolean;
  readonly isFinal: boolean;
  /** The figure is final, and equals the export or totals. */
  readonly isProved: boolean;
  readonly isUnderWay: boolean;
  /** For costs: true if some usage has no price. Then `isComplete` is false. */
  readonly isUnpriced?: boolean;
}

export class LoadedTime {
  readonly loaded: readonly Interval[];
  readonly #final: readonly Interval[];
  readonly #proved: readonly Interval[];
  readonly #ended: number;

  constructor(
    workspaces: readonly Pick<LoadedWorkspace, "loaded" | "final" | "proved">[],
    { now, per }: { now: number; per: Per },
  ) {
    const shared = (of: "loaded" | "final" | "proved") =>
      workspaces
        .map((one) => one[of])
        .reduce<readonly Interval[] | undefined>(
          (all, one) => (all === undefined ? one : intersect(all, one)),
          undefined,
        ) ?? [];
    this.loaded = shared("loaded");
    this.#final = shared("final");
    this.#proved = shared("proved");
    const step = per === "hour" ? HOUR_MS : DAY_MS;
    this.#ended = Math.floor(now / step) * step;
  }

  stateOf({ start, end }: Interval): State {
    const isUnderWay = end > this.#ended;
    const ended = { start, end: Math.min(end, this.#ended) };
    // If no part of the interval has ended, it is complete once its beginning is loaded.
    const isComplete =
      ended.start < ended.end
        ? covers(this.loaded, ended)
        : this.loaded.some((one) => one.start <= start && one.end > start);
    const isPast = isComplete && !isUnderWay;
    return {
      isComplete,
      isFinal: isPast && covers(this.#final, { start, end }),
      isProved: isPast && covers(this.#proved, { start, end }),
      isUnderWay,
    };
  }

  missingIn({ start, end }: Interval): Interval[] {
    return subtract([{ start, end: Math.min(end, this.#ended) }], this.loaded);
  }

  provisionalIn(range: Interval): Interval[] {
    return subtract(intersect([range], this.loaded), this.#final);
  }
}

function covers(intervals: readonly Interval[], { start, end }: Interval): boolean {
  return intervals.some((one) => one.start <= start && end <= one.end);
}
