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

/** Workspace counts make some requests by project, user or key needless (rule 4 of docs/rules.md). */

interface Others {
  readonly meter: Meter;
  readonly window: Window;
  readonly others: readonly OtherScope[];
  /** Epoch ms. Workspace responses sent before this instant are ignored. */
  readonly since: number;
  /** True: figures that match the workspace counts need no request. False: only zeros need none. */
  readonly isRoutine: boolean;
}

interface Skipped {
  readonly outcome: "loaded" | "unchanged";
  readonly fetchNumber: number;
}

/**
 * Returns the scopes whose window needs no request. Zeros get the token of the workspace response and replace nothing newer.
 */
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

/** Loads the zeros that workspace responses prove. Returns the scopes whose whole window is zero. */
async function loadZeros(
  { store, sourceId, settings }: OpenSource,
  { meter, window, others, isRoutine }: Others,
  known: Known,
): Promise<ReadonlySet<number>> {
  const isWhole = (part: Interval) => part.start === window.start && part.end === window.end;
  const zeros = others.flatMap((scope) => {
    const { zero, fetchToken } = known.get(scope.scopeId) ?? { zero: [], fetchToken: undefined };
    // A zero for part of the window helps only if the rest needs no request either.
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
    // If a newer response was loaded meanwhile, the zeros are discarded and the window is requested.
    if (loaded.outcome !== "loaded" || !isWhole(part)) continue;
    for (const { scopeId } of scopes) if (!loaded.unverified.includes(scopeId)) whole.add(scopeId);
  }
  return whole;
}

/**
 * Returns the scopes that need no request before the next sync: their figures match the workspace counts, are recent, and
 * cannot become final. A change that keeps the sums is found when the figures become too old.
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

/** True for traces in a sync, whose workspace tasks create the tasks by project, user and key. */
export function createsOthers({
  meter,
  groupBy,
  backfillId,
}: Pick<StoredTask, "meter" | "groupBy" | "backfillId">): boolean {
  return backfillId === undefined && groupBy === "workspace" && METER[meter].kind === "traces";
}
