import type { Interval } from "../../domain/time/window.ts";
import { METERS } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { METER_OF_SCOPE, type Scope } from "../catalog/scopes.ts";
import type { Store } from "../db/database.ts";
import { epochMs } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";
import {
  type ComparedFindings,
  type Finding,
  type FindingKind,
  TOTAL_KINDS,
  writeFindings,
} from "./write-differences.ts";

export async function keepFindings(
  store: Store,
  about: ComparedFindings,
  findings: readonly Finding[],
): Promise<void> {
  await store.transaction(({ db }) => writeFindings(db, about, findings));
}

export interface NamedFinding extends Finding, Pick<Scope, "meter" | "groupBy" | "workspaceId"> {}

/**
 * Returns open findings of a source that overlap a range, ordered by meter, dimension, workspace, time and id. Those of the
 * billing provider are left out, because it is another system.
 */
export async function knownFindings(
  db: Database,
  {
    sourceId,
    range,
    kinds = TOTAL_KINDS,
  }: { sourceId: number; range: Interval; kinds?: readonly FindingKind[] },
): Promise<NamedFinding[]> {
  return query<NamedFinding>(db)`
    select ${METER_OF_SCOPE} as meter, d.measure, d.kind, d.state, d.scope_id as "scopeId", d.external_id as "dimensionId",
           ${epochMs("d.period_start")} as start,
           ${epochMs("d.period_end")} as "end", d.stored_traces as "storedTraces",
           d.other_traces as "controlTraces", c.group_by as "groupBy", w.external_id as "workspaceId"
    from usage.difference d
    join usage.scope c using (scope_id)
    join usage.entity w on w.entity_id = c.workspace_id
    where c.source_id = ${sourceId} and d.closed_at is null and d.compared_with = any (${kinds}::text[])
      and d.period_start < ${new Date(range.end)} and d.period_end > ${new Date(range.start)}
      and ${METER_OF_SCOPE} is not null
    order by array_position(${METERS}::text[], ${METER_OF_SCOPE}), d.kind desc, array_position(${GROUPINGS}::text[], c.group_by), w.external_id, d.period_start,
             d.period_end, d.external_id, d.measure
  `;
}

export async function noteCheck(
  db: Database,
  { sourceId, failures }: { sourceId: number; failures: number },
): Promise<void> {
  await db.insertInto("usage.control_check").values({ source_id: sourceId, failures }).execute();
}
