import { sql } from "kysely";
import type { Interval } from "../../domain/time/window.ts";
import type { Database, Store } from "../db/database.ts";
import type { TotalDifference } from "./control-totals.ts";

type FindingKind = "stride_total" | "grouping_total";

/** A difference that stood when both sides had been asked for once more. */
export interface Finding extends TotalDifference {
  readonly kind: FindingKind;
  readonly state: "platform_disagrees" | "unattributed";
}

/**
 * Keeps what was found of a kind within a range: found again it is the same row, and what was not found again is closed
 * for the scopes that were compared.
 */
export async function keepFindings(
  store: Store,
  about: {
    kind: FindingKind;
    compared: readonly { scopeId: number; period: Interval }[];
    fetchNumber: number;
  },
  all: readonly Finding[],
): Promise<{ closed: number }> {
  const { compared } = about;
  // Windows that reach back find the same thing twice.
  const found = [
    ...new Map(all.map((one) => [`${one.scopeId} ${one.start} ${one.end} ${one.dimensionId}`, one])).values(),
  ];
  return store.transaction(async ({ db }) => {
    const { numAffectedRows } = await sql`
      update usage.control_difference d set state = 'closed', closed_at = now()
      from unnest(
        ${compared.map((c) => c.scopeId)}::integer[], ${compared.map((c) => new Date(c.period.start))}::timestamptz[],
        ${compared.map((c) => new Date(c.period.end))}::timestamptz[]
      ) c (scope_id, "from", "to")
      where d.scope_id = c.scope_id and d.period_start >= c.from and d.period_end <= c.to
        and d.kind = ${about.kind} and d.state <> 'closed'
        and not exists (
          select from unnest(
            ${found.map((f) => f.scopeId)}::integer[], ${found.map((f) => new Date(f.start))}::timestamptz[],
            ${found.map((f) => new Date(f.end))}::timestamptz[], ${found.map((f) => f.dimensionId)}::text[]
          ) f (scope_id, period_start, period_end, external_id)
          where f.scope_id = d.scope_id and f.period_start = d.period_start and f.period_end = d.period_end
            and f.external_id = d.external_id
        )
    `.execute(db);
    if (found.length > 0) {
      await db
        .insertInto("control_difference")
        .values(
          found.map((one) => ({
            scope_id: one.scopeId,
            kind: one.kind,
            period_start: new Date(one.start),
            period_end: new Date(one.end),
            external_id: one.dimensionId,
            stored_traces: one.storedTraces,
            control_traces: one.controlTraces,
            state: one.state,
            fetch_number: about.fetchNumber,
          })),
        )
        .onConflict((conflict) =>
          conflict.constraint("control_difference_pkey").doUpdateSet((eb) => ({
            stored_traces: eb.ref("excluded.stored_traces"),
            control_traces: eb.ref("excluded.control_traces"),
            state: eb.ref("excluded.state"),
            fetch_number: eb.ref("excluded.fetch_number"),
            closed_at: null,
            found_at: sql<Date>`case when control_difference.state = 'closed' then now() else control_difference.found_at end`,
          })),
        )
        .execute();
    }
    return { closed: Number(numAffectedRows ?? 0) };
  });
}

/** Findings of a source that are not closed. */
export async function knownFindings(db: Database, sourceId: number): Promise<Finding[]> {
  const rows = await db
    .selectFrom("control_difference")
    .innerJoin("scope", "scope.scope_id", "control_difference.scope_id")
    .selectAll("control_difference")
    .where("scope.source_id", "=", sourceId)
    .where("state", "<>", "closed")
    .execute();
  return rows.map((row) => ({
    kind: row.kind as FindingKind,
    state: row.state as Finding["state"],
    scopeId: row.scope_id,
    dimensionId: row.external_id,
    start: row.period_start.getTime(),
    end: row.period_end.getTime(),
    storedTraces: row.stored_traces,
    controlTraces: row.control_traces,
  }));
}

/** What one check of totals came to, for the ledger. */
export interface CheckCounts {
  readonly requests: number;
  readonly daysProved: number;
  readonly daysWaiting: number;
  readonly restated: number;
  readonly differences: number;
  readonly failures: number;
}

export async function noteCheck(
  db: Database,
  { sourceId, range, counts }: { sourceId: number; range: Interval; counts: CheckCounts },
): Promise<void> {
  await db
    .insertInto("control_check")
    .values({
      source_id: sourceId,
      period_start: new Date(range.start),
      period_end: new Date(range.end),
      requests: counts.requests,
      days_proved: counts.daysProved,
      days_waiting: counts.daysWaiting,
      restated: counts.restated,
      differences: counts.differences,
      failures: counts.failures,
    })
    .execute();
}
