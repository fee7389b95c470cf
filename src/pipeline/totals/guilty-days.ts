import { type Search, searchOf } from "../../domain/planning/control.ts";
import { DAY_MS, floorToGrid } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { PlatformError } from "../../errors.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import type { Finding } from "../../store/reconcile/control-findings.ts";
import { compareTotals, storedOnDays, type TotalDifference } from "../../store/reconcile/control-totals.ts";
import { isKeyRefused, type OpenSource } from "../source/source.ts";
import { fetchTotals } from "./window-totals.ts";

/** A part with more guilty days than this is shown as a whole: what is wrong with it is not one day. */
const MOST_REQUESTS = 40;

/** By id: what a total has more than the days have. Ids without a difference are left out. */
type Errors = ReadonlyMap<string, number>;

/**
 * Finds the days that make a total differ, by halving: a window that ends within the part tells whether the error lies
 * before its end. Takes 2 + log2(days) requests for one guilty day. Where the server's answers do not bear it (the
 * window beside the part is not free of errors, or they do not add up) the part is kept as a whole.
 */
export async function findGuiltyDays(
  source: OpenSource,
  given: {
    states: readonly ScopeState[];
    settled: Interval;
    standing: readonly TotalDifference[];
    /** All differences that were seen: a search leads through none of them. */
    dirty: readonly TotalDifference[];
  },
): Promise<{ findings: Finding[]; requests: number }> {
  const findings: Finding[] = [];
  let requests = 0;
  const parts = Map.groupBy(given.standing, (one) => `${one.scopeId} ${one.start} ${one.end}`);
  for (const differences of parts.values()) {
    const [{ scopeId, start, end }] = differences as [TotalDifference];
    const state = given.states.find((one) => one.scopeId === scopeId);
    const dirty = given.dirty.filter((one) => one.scopeId === scopeId);
    const search = searchOf({ start, end }, { settled: given.settled, dirty });
    const found =
      state === undefined || search === undefined
        ? undefined
        : await new PartSearch(source, { state, part: { start, end }, search, differences }).run(
            () => requests++,
          );
    findings.push(...(found ?? differences.map((one) => ({ ...one, ...DISAGREES }))));
  }
  return { findings, requests };
}

const DISAGREES = { kind: "stride_total", state: "platform_disagrees" } as const;

class PartSearch {
  readonly #source: OpenSource;
  readonly #state: ScopeState;
  readonly #part: Interval;
  readonly #search: Search;
  readonly #total: Errors;
  #left = MOST_REQUESTS;
  #count: () => void = () => {};

  constructor(
    source: OpenSource,
    about: { state: ScopeState; part: Interval; search: Search; differences: readonly TotalDifference[] },
  ) {
    this.#source = source;
    this.#state = about.state;
    this.#part = about.part;
    this.#search = about.search;
    this.#total = errorsOf(about.differences);
  }

  /** Undefined where the search came to nothing that can be believed. */
  async run(count: () => void): Promise<Finding[] | undefined> {
    this.#count = count;
    const { start, end } = this.#part;
    const isBackward = this.#search.direction === "backward";
    const beside = await this.#errorAt(isBackward ? start : end);
    if (beside === undefined || beside.size > 0) return undefined;
    // The windows of the search may be of another stride than the total that differs: they must see the error as well.
    const whole = await this.#errorAt(isBackward ? end : start);
    if (whole === undefined || !isSame(whole, this.#total)) return undefined;
    const days = await this.#between(start, end, new Map(), this.#total);
    if (days === undefined) return undefined;
    const stored = await storedOnDays(this.#source.store.db, this.#state.scopeId, days);
    const found = days.map((day, i) => ({
      ...DISAGREES,
      scopeId: this.#state.scopeId,
      dimensionId: day.dimensionId,
      start: day.start,
      end: day.start + DAY_MS,
      storedTraces: stored[i] ?? null,
      controlTraces: (stored[i] ?? 0) + day.error,
    }));
    return found.every((one) => one.controlTraces >= 0) ? found : undefined;
  }

  /** Errors of the days in `[from, to)`, given the errors of the part up to either end. */
  async #between(
    from: number,
    to: number,
    before: Errors,
    upTo: Errors,
  ): Promise<{ dimensionId: string; start: number; error: number }[] | undefined> {
    const differing = [...this.#total.keys()].filter((id) => (before.get(id) ?? 0) !== (upTo.get(id) ?? 0));
    if (differing.length === 0) return [];
    if (to - from === DAY_MS) {
      return differing.map((dimensionId) => ({
        dimensionId,
        start: from,
        error: (upTo.get(dimensionId) ?? 0) - (before.get(dimensionId) ?? 0),
      }));
    }
    const middle = from + floorToGrid((to - from) / 2, DAY_MS);
    const seen = await this.#errorAt(middle);
    if (seen === undefined) return undefined;
    const at = this.#search.direction === "backward" ? seen : minus(this.#total, seen);
    const left = await this.#between(from, middle, before, at);
    const right = left && (await this.#between(middle, to, at, upTo));
    return right && [...left, ...right];
  }

  /** Errors of the search's window at this day; undefined where nothing can be said. */
  async #errorAt(at: number): Promise<Errors | undefined> {
    if (this.#left-- === 0) return undefined;
    const { scopeId, groupBy, workspaceId } = this.#state;
    const window = this.#search.windowAt(at);
    const source = this.#source;
    try {
      await source.access.fresh();
      this.#count();
      const { stamp, totals } = await fetchTotals(source, {
        groupBy,
        window,
        workspaceIds: [workspaceId],
        scopeIds: [scopeId],
      });
      const compared = await compareTotals(source.store, {
        scopeIds: [scopeId],
        parts: [window],
        totals: totals.map((total) => ({ ...total, part: 0 })),
        stamp,
      });
      return compared.compared.length === 0 ? undefined : errorsOf(compared.differences);
    } catch (error) {
      if (!(error instanceof PlatformError) || isKeyRefused(error)) throw error;
      // The part is shown as a whole instead: that is true as well, only less exact.
      return undefined;
    }
  }
}

function errorsOf(differences: readonly TotalDifference[]): Errors {
  return new Map(
    differences.map((one) => [one.dimensionId, (one.controlTraces ?? 0) - (one.storedTraces ?? 0)]),
  );
}

function isSame(a: Errors, b: Errors): boolean {
  return a.size === b.size && [...a].every(([id, error]) => b.get(id) === error);
}

function minus(a: Errors, b: Errors): Errors {
  return new Map([...a].map(([id, error]) => [id, error - (b.get(id) ?? 0)]));
}
