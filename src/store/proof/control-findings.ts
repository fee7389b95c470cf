import { sql } from "kysely";
import type { Interval } from "../../domain/time/window.ts";
import { METERS } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { METER_OF_SCOPE, type Scope } from "../catalog/scopes.ts";
import type { Store } from "../db/database.ts";
import { epochMs } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";
import type { TotalDifference } from "./control-totals.ts";

/** Totals of the platform over its own days. The billing provider has totals of calendar months. */
const TOTAL_KINDS = ["stride_total", "grouping_total", "tier_total", "tier_exceeds"] as const;
export type FindingKind = (typeof TOTAL_KINDS)[number] | "provider_total";

export interface Finding extends TotalDifference {
  readonly kind: FindingKind;
  readonly state: "platform_disagrees" | "unattributed";
}

export async function keepFindings(
  store: Store,
  about: ComparedFindings,
  findings: readonly Finding[],
): Promise<void> {
  await store.transaction(({ db }) => writeFindings(db, about, findings));
}

interface ComparedFindings {
  readonly kind: FindingKind;
  readonly compared: readonly { scopeId: number; period: Interval }[];
  readonly fetchNumber: number;
}

export async function writeFindings(
  db: Database,
  about: ComparedFindings,
  findings: readonly Finding[],
): Promise<void> {
  const { kind, fetchNumber } = about;
  const compared = about.compared.map(({ scopeId, period }) => ({
    scope_id: scopeId,
    from: new Date(period.start),
    to: new Date(period.end),
  }));
  // Windows that reach back find the same difference twice.
  const found = [
    ...new Map(
      findings.map((one) => [
        `${one.scopeId} ${one.start} ${one.end} ${one.measure} ${one.dimensionId}`,
        one,
      ]),
    ).values(),
  ].map((one) => ({
    scope_id: one.scopeId,
    kind,
    period_start: new Date(one.start),
    period_end: new Date(one.end),
    external_id: one.dimensionId,
    measure: one.measure,
    stored_traces: one.storedTraces,
    control_traces: one.controlTraces,
    state: one.state,
    fetch_number: fetchNumber,
  }));
  const rows = sql`json_populate_recordset(null::usage.control_difference, ${JSON.stringify(found)}::json)`;
  await sql`
    update usage.control_difference d set state = 'closed', closed_at = now()
    from json_to_recordset(${JSON.stringify(compared)}::json) c (scope_id integer, "from" timestamptz, "to" timestamptz)
    where d.scope_id = c.scope_id and d.period_start >= c.from and d.period_end <= c.to
      and d.kind = ${kind} and d.closed_at is null
      and (d.scope_id, d.period_start, d.period_end, d.external_id, d.measure) not in (
        select scope_id, period_start, period_end, external_id, measure from ${rows}
      )
  `.execute(db);
  const columns = sql`scope_id, kind, period_start, period_end, external_id, measure, stored_traces, control_traces, state, fetch_number`;
  await sql`
    insert into usage.control_difference as d (${columns})
    select ${columns} from ${rows}
    on conflict on constraint control_difference_pkey do update
    set stored_traces = excluded.stored_traces, control_traces = excluded.control_traces, state = excluded.state,
        fetch_number = excluded.fetch_number, closed_at = null,
        found_at = case when d.closed_at is null then d.found_at else now() end
  `.execute(db);
}

export interface NamedFinding extends Finding, Pick<Scope, "meter" | "groupBy" | "workspaceId"> {}

/**
 * Open findings of a source that overlap a range, in order of meter, dimension, workspace, time and id, without those of the
 * billing provider: it is another system.
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
           d.control_traces as "controlTraces", c.group_by as "groupBy", w.external_id as "workspaceId"
    from usage.control_difference d
    join usage.scope c using (scope_id)
    join usage.entity w on w.entity_id = c.workspace_id
    where c.source_id = ${sourceId} and d.closed_at is null and d.kind = any (${kinds}::text[])
      and d.period_start < ${new Date(range.end)} and d.period_end > ${new Date(range.start)}
      and ${METER_OF_SCOPE} is not null
    order by array_position(${METERS}::text[], ${METER_OF_SCOPE}), d.kind desc, array_position(${GROUPINGS}::text[], c.group_by), w.external_id, d.period_start,
             d.period_end, d.external_id, d.measure
  `;
}

/** `failures`: windows that could not be requested. */
export async function noteCheck(
  db: Database,
  { sourceId, failures }: { sourceId: number; failures: number },
): Promise<void> {
  await sql`insert into usage.control_check (source_id, failures) values (${sourceId}, ${failures})`.execute(
    db,
  );
}
