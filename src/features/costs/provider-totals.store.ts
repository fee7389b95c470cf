import { sql } from "kysely";
import type { FetchToken } from "../../core/domain/coverage/finality.ts";
import type { CalendarMonth } from "../../core/domain/months/month.ts";
import {
  PROVIDER_METERS,
  PROVIDER_USAGE,
  type ProviderMeter,
  type ProviderOutcome,
  type ProviderTotal,
} from "../../core/domain/months/provider.ts";
import { METER } from "../../core/domain/usage/meter.ts";
import { isConfigured } from "../../core/store/access/workspaces.ts";
import { lockScopes, lockSource } from "../../core/store/catalog/scopes.ts";
import type { Store } from "../../core/store/db/database.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import type { Finding } from "../../core/store/proof/write-differences.ts";
import { writeFindings } from "../../core/store/proof/write-differences.ts";

export interface ComparedTotal extends ProviderTotal {
  readonly outcome: ProviderOutcome;
  /** Sum of the stored days. Null: not compared. */
  readonly storedTraces: number | null;
  /** Day scope of the workspace. Null: nothing is loaded. */
  readonly scopeId: number | null;
}

interface Requested {
  readonly sourceId: number;
  readonly month: CalendarMonth;
  readonly totals: readonly ProviderTotal[];
}

export async function compareProvider(db: Database, requested: Requested): Promise<ComparedTotal[]> {
  const stored = await storedMonths(db, requested);
  return requested.totals.map((total): ComparedTotal => {
    const { meter, workspaceId, unusable, value } = total;
    const own = stored.find((one) => one.meter === meter && one.workspaceId === workspaceId);
    const scopeId = own?.scopeId ?? null;
    const left = (outcome: ProviderOutcome) => ({ ...total, outcome, scopeId, storedTraces: null });
    if (unusable !== null) return left(unusable);
    if (own === undefined) return left("unknown_workspace");
    if (own.scopeId === null) return left("not_loaded");
    // A month has no sum before its last day is final.
    if (!own.isFinal) return left("not_final");
    const outcome = own.traces === value ? "equal" : "differs";
    return { ...total, outcome, scopeId, storedTraces: own.traces };
  });
}

/**
 * Compares and stores a month's totals in one transaction. A different total opens a difference; an equal one ends it. If the
 * stored totals are from a newer response, nothing changes. Returns the compared totals.
 */
export async function keepProviderTotals(
  store: Store,
  requested: Requested & { readonly fetchToken: FetchToken },
): Promise<ComparedTotal[]> {
  const { sourceId, month, fetchToken } = requested;
  return store.transaction(async ({ db }) => {
    const scopes = (await storedMonths(db, requested)).flatMap(({ scopeId }) => scopeId ?? []);
    // Loads of these scopes and other readings of this month wait, so sums and coverage are of one moment.
    await lockScopes(db, scopes);
    await lockSource(db, sourceId);
    const compared = await compareProvider(db, requested);
    const stored = db.selectFrom("usage.provider_total").where("source_id", "=", sourceId);
    const ofMonth = stored.select("fetch_number").where("month_start", "=", month.start);
    const newer = await ofMonth.where("fetch_number", ">", fetchToken.fetchNumber).executeTakeFirst();
    if (newer !== undefined) return compared;
    await replaceTotals(db, { sourceId, month, fetchToken, compared });
    const period = { start: Date.parse(month.start), end: Date.parse(month.end) };
    const withScope = compared.filter((one) => one.storedTraces !== null && one.scopeId !== null);
    await writeFindings(
      db,
      {
        kind: "provider_total",
        compared: withScope.map(({ scopeId }) => ({ scopeId: scopeId as number, period })),
        fetchNumber: fetchToken.fetchNumber,
      },
      withScope
        .filter(({ outcome }) => outcome === "differs")
        .map(
          (one): Finding => ({
            kind: "provider_total",
            state: "platform_disagrees",
            ...period,
            scopeId: one.scopeId as number,
            dimensionId: one.workspaceId ?? "",
            measure: PROVIDER_USAGE[one.meter ?? "traces"].measure,
            storedTraces: one.storedTraces,
            controlTraces: one.value,
          }),
        ),
    );
    return compared;
  });
}

async function replaceTotals(
  db: Database,
  given: {
    sourceId: number;
    month: CalendarMonth;
    fetchToken: FetchToken;
    compared: readonly ComparedTotal[];
  },
): Promise<void> {
  const { sourceId, month, fetchToken, compared } = given;
  const stored = db.deleteFrom("usage.provider_total").where("source_id", "=", sourceId);
  await stored.where("month_start", "=", month.start).execute();
  const rows = compared.map((one) => ({
    source_id: sourceId,
    month_start: month.start,
    metric_id: one.metricId === "" ? `no ${one.meter}` : one.metricId,
    workspace: one.workspaceId ?? "",
    metric_name: one.metricName,
    meter: one.meter,
    value: one.value,
    outcome: one.outcome,
    stored_traces: one.storedTraces,
    fetch_number: fetchToken.fetchNumber,
    read_at: new Date(fetchToken.fetchedAt),
  }));
  // JSON, because a statement has at most 65,535 parameters, and some organizations need more.
  await sql`
    insert into usage.provider_total
    select * from json_populate_recordset(null::usage.provider_total, ${JSON.stringify(rows)}::json)
  `.execute(db);
}

const USAGE = PROVIDER_METERS.map((one) => {
  const { meter, measure } = PROVIDER_USAGE[one];
  const { kind, tier } = METER[meter];
  return sql`(${one}, ${measure}, ${kind}, ${tier}, ${meter})`;
});

interface StoredMonth {
  readonly meter: ProviderMeter;
  readonly workspaceId: string;
  readonly scopeId: number | null;
  /** True if every day of the month is loaded and final, and none is before the data start. */
  readonly isFinal: boolean;
  readonly traces: number;
}

async function storedMonths(
  db: Database,
  { sourceId, month }: Pick<Requested, "sourceId" | "month">,
): Promise<StoredMonth[]> {
  const [from, to] = [sql`${month.start}::date`, sql`${month.end}::date`];
  return query<StoredMonth>(db)`
    with own as (
      select m.meter, m.measure, e.external_id, c.scope_id, coalesce(a.starts_on, s.data_start) as data_start
      from usage.workspace w
      join usage.entity e using (entity_id)
      join usage.source s using (source_id)
      cross join (values ${sql.join(USAGE)}) m (meter, measure, kind, tier, usage)
      left join usage.source_meter a on a.source_id = s.source_id and a.meter = m.usage
      left join usage.scope c
        on c.workspace_id = w.entity_id and c.group_by = 'workspace' and c.stride = 'day' and c.kind = m.kind
       and c.trace_tier = m.tier
      where e.source_id = ${sourceId} and ${isConfigured}
    )
    select own.meter, own.external_id as "workspaceId", own.scope_id as "scopeId",
           own.data_start <= ${from} and coalesce(final.days @> daterange(${from}, ${to}), false) as "isFinal",
           stored.traces
    from own
    cross join lateral (
      select range_agg(daterange((v.period_start at time zone 'UTC')::date, (v.period_end at time zone 'UTC')::date)) as days
      from usage.coverage v where v.scope_id = own.scope_id and v.final
    ) final
    cross join lateral (
      select coalesce(sum(r.traces), 0)::bigint as traces
      from usage.series x join usage.dated_record r using (series_id)
      where x.scope_id = own.scope_id and x.measure = own.measure and r.bucket_start >= ${from} and r.bucket_start < ${to}
    ) stored
    order by 1, 2
  `;
}

/** Months that were never read, have an open difference, were not final when they were compared, or have changed since. */
export async function monthsToRead(
  db: Database,
  { sourceId, months }: { sourceId: number; months: readonly CalendarMonth[] },
): Promise<CalendarMonth[]> {
  const rows = await query<{ start: string }>(db)`
    select m.start
    from unnest(${months.map(({ start }) => start)}::text[]) m (start)
    where not exists (
        select from usage.provider_total p where p.source_id = ${sourceId} and p.month_start = m.start::date
      ) or exists (
        select from usage.provider_total p
        where p.source_id = ${sourceId} and p.month_start = m.start::date
          and (p.outcome in ('differs', 'not_final') or p.read_at < (
            select max(t.restated_at)
            from usage.restatement t join usage.series x using (series_id) join usage.scope c using (scope_id)
            where c.source_id = ${sourceId} and c.kind in ('traces', 'langsmith_deployments') and c.stride = 'day'
              and c.group_by = 'workspace'
              and t.bucket_start >= m.start::timestamp at time zone 'UTC'
              and t.bucket_start < (m.start::date + interval '1 month') at time zone 'UTC'
          ))
      ) or exists (
        select from usage.difference d join usage.scope c using (scope_id)
        where c.source_id = ${sourceId} and d.compared_with = 'provider_total' and d.closed_at is null
          and d.period_start = m.start::timestamp at time zone 'UTC'
      )
    order by 1
  `;
  return months.filter(({ start }) => rows.some((row) => row.start === start));
}
