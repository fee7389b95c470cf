import { type RangeLine, rangeStatus } from "../../domain/planning/range-status.ts";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { ensureScopes, type ScopeState, scopeStates } from "../../store/catalog/scopes.ts";
import type { ServerCapability } from "../../store/catalog/server-capabilities.ts";
import type { Database } from "../../store/db/database.ts";
import type { Want } from "./plan.ts";

/** What somebody asked to have loaded. */
export interface Asked {
  readonly wanted: readonly Want[];
  /** Default: all. */
  readonly groupings?: readonly GroupBy[];
  /** Platform ids. */
  readonly workspaceIds: readonly string[];
}

/** A source as Postgres knows it. */
export interface KnownSource {
  readonly sourceId: number;
  readonly dataStart: number;
  readonly capabilities: ReadonlySet<ServerCapability>;
}

/** What the tables say about the time that was asked for, whoever loaded it. */
export async function statusOfAsked(
  db: Database,
  { sourceId, dataStart, capabilities }: KnownSource,
  { wanted, groupings = GROUPINGS, workspaceIds }: Asked,
): Promise<RangeLine[]> {
  // A workspace that was never planned has no scopes, but each of its days is missing.
  await ensureScopes(db, { sourceId, groupings, strides: wanted.map(({ stride }) => stride) });
  const coarsest = Math.max(...wanted.map(({ stride }) => STRIDES.indexOf(stride)));
  const strides = STRIDES.slice(0, coarsest + 1);
  const states = await scopeStates(db, { sourceId, groupings, strides });
  return statusFrom(states, { dataStart, capabilities }, { wanted, workspaceIds });
}

/** The same from the states of all scopes of the wanted strides and every finer one, which were read already. */
export function statusFrom(
  states: readonly ScopeState[],
  { dataStart, capabilities }: Pick<KnownSource, "dataStart" | "capabilities">,
  { wanted, workspaceIds }: Pick<Asked, "wanted" | "workspaceIds">,
): RangeLine[] {
  const ids = new Set(workspaceIds);
  return rangeStatus({
    ...{ wanted, dataStart },
    known: states.filter((state) => ids.has(state.workspaceId)),
    unavailable: new Set(STRIDES.filter((stride): stride is Stride => capabilities.has(`no_${stride}`))),
  });
}
