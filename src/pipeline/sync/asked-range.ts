import { type RangeLine, rangeStatus } from "../../domain/coverage/range-status.ts";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { listSources } from "../../store/activity/overview.ts";
import { ensureScopes, type ScopeState, scopeStates } from "../../store/catalog/scopes.ts";
import { capabilitiesOf, type ServerCapability } from "../../store/catalog/server-capabilities.ts";
import { type MeterStarts, meterStartsOf } from "../../store/catalog/source-meters.ts";
import type { Database } from "../../store/db/database.ts";
import type { Backfill } from "../../store/work/backfills.ts";
import { byMeter, clipToFuture, type Want } from "./plan.ts";

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

/** What the tables say now about the range of a backfill, whoever loaded it. */
export async function rangeOfBackfill(db: Database, backfill: Backfill): Promise<RangeLine[]> {
  const known = (await listSources(db)).find(({ source }) => source === backfill.source);
  if (known === undefined) return [];
  const { sourceId } = known;
  const dataStart = Date.parse(`${known.dataStart}T00:00:00Z`);
  const source: KnownSource = {
    ...{ sourceId, dataStart },
    meters: await meterStartsOf(db, { sourceId, dataStart }),
    capabilities: new Set((await capabilitiesOf(db, sourceId)).map(({ capability }) => capability)),
  };
  const { from, to, stride, createdAt, groupings, workspaceIds, meter } = backfill;
  const range = { start: Date.parse(from), end: Date.parse(to) };
  const clipped = clipToFuture(source, range, stride, Date.parse(createdAt));
  const wanted = clipped === undefined ? [] : [{ meter, stride, range: clipped }];
  return statusOfAsked(db, source, { wanted, groupings, workspaceIds });
}
