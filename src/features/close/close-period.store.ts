import { sql } from "kysely";
import { UsageError } from "../../core/base/errors.ts";
import { daysWithin, isMonth, type Period } from "../../core/domain/months/month.ts";
import type { RestatementCount } from "../../core/domain/proof/restatement.ts";
import { lockScopesWhere } from "../../core/store/catalog/scopes.ts";
import type { Store } from "../../core/store/db/database.ts";
import { type Database, queryOne } from "../../core/store/db/query.ts";
import { CLOSE_ACTION, type Close as Closed, COSTS_ACTION, closeOf } from "../../core/store/months/closes.ts";
import { type Actor, recordAction } from "../../core/store/work/operator-actions.ts";
import { type Cost, keepCosts } from "../costs/keep-costs.store.ts";
import { countAdjusted } from "../costs/month-adjustments.store.ts";
import { digestOfClose, digestToClose } from "./close-digest.store.ts";
import {
  type Acceptance,
  acceptanceOf,
  type CloseRange,
  type OpenDays,
  openDaysOf,
} from "./open-days.store.ts";
import { DISAGREEMENTS, type OpenDay } from "./open-days.ts";
import { keptByClose } from "./totals-to-close.store.ts";

export type CloseResult =
  | ({
      readonly state: "closed";
      readonly totals: number;
      readonly traces: number;
      /** Empty: closed without costs, or no traces. */
      readonly costs: readonly Cost[];
    } & ClosedWith)
  /** The month was closed earlier without costs, which were closed now. */
  | ({
      readonly state: "costs_closed";
      readonly closedAt: string;
      readonly costs: readonly Cost[];
    } & ClosedWith)
  | ({
      readonly state: "closed_before";
      readonly closedAt: string;
      /** Null: the costs are not closed yet. */
      readonly costsClosedAt: string | null;
      readonly adjusted: number;
      /** Restatements, since the close, of usage except all traces. */
      readonly restatedOthers: readonly RestatementCount[];
    } & ClosedWith)
  | {
      readonly state: "open";
      readonly open: readonly OpenDay[];
      /**
       * Digest that accepts the open days (`acceptanceOf`). Null: no workspace would be left, or only costs are to be closed.
       */
      readonly digest: string | null;
    };

interface ClosedWith {
  /** Number of closed daily figures on which the platform contradicts itself. */
  readonly accepted: number;
  readonly without: readonly string[];
  readonly settleAfterSeconds: number;
}

export interface CloseRequest {
  readonly sourceId: number;
  readonly period: Period;
  readonly settleAfterMs: number;
  /** Closes the traces alone. A month gets its costs when it is closed again with them; other periods have no costs. */
  readonly withoutCosts?: boolean;
  /** Digests (`digestOfClose`) of previews. A close with one of these digests accepts its open days; any other close fails. */
  readonly accept?: readonly string[];
  readonly by: Actor;
}

type Close = CloseRequest & Acceptance;

/**
 * Stores the totals of a period by dimension, workspace and id if every day from the data start on is loaded, final and proved.
 * Otherwise returns the open days. Loads of the source wait, so check and totals see the same records. A period closes once. A
 * month's costs close with it, or later if it was closed without them. Errors: `period_before_data`, `workspaces_unknown`,
 * `month_unpriced`, `period_changed`; then nothing was closed.
 */
export async function closePeriod(store: Store, request: CloseRequest): Promise<CloseResult> {
  const { sourceId, period } = request;
  const withoutCosts = request.withoutCosts === true || !isMonth(period);
  return store.transaction(async ({ db }) => {
    await lockScopesWhere(db, sql`source_id = ${sourceId} and stride = 'day'`);
    const found = await closeOf(db, { sourceId, ...period });
    if (found !== undefined && (found.costsClosedAt !== null || withoutCosts)) return closedBefore(db, found);
    const range = await rangeOf(db, request);
    if (range.start >= range.end) throw periodBeforeData(period.name);
    const [days] = (await openDaysOf(db, { sourceId, ranges: [range] })) as [OpenDays];
    if (found !== undefined) return closeCosts(db, request, { found, open: days.open });
    const acceptance = acceptanceOf(days);
    const close = { ...request, withoutCosts, ...acceptance };
    const isEmpty = acceptance.required.length === 0;
    if (days.open.length === 0 || request.accept !== undefined) {
      if (isEmpty) throw nothingToClose();
      return keepClose(db, close);
    }
    return { state: "open", open: days.open, digest: isEmpty ? null : await digestToClose(db, close) };
  });
}

/** Locks the data start until the transaction ends. */
async function rangeOf(db: Database, { sourceId, period }: CloseRequest): Promise<CloseRange> {
  const source = db.selectFrom("usage.source").where("source_id", "=", sourceId).forNoKeyUpdate();
  const { dataStart } = await source.select("data_start as dataStart").executeTakeFirstOrThrow();
  return daysWithin(period, dataStart);
}

async function keepClose(db: Database, close: Close): Promise<CloseResult> {
  const { sourceId, period, accepted, without } = close;
  const { name, start, end } = period;
  const settleAfterSeconds = close.settleAfterMs / 1000;
  const { closeId } = await db
    .insertInto("usage.close")
    .values({
      source_id: sourceId,
      period_start: start,
      period_end: end,
      accepted_disagreements: accepted,
      settle_after_seconds: settleAfterSeconds,
    })
    .returning("close_id as closeId")
    .executeTakeFirstOrThrow();
  await sql`
    insert into usage.closed_workspace (close_id, workspace_id, is_left_out)
    select ${closeId}, w.entity_id, e.external_id = any (${without}::text[])
    from usage.workspace w join usage.entity e using (entity_id)
    where w.entity_id = any (${close.required.map(({ entityId }) => entityId)}::integer[])
       or (e.source_id = ${sourceId} and e.external_id = any (${without}::text[]))
  `.execute(db);
  const counts = await queryOne<{ totals: number; traces: number }>(db)`
    with written as (
      insert into usage.closed_total (close_id, series_id, traces)
      select w.close_id, s.series_id, sum(r.traces)
      from usage.closed_workspace w
      join usage.trace_scope c using (workspace_id)
      join usage.series s using (scope_id)
      join usage.dated_record r using (series_id)
      where w.close_id = ${closeId} and not w.is_left_out and c.stride = 'day'
        and r.bucket_start >= ${start}::date and r.bucket_start < ${end}::date
      group by w.close_id, s.series_id
      having sum(r.traces) > 0
      returning series_id, traces
    )
    select count(*)::integer as totals,
           coalesce(sum(w.traces) filter (where c.group_by = 'workspace'), 0)::bigint as traces
    from written w join usage.series s using (series_id) join usage.trace_scope c using (scope_id)
  `;
  const costs = close.withoutCosts ? [] : await costsOf(db, { closeId, month: name, ...counts });
  const { accept, by } = close;
  if (accept !== undefined) {
    const workspaces = close.required.map(({ entityId }) => entityId);
    const kept = await keptByClose(db, { closeId, period, workspaces });
    const digest = digestOfClose({ ...close, kept: { ...kept, costs } });
    if (!accept.includes(digest)) throw periodChanged(name);
  }
  const left = without.length === 0 ? "" : `, without ${without.join(", ")}`;
  const costless = close.withoutCosts ? ", without costs" : "";
  const detail = `${isMonth(period) ? name : `${start} to ${end}`}: ${counts.traces} traces in ${counts.totals} totals${left}${costless}`;
  await recordAction(db, by, { sourceId, action: CLOSE_ACTION, detail });
  return { state: "closed", ...counts, costs, accepted, without, settleAfterSeconds };
}

/**
 * Closes a month's costs with the workspaces and accepted contradictions of its close. A request with a digest fails, because
 * these costs cannot be previewed.
 */
async function closeCosts(
  db: Database,
  request: CloseRequest,
  { found, open: all }: { found: Closed; open: readonly OpenDay[] },
): Promise<CloseResult> {
  const { closeId, name, closedAt, ...closed } = found;
  const open = all.filter(
    ({ workspaceId, reason }) =>
      !found.without.includes(workspaceId) && !(found.accepted > 0 && DISAGREEMENTS.includes(reason)),
  );
  if (open.length > 0) return { state: "open", open, digest: null };
  if (request.accept !== undefined) throw periodChanged(name);
  const costs = await costsOf(db, { closeId, month: name, traces: closed.traces });
  const sums = costs.map(({ cost, currency }) => `${cost} ${currency}`).join(", ");
  const detail = `${name}: costs, ${sums || "none: it has no traces"}`;
  await recordAction(db, request.by, { sourceId: request.sourceId, action: COSTS_ACTION, detail });
  return { state: "costs_closed", closedAt, costs, ...closed };
}

async function closedBefore(db: Database, found: Closed): Promise<CloseResult> {
  const { closeId, closedAt, costsClosedAt, accepted, settleAfterSeconds, without } = found;
  const { totals: adjusted = 0, others = [] } = (await countAdjusted(db, [closeId])).get(closeId) ?? {};
  const since = { adjusted, restatedOthers: others };
  return { state: "closed_before", closedAt, costsClosedAt, accepted, settleAfterSeconds, without, ...since };
}

export function periodBeforeData(name: string): UsageError {
  return new UsageError({
    code: "period_before_data",
    message: `${name} ends before the data start.`,
    next: "Choose a later period. `usage-etl data-start` shows the data start of each source.",
  });
}

/** A closed period without workspaces would look like a period without usage. */
function nothingToClose(): UsageError {
  return new UsageError({
    code: "workspaces_unknown",
    message: "There is no workspace to close the period for.",
    next: "Run `usage-etl sync` first. At least one workspace must have no open day.",
  });
}

/** Fails without a price, because a missing price is not a cost of zero. */
async function costsOf(
  db: Database,
  { closeId, month, traces }: { closeId: number; month: string; traces: number },
): Promise<Cost[]> {
  const costs = await keepCosts(db, closeId);
  if (costs.length > 0 || traces === 0) return costs;
  throw new UsageError({
    code: "month_unpriced",
    message: `No price is valid for any trace of ${month}, so the month has no costs to close.`,
    next: "Run `usage-etl prices import FILE`, or add --without-costs to close the month without costs. You can close its costs later.",
  });
}

function periodChanged(name: string): UsageError {
  return new UsageError({
    code: "period_changed",
    message: `The figures or open days of ${name} changed after you looked at them. Nothing was closed.`,
    next: `Run \`usage-etl close ${name}\` or open the page of the month, check the figures again, and then close.`,
  });
}
