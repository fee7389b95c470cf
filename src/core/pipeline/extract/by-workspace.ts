import { finalUntil } from "../../domain/coverage/finality.ts";
import { scopeIdsOf, type UsageRequest } from "../../domain/planning/request.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import { ResponseCollector } from "../../domain/usage/response.ts";
import {
  addUp,
  type ByWorkspace,
  byWorkspace,
  type OtherScope,
  otherScopes,
} from "../../store/load/by-workspace.ts";
import { loadResponse } from "../../store/load/load.ts";
import type { ClaimedTask, StoredTask } from "../../store/work/tasks.ts";
import { keptForMs, type OpenSource, settleAfterIn } from "../source/source.ts";

/** Workspace counts save requests by other dimensions (rule 4 of docs/rules.md). */

interface Others {
  readonly meter: Meter;
  readonly window: Window;
  readonly others: readonly OtherScope[];
  /** Workspace responses sent at or after this instant (epoch milliseconds) count. */
  readonly since: number;
  /** True if figures that still match these responses need no request. Otherwise only zeros need none. */
  readonly isRoutine: boolean;
}

interface Skipped {
  readonly outcome: "loaded" | "unchanged";
  readonly fetchNumber: number;
}

/** The scopes whose window needs no request. Zeros are loaded with the age of the workspace response, so newer responses stay. */
export async function skipByWorkspace(
  source: OpenSource,
  requested: Others,
): Promise<ReadonlyMap<number, Skipped>> {
  const { window, others, since, isRoutine } = requested;
  const scopeIds = others.map(({ scopeId }) => scopeId);
  const known = await byWorkspace(source.store.db, { scopeIds, window, since });
  const zeros = await loadZeros(source, requested, known);
  const settle = (ids: Iterable<number>, outcome: Skipped["outcome"]) =>
    [...ids].map((scopeId) => {
      const fetchNumber = known.get(scopeId)?.fetchToken.fetchNumber ?? 0;
      return [scopeId, { outcome, fetchNumber }] as const;
    });
  const rest = new Map([...known].filter(([scopeId]) => !zeros.has(scopeId)));
  const same = isRoutine && rest.size > 0 ? await unchanged(source, requested, rest) : [];
  return new Map([...settle(zeros, "loaded"), ...settle(same, "unchanged")]);
}

type Known = ReadonlyMap<number, ByWorkspace>;

/** Returns the scopes whose whole window is zero. */
async function loadZeros(
  { store, sourceId, settings }: OpenSource,
  { meter, window, others, isRoutine }: Others,
  known: Known,
): Promise<ReadonlySet<number>> {
  const isWhole = (part: Interval) => part.start === window.start && part.end === window.end;
  const zeros = others.flatMap((scope) => {
    const { zero, fetchToken } = known.get(scope.scopeId) ?? { zero: [], fetchToken: undefined };
    // A part helps only if the rest needs no request either.
    const parts = isRoutine ? zero : zero.filter(isWhole);
    return fetchToken === undefined ? [] : parts.map((part) => ({ scope, fetchToken, part }));
  });
  const together = Map.groupBy(
    zeros,
    ({ scope, fetchToken, part }) => `${scope.groupBy} ${fetchToken.fetchNumber} ${part.start} ${part.end}`,
  );
  const whole = new Set<number>();
  for (const [first, ...more] of together.values()) {
    if (first === undefined) continue;
    const scopes = [first, ...more].map(({ scope }) => scope);
    const { groupBy } = first.scope;
    const part = { ...window, ...first.part };
    const loaded = await loadResponse(store, {
      sourceId,
      meter,
      groupBy,
      window: part,
      fetchToken: first.fetchToken,
      scopeIds: scopes.map(({ scopeId }) => scopeId),
      response: new ResponseCollector({
        groupBy,
        window: part,
        workspaceIds: scopes.map((one) => one.workspaceId),
      }),
      settleAfterMs: await settleAfterIn({ sourceId, store, settings }, meter),
    });
    // If something newer was loaded meanwhile, the zeros are discarded and the server is asked.
    if (loaded.outcome !== "loaded" || !isWhole(part)) continue;
    for (const { scopeId } of scopes) if (!loaded.unverified.includes(scopeId)) whole.add(scopeId);
  }
  return whole;
}

/**
 * The scopes that need no request before the next sync: their figures match the workspace counts, are fresh enough, and none
 * can become final. A change that keeps the sums is found once they are too old.
 */
async function unchanged(
  source: OpenSource,
  { meter, window }: Others,
  known: Known,
): Promise<Iterable<number>> {
  const keptFor = keptForMs(source);
  if (keptFor === undefined) return [];
  const now = Math.max(...[...known.values()].map((one) => one.now));
  return addUp(source.store.db, new Map([...known].map(([scopeId, one]) => [scopeId, one.scopeId])), {
    window,
    fetchedAfter: now - keptFor,
    finalUntil: finalUntil(now, await settleAfterIn(source, meter)),
  });
}

/** The requests by other dimensions that a workspace task's window still needs after its own request. */
export async function leftByWorkspace(source: OpenSource, task: ClaimedTask): Promise<UsageRequest[]> {
  const { db } = source.store;
  const { meter, window, createdAt: since } = task;
  const others = await otherScopes(db, { scopeIds: scopeIdsOf(task), window });
  const skipped = await skipByWorkspace(source, { meter, window, others, since, isRoutine: true });
  return others
    .filter(({ scopeId }) => !skipped.has(scopeId))
    .map(({ scopeId, groupBy, workspaceId }) => ({
      meter,
      groupBy,
      window,
      members: [{ scopeId, workspaceId }],
    }));
}

/** True for traces in a sync, whose workspace tasks create the tasks of the other dimensions. */
export function createsOthers({
  meter,
  groupBy,
  backfillId,
}: Pick<StoredTask, "meter" | "groupBy" | "backfillId">): boolean {
  return backfillId === undefined && groupBy === "workspace" && METER[meter].kind === "traces";
}
