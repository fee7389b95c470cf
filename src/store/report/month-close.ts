import { sql } from "kysely";
import { DISAGREEMENTS, type OpenDay } from "../../domain/close/open-day.ts";
import { UsageError } from "../../errors.ts";
import { lockScopes } from "../catalog/scopes.ts";
import type { Database, Store } from "../db/database.ts";
import { keepCorrections } from "./keep-corrections.ts";
import { openDays, type RequiredWorkspace, requiredWorkspaces } from "./month-open-days.ts";

export type CloseResult =
  | ({ readonly state: "closed"; readonly totals: number; readonly traces: number } & ClosedWith)
  | ({ readonly state: "closed_before"; readonly closedAt: string; readonly adjusted: number } & ClosedWith)
  | { readonly state: "open"; readonly open: readonly OpenDay[] };

interface ClosedWith {
  /** Days x dimensions x workspaces that were closed although the platform contradicts itself on them. */
  readonly accepted: number;
  /** The workspaces that were left out. */
  readonly without: readonly string[];
  /** `USAGE_SETTLE_AFTER` at the close. Null: closed by a release that did not keep it. */
  readonly settleAfterSeconds: number | null;
}

export interface CloseRequest {
  readonly sourceId: number;
  /** First day of the month, ISO. */
  readonly monthStart: string;
  readonly settleAfterMs: number;
  readonly acceptDisagreements?: boolean;
  /** Platform ids of known workspaces to leave out. */
  readonly without?: readonly string[];
}

/**
 * Stores the totals of a month by dimension, workspace and id, if every day of it from the data start on is loaded, final and
 * proved; else returns the open days. Loads of the source wait meanwhile, so check and totals see the same records. A month
 * closes once.
 */
export async function closeMonth(store: Store, request: CloseRequest): Promise<CloseResult> {
  const { sourceId, monthStart, acceptDisagreements = false, without = [] } = request;
  return store.transaction(async ({ db }) => {
    const scopes = await db
      .selectFrom("scope")
      .select("scope_id")
      .where("source_id", "=", sourceId)
      .where("stride", "=", "day")
      .execute();
    await lockScopes(
      db,
      scopes.map((row) => row.scope_id),
    );
    const before = await closedBefore(db, request);
    if (before !== undefined) return before;
    const range = await monthRange(db, request);
    if (range.start >= range.end) throw monthBeforeData(monthStart.slice(0, 7));
    const required = await requiredWorkspaces(db, { sourceId, range, without });
    if (required.length === 0) throw nothingToClose();
    const open = await openDays(db, { sourceId, range, required });
    const accepted = acceptDisagreements ? open.filter((one) => DISAGREEMENTS.includes(one.reason)) : [];
    if (open.length > accepted.length) {
      return { state: "open", open: open.filter((one) => !accepted.includes(one)) };
    }
    return keepClose(db, { ...request, without, required, accepted: accepted.length });
  });
}

/** The days of the month that are expected. The data start stays as it is until the transaction ends. */
async function monthRange(db: Database, { sourceId, monthStart }: CloseRequest) {
  const { rows } = await sql<{ start: Date; end: Date }>`
    select greatest(data_start, ${monthStart}::date)::timestamp at time zone 'UTC' as start,
           (${monthStart}::date + interval '1 month') at time zone 'UTC' as "end"
    from usage.source where source_id = ${sourceId}
    for no key update
  `.execute(db);
  const { start, end } = rows[0] as { start: Date; end: Date };
  return { start: start.getTime(), end: end.getTime() };
}

/** Stores the close, the workspaces it is about, its totals and what they cost at the prices of now. */
async function keepClose(
  db: Database,
  close: CloseRequest & {
    without: readonly string[];
    required: readonly RequiredWorkspace[];
    accepted: number;
  },
): Promise<CloseResult> {
  const { sourceId, monthStart, accepted, without } = close;
  const settleAfterSeconds = close.settleAfterMs / 1000;
  const { close_id: closeId } = await db
    .insertInto("month_close")
    .values({
      ...{ source_id: sourceId, month_start: monthStart, accepted_disagreements: accepted },
      settle_after_seconds: settleAfterSeconds,
    })
    .returning("close_id")
    .executeTakeFirstOrThrow();
  await sql`
    insert into usage.closed_workspace (close_id, workspace_id, is_left_out)
    select ${closeId}, w.entity_id, e.external_id = any (${[...without]}::text[])
    from usage.workspace w join usage.entity e using (entity_id)
    where w.entity_id = any (${close.required.map(({ entityId }) => entityId)}::integer[])
       or (e.source_id = ${sourceId} and e.external_id = any (${[...without]}::text[]))
  `.execute(db);
  const { rows } = await sql<{ totals: number; traces: number }>`
    with written as (
      insert into usage.closed_total (close_id, series_id, traces)
      select w.close_id, s.series_id, sum(r.traces)
      from usage.closed_workspace w
      join usage.scope c using (workspace_id)
      join usage.series s using (scope_id)
      join usage.dated_record r using (series_id)
      where w.close_id = ${closeId} and not w.is_left_out and c.stride = 'day'
        and r.bucket_start >= ${monthStart}::date
        and r.bucket_start < (${monthStart}::date + interval '1 month')::date
      group by w.close_id, s.series_id
      having sum(r.traces) > 0
      returning series_id, traces
    )
    select count(*)::integer as totals,
           coalesce(sum(w.traces) filter (where c.group_by = 'workspace'), 0)::bigint as traces
    from written w join usage.series s using (series_id) join usage.scope c using (scope_id)
  `.execute(db);
  await keepCharges(db, closeId);
  await keepCorrections(db, closeId);
  const counts = rows[0] as { totals: number; traces: number };
  return { state: "closed", ...counts, accepted, without: [...without].sort(), settleAfterSeconds };
}

/** Keeps the charges of the closed workspaces by day, and their sums by price. */
async function keepCharges(db: Database, closeId: number): Promise<void> {
  await sql`
    insert into usage.closed_charge
      (close_id, usage_date, workspace_id, sku, price_id, tier, from_quantity, unit_price, currency, traces, cost)
    select w.close_id, c.usage_date, w.workspace_id, c.sku, c.price_id, c.tier, c.from_quantity, c.unit_price, c.currency,
           c.traces, c.cost
    from usage.month_close m
    join usage.closed_workspace w using (close_id)
    join usage.charge c
      on c.source_id = m.source_id and c.month_start = m.month_start and c.workspace_entity_id = w.workspace_id
    where m.close_id = ${closeId} and not w.is_left_out
  `.execute(db);
  await sql`
    insert into usage.closed_cost (close_id, workspace_id, sku, unit_price, currency, traces, cost)
    select close_id, workspace_id, sku, unit_price, currency, sum(traces), sum(cost)
    from usage.closed_charge where close_id = ${closeId}
    group by close_id, workspace_id, sku, unit_price, currency
  `.execute(db);
}

async function closedBefore(
  db: Database,
  { sourceId, monthStart }: CloseRequest,
): Promise<CloseResult | undefined> {
  const { rows } = await sql<{ closedAt: Date; adjusted: number } & ClosedWith>`
    select m.closed_at as "closedAt", m.accepted_disagreements as accepted,
           m.settle_after_seconds as "settleAfterSeconds",
           array(select e.external_id from usage.closed_workspace w join usage.entity e on e.entity_id = w.workspace_id
                 where w.close_id = m.close_id and w.is_left_out order by 1) as without,
           (select count(*)::integer from reporting.usage_month_close v join usage.source s on s.slug = v.source_id
            where s.source_id = m.source_id and v.month_start = m.month_start and v.adjustment_traces <> 0) as adjusted
    from usage.month_close m
    where m.source_id = ${sourceId} and m.month_start = ${monthStart}::date
  `.execute(db);
  const [found] = rows;
  return found && { state: "closed_before", ...found, closedAt: found.closedAt.toISOString() };
}

export function monthBeforeData(month: string): UsageError {
  return new UsageError({
    code: "month_before_data",
    message: `${month} ends before the data start.`,
    next: "Choose a later month. `usage-etl data-start` shows the data start of each source.",
  });
}

/** Without a workspace the closed month would look like one without usage. */
function nothingToClose(): UsageError {
  return new UsageError({
    code: "workspaces_unknown",
    message: "There is no workspace to close the month for.",
    next: "Run `usage-etl sync` first, or leave out fewer workspaces.",
  });
}
