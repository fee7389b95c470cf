import { type RangeLine, rangeStatus } from "../../domain/coverage/range-status.ts";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { ensureScopes, type ScopeState, scopeStates } from "../../store/catalog/scopes.ts";
import type { ServerCapability } from "../../store/catalog/server-capabilities.ts";
import type { MeterStarts } from "../../store/catalog/source-meters.ts";
import type { Database } from "../../store/db/database.ts";
import { byMeter, type Want } from "./plan.ts";

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
  readonly meters: MeterStarts;
  readonly capabilities: ReadonlySet<ServerCapability>;
}

/** What the tables say about the time that was asked for, whoever loaded it. */
export async function statusOfAsked(
  db: Database,
  source: KnownSource,
  { wanted: all, groupings = GROUPINGS, workspaceIds }: Asked,
): Promise<RangeLine[]> {
  const { sourceId } = source;
  const lines: RangeLine[] = [];
  for (const [meter, wanted] of byMeter(all)) {
    // A workspace that was never planned has no scopes, but each of its days is missing.
    await ensureScopes(db, { sourceId, meter, groupings, strides: wanted.map(({ stride }) => stride) });
    const coarsest = Math.max(...wanted.map(({ stride }) => STRIDES.indexOf(stride)));
    const strides = STRIDES.slice(0, coarsest + 1);
    const states = await scopeStates(db, { sourceId, meter, groupings, strides });
    lines.push(...statusFrom(states, source, { meter, wanted, workspaceIds }));
  }
  return lines;
}

/** The same from the states of all scopes of the meter, in the wanted strides and every finer one, which were read already. */
export function statusFrom(
  states: readonly ScopeState[],
  { dataStart, meters, capabilities }: Pick<KnownSource, "dataStart" | "meters" | "capabilities">,
  { meter, wanted, workspaceIds }: Pick<Asked, "wanted" | "workspaceIds"> & { readonly meter: Meter },
): RangeLine[] {
  const ids = new Set(workspaceIds);
  const isCounted = meters.has(meter);
  const isUnavailable = (stride: Stride) => !isCounted || capabilities.has(`no_${stride}`);
  return rangeStatus({
    ...{ meter, wanted, dataStart: meters.get(meter) ?? dataStart },
    known: states.filter((state) => ids.has(state.workspaceId)),
    unavailable: new Set(STRIDES.filter(isUnavailable)),
  });
}
