import { type RawBuilder, sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { HOUR_MS, STRIDE_MS, type Stride } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { keepingProof } from "../coverage/proved-time.ts";
import type { Transaction } from "../db/database.ts";
import type { Database } from "../db/query.ts";
import type { TotalDifference } from "./control-totals.ts";
import { tablesOf } from "./export-stage.ts";

/** Writes `usage.difference`: where exports or totals of the platform contradict the stored figures. */

const FETCHED_SINCE = `EXISTS (
  SELECT FROM usage.coverage c
  WHERE c.scope_id = d.scope_id AND c.period_start <= d.period_start AND c.period_end > d.period_start
    -- By number and by time: a merged interval has the newest number of its parts, but the oldest time.
    AND c.fetch_number > d.fetch_number AND c.fetched_at >= d.fetched_at)`;

function isChanged(stride: Stride): string {
  const { records, bucket } = tablesOf(stride);
  return `(SELECT coalesce(sum(r.traces), 0) IS DISTINCT FROM coalesce(d.stored_traces, 0)
    OR d.kind = 'name_differs' AND EXISTS (
      SELECT FROM usage.series x JOIN usage.entity e USING (entity_id) JOIN usage.entity_name n USING (entity_id)
      WHERE x.scope_id = d.scope_id AND e.external_id = d.external_id AND n.name = d.export_says)
    FROM usage.series s JOIN usage.entity e USING (entity_id) JOIN ${records} r USING (series_id)
    WHERE s.scope_id = d.scope_id AND e.external_id = d.external_id AND r.bucket_start = ${bucket("d.period_start")} AND s.measure = d.measure)`;
}

/**
 * Stores found differences, and ends those that were not found again. A difference is open until its window is fetched again.
 * If it is then gone, it becomes `repaired` if the stored figure changed, else `withdrawn`. If the export repeats its number,
 * JSON and export of the platform contradict each other. No further request repairs that, so the difference is
 * `platform_disagrees` until one of the numbers changes. If the export has a new number, it is still changing, and the
 * difference stays open. The caller stores the proof of the scopes.
 */
export async function keepDifferences(
  { client }: Transaction,
  given: {
    window: Window;
    fetchToken: FetchToken;
    scopeIds: readonly number[];
    whole: boolean;
    isFolded: boolean;
  },
): Promise<void> {
  const { window, fetchToken, scopeIds, whole, isFolded } = given;
  const { staged, bucket } = tablesOf(window.stride);
  await client.query(
    `UPDATE usage.difference d
     SET closed_at = now(), state = CASE
       WHEN d.state <> 'open' OR NOT ${FETCHED_SINCE} THEN 'closed'
       WHEN ${isChanged(window.stride)} THEN 'repaired' ELSE 'withdrawn' END
     WHERE d.compared_with = 'export' AND d.state IN ('open', 'platform_disagrees') AND d.scope_id = ANY ($1::integer[])
       AND d.period_start >= $2 AND d.period_start < $3 AND d.fetch_number < $4
       AND NOT EXISTS (
         SELECT FROM pg_temp.usage_export_found f
         WHERE f.scope_id = d.scope_id AND f.external_id = d.external_id AND f.bucket_start = d.period_start
           AND f.measure = d.measure
       )
       -- If the export may lack its end, only a row that is present shows that a difference is gone, unless a key has several.
       AND ($5 OR NOT $6 AND EXISTS (
         SELECT FROM pg_temp.usage_export_keyed k JOIN ${staged} r ON r.key = k.key
         WHERE k.scope_id = d.scope_id AND k.external_id = d.external_id AND k.measure = d.measure AND r.bucket_start = ${bucket("d.period_start")}
       ))`,
    [
      scopeIds,
      new Date(window.start).toISOString(),
      new Date(window.end).toISOString(),
      fetchToken.fetchNumber,
      whole,
      isFolded,
    ],
  );
  await client.query(
    `INSERT INTO usage.difference AS d
       (compared_with, scope_id, external_id, period_start, period_end, measure, kind, stored_traces, other_traces, export_says,
        fetch_number, fetched_at)
     SELECT 'export', f.scope_id, f.external_id, f.bucket_start, f.bucket_start + $3::interval, f.measure, f.kind, f.stored_traces,
            f.export_traces, f.export_says, $1, $2
     FROM pg_temp.usage_export_found f
     ORDER BY f.scope_id, f.bucket_start, f.external_id, f.measure
     ON CONFLICT ON CONSTRAINT difference_pkey DO UPDATE
     SET kind = excluded.kind, stored_traces = excluded.stored_traces, other_traces = excluded.other_traces,
         export_says = excluded.export_says, fetch_number = excluded.fetch_number, fetched_at = excluded.fetched_at,
         closed_at = NULL,
         state = CASE
           WHEN (d.other_traces, d.export_says) IS DISTINCT FROM (excluded.other_traces, excluded.export_says) THEN 'open'
           WHEN d.state = 'platform_disagrees' AND d.kind = excluded.kind
             AND d.stored_traces IS NOT DISTINCT FROM excluded.stored_traces THEN 'platform_disagrees'
           WHEN d.state = 'open' AND ${FETCHED_SINCE} THEN 'platform_disagrees'
           ELSE 'open'
         END,
         found_at = CASE WHEN d.state IN ('open', 'platform_disagrees') THEN d.found_at ELSE now() END
     WHERE d.fetch_number < excluded.fetch_number`,
    [
      fetchToken.fetchNumber,
      new Date(fetchToken.fetchedAt).toISOString(),
      `${STRIDE_MS[window.stride] / HOUR_MS} hours`,
    ],
  );
}

/** `which`: a condition on difference `d` and its scope `c`. */
export async function endDifferences(
  db: Database,
  state: "closed" | "not_configured" | "hours_dropped",
  which: RawBuilder<unknown>,
): Promise<void> {
  await keepingProof(sql`
    update usage.difference d set state = ${state}, closed_at = now()
    from usage.scope c
    where c.scope_id = d.scope_id and d.closed_at is null and ${which}
    returning d.scope_id
  `).execute(db);
}

/** Kinds of totals that are compared by UTC day. The billing provider's totals cover calendar months. */
export const TOTAL_KINDS = ["stride_total", "grouping_total", "tier_total", "tier_exceeds"] as const;
export type FindingKind = (typeof TOTAL_KINDS)[number] | "provider_total";

export interface Finding extends TotalDifference {
  readonly kind: FindingKind;
  readonly state: "platform_disagrees" | "unattributed";
}

export interface ComparedFindings {
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
  // Overlapping windows find the same difference twice.
  const found = [
    ...new Map(
      findings.map((one) => [
        `${one.scopeId} ${one.start} ${one.end} ${one.measure} ${one.dimensionId}`,
        one,
      ]),
    ).values(),
  ].map((one) => ({
    scope_id: one.scopeId,
    compared_with: kind,
    kind,
    period_start: new Date(one.start),
    period_end: new Date(one.end),
    external_id: one.dimensionId,
    measure: one.measure,
    stored_traces: one.storedTraces,
    other_traces: one.controlTraces,
    state: one.state,
    fetch_number: fetchNumber,
  }));
  const rows = sql`json_populate_recordset(null::usage.difference, ${JSON.stringify(found)}::json)`;
  await keepingProof(sql`
    update usage.difference d set state = 'closed', closed_at = now()
    from json_to_recordset(${JSON.stringify(compared)}::json) c (scope_id integer, "from" timestamptz, "to" timestamptz)
    where d.scope_id = c.scope_id and d.period_start >= c.from and d.period_end <= c.to
      and d.compared_with = ${kind} and d.closed_at is null
      and (d.scope_id, d.period_start, d.period_end, d.external_id, d.measure) not in (
        select scope_id, period_start, period_end, external_id, measure from ${rows}
      )
    returning d.scope_id
  `).execute(db);
  const columns = sql`scope_id, compared_with, kind, period_start, period_end, external_id, measure, stored_traces, other_traces, state, fetch_number`;
  await keepingProof(sql`
    insert into usage.difference as d (${columns})
    select ${columns} from ${rows}
    on conflict on constraint difference_pkey do update
    set stored_traces = excluded.stored_traces, other_traces = excluded.other_traces, state = excluded.state,
        fetch_number = excluded.fetch_number, closed_at = null,
        found_at = case when d.closed_at is null then d.found_at else now() end
    returning d.scope_id
  `).execute(db);
}
