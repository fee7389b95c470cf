import { intersect, subtract, totalMs } from "../../domain/time/intervals.ts";
import { DAY_MS, floorToGrid, HOUR_MS, type Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import type { OpenSource } from "../source/source.ts";

/** Parts of a range that were not compared, because they are not final: hours x scopes for hours, else days x scopes. */
export interface NotCompared {
  /** May still change, or too young to be final. */
  readonly provisional: number;
  /** Not loaded: the last answer could not be used, or access was not proven. */
  readonly failed: number;
  /** Not loaded, although a sync keeps it. */
  readonly missing: number;
  /** Not loaded, and no sync keeps it: old hours, weeks and longer buckets. */
  readonly notKept: number;
  /** The server does not answer in this stride, or does not count it. */
  readonly notAvailable: number;
}

/** What is not final of the ended time that was asked about, as the store knows it now. */
export function notCompared(
  { settings, dataStart }: Pick<OpenSource, "settings" | "dataStart">,
  states: readonly ScopeState[],
  asked: {
    stride: Stride;
    partsOf: (state: ScopeState) => readonly Interval[];
    now: number;
    isAvailable: boolean;
    isKept: boolean;
  },
): NotCompared {
  const { stride, now, isAvailable, isKept } = asked;
  const unit = stride === "hour" ? HOUR_MS : DAY_MS;
  const ended = { start: dataStart, end: floorToGrid(now, unit) };
  const young = { start: floorToGrid(now - settings.settleAfterMs, DAY_MS), end: Infinity };
  const keptFrom = stride === "hour" ? floorToGrid(now - settings.hourlyForMs, DAY_MS) : dataStart;
  const kept = isKept ? [{ start: keptFrom, end: Infinity }] : [];
  const count = { provisional: 0, failed: 0, missing: 0, notKept: 0, notAvailable: 0 };
  for (const state of states) {
    const { coverage, failures } = state;
    const final = coverage.filter((loaded) => loaded.final);
    const open = subtract(intersect(asked.partsOf(state), [ended]), final);
    const failed = intersect(subtract(open, coverage), failures);
    const unloaded = subtract(subtract(open, coverage), failures);
    const missing = intersect(unloaded, kept);
    const due = subtract(missing, [young]);
    count.failed += totalMs(failed) / unit;
    count.notKept += totalMs(subtract(unloaded, missing)) / unit;
    count[isAvailable ? "missing" : "notAvailable"] += totalMs(isAvailable ? due : missing) / unit;
    count.provisional +=
      totalMs(intersect(open, isAvailable ? [...coverage, ...intersect(missing, [young])] : coverage)) / unit;
  }
  return count;
}
