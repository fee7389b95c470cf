import type { RangeLine } from "../../domain/coverage/range-status.ts";
import { alignRange } from "../../domain/planning/windows.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { ensureScopes } from "../../store/catalog/scopes.ts";
import type { ServerCapability } from "../../store/catalog/server-capabilities.ts";
import type { MeterStarts } from "../../store/catalog/source-meters.ts";
import { rangeStatus } from "../../store/coverage/range-status.ts";
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
  { sourceId, dataStart, meters, capabilities }: KnownSource,
  { wanted: all, groupings = GROUPINGS, workspaceIds }: Asked,
): Promise<RangeLine[]> {
  const lines: RangeLine[] = [];
  for (const [meter, some] of byMeter(all)) {
    // A workspace that was never planned has no scopes, but each of its days is missing.
    await ensureScopes(db, { sourceId, meter, groupings, strides: some.map(({ stride }) => stride) });
    const wanted = some.flatMap(({ stride, range }) => {
      const required = alignRange(range, stride, meters.get(meter) ?? dataStart);
      const isUnavailable = !meters.has(meter) || capabilities.has(`no_${stride}`);
      return required === undefined ? [] : [{ stride, range: required, isUnavailable }];
    });
    lines.push(...(await rangeStatus(db, { sourceId, meter, groupings, workspaceIds, wanted })));
  }
  return lines;
}
