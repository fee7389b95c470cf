import { sql } from "kysely";
import { DISAGREEMENTS, type OpenDay } from "../../domain/months/open-days.ts";
import type { RestatementCount } from "../../domain/proof/restatement.ts";
import { UsageError } from "../../errors.ts";
import { lockScopesWhere } from "../catalog/scopes.ts";
import type { Store } from "../db/database.ts";
import { type Database, queryOne } from "../db/query.ts";
import { type Actor, recordAction } from "../work/operator-actions.ts";
import { digestOfClose, digestToClose } from "./close-digest.ts";
import { CLOSE_ACTION, type ClosedMonth, COSTS_ACTION, closedMonth } from "./closed-months.ts";
import { type Cost, keepCosts } from "./keep-costs.ts";
import { countAdjusted } from "./month-adjustments.ts";
import { type CloseRange, type OpenDays, openDaysOf, type RequiredWorkspace } from "./open-days.ts";
import { keptByClose } from "./totals-to-close.ts";

export type CloseResult =
  | ({
      readonly state: "closed";
      readonly totals: number;
      readonly traces: number;
      /** Empty: without costs, or without traces. */
      readonly costs: readonly Cost[];
    } & ClosedWith)
  /** The month was closed earlier without costs, and they were closed now. */
  | ({
      readonly state: "costs_closed";
      readonly closedAt: string;
      readonly costs: readonly Cost[];
    } & ClosedWith)
  | ({
      readonly state: "closed_before";
      readonly closedAt: string;
      /** Null: it has no costs until they are closed. */
      readonly costsClosedAt: string | null;
      readonly adjusted: number;
      /** Of other usage than all traces, since the close. */
      readonly restatedOthers: readonly RestatementCount[];
    } & ClosedWith)
  | {
      readonly state: "open";
      readonly open: readonly OpenDay[];
      /** Digest of a close with `acceptDisagreements`; null if something else keeps the month open. */
      readonly digest: string | null;
    };

interface ClosedWith {
  /** Daily figures that were closed although the platform contradicts itself on them. */
  readonly accepted: number;
  readonly without: readonly string[];
  readonly settleAfterSeconds: number;
}

export interface CloseRequest {
  readonly sourceId: number;
  readonly monthStart: string;
  readonly settleAfterMs: number;
  readonly acceptDisagreements?: boolean;
  readonly without?: readonly string[];
  /** Closes the traces alone. The month has no costs until it is closed again with them. */
  readonly withoutCosts?: boolean;
  /** Digests (`digestOfClose`) of previews. A close with another digest is refused. Default: any. */
  readonly expectedDigests?: readonly string[];
  readonly by: Actor;
}

interface Close extends CloseRequest {
  readonly without: readonly string[];
  readonly required: readonly RequiredWorkspace[];
  readonly accepted: number;
}

/**
 * Stores the totals of a month by dimension, workspace and id, if every day of it from the data start on is loaded, final and
 * proved; else returns the open days. Loads of the source wait meanwhile, so check and totals see the same records. A month
 * closes once, and so do its costs: with it, or later if it was closed without them. Errors: `month_before_data`,
 * `workspaces_unknown`, `month_unpriced`, `month_changed`; then nothing was closed.
 */
export async function closeMonth(store: Store, request: CloseRequest): Promise<CloseResult> {
  const { sourceId, monthStart, withoutCosts = false } = request;
  const asked = { without: request.without ?? [], acceptDisagreements: request.acceptDisagreements ?? false };
  return store.transaction(async ({ db }) => {
    await lockScopesWhere(db, sql`source_id = ${sourceId} and stride = 'day'`);
    const found = await closedMonth(db, { sourceId, monthStart });
    if (found !== undefined && (found.costsClosedAt !== null || withoutCosts)) return closedBefore(db, found);
    const range = await monthRange(db, request);
    if (range.start >= range.end) throw monthBeforeData(monthStart.slice(0, 7));
    // Costs close with the same workspaces and accepted contradictions as the month.
    const { without, acceptDisagreements } =
      found === undefined ? asked : { without: found.without, acceptDisagreements: found.accepted > 0 };
    const [days] = await openDaysOf(db, { sourceId, ranges: [range], without, acceptDisagreements });
    const { required, open, accepted } = days as OpenDays;
    if (required.length === 0) throw nothingToClose();
    const close = { ...request, without, required, accepted };
    if (open.length === 0) return found === undefined ? keepClose(db, close) : closeCosts(db, close, found);
    const canAccept = open.every(({ reason }) => DISAGREEMENTS.includes(reason));
    return { state: "open", open, digest: canAccept ? await digestToClose(db, close) : null };
  });
}

/** The expected days of the month. The data start stays as it is until the transaction ends. */
async function monthRange(db: Database, { sourceId, monthStart }: CloseRequest): Promise<CloseRange> {
  const { start, end } = await queryOne<{ start: Date; end: Date }>(db)`
    select greatest(data_start, ${monthStart}::date)::timestamp at time zone 'UTC' as start,
           (${monthStart}::date + interval '1 month') at time zone 'UTC' as "end"
    from usage.source where source_id = ${sourceId}
    for no key update
  `;
  return { start: start.getTime(), end: end.getTime(), othersStart: Date.parse(monthStart) };
}

async function keepClose(db: Database, close: Close): Promise<CloseResult> {
  const { sourceId, monthStart, accepted, without } = close;
  const settleAfterSeconds = close.settleAfterMs / 1000;
  const { closeId } = await queryOne<{ closeId: number }>(db)`
    insert into usage.month_close (source_id, month_start, accepted_disagreements, settle_after_seconds)
    values (${sourceId}, ${monthStart}, ${accepted}, ${settleAfterSeconds})
    returning close_id as "closeId"
  `;
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
        and r.bucket_start >= ${monthStart}::date
        and r.bucket_start < (${monthStart}::date + interval '1 month')::date
      group by w.close_id, s.series_id
      having sum(r.traces) > 0
      returning series_id, traces
    )
    select count(*)::integer as totals,
           coalesce(sum(w.traces) filter (where c.group_by = 'workspace'), 0)::bigint as traces
    from written w join usage.series s using (series_id) join usage.trace_scope c using (scope_id)
  `;
  const costs = close.withoutCosts
    ? []
    : await costsOf(db, { closeId, month: monthStart.slice(0, 7), ...counts });
  const { expectedDigests: expected, by } = close;
  if (expected !== undefined) {
    const workspaces = close.required.map(({ entityId }) => entityId);
    const kept = await keptByClose(db, { closeId, monthStart, workspaces });
    const digest = digestOfClose({ ...close, kept: { ...kept, costs } });
    if (!expected.includes(digest)) throw monthChanged(monthStart.slice(0, 7));
  }
  const left = without.length === 0 ? "" : `, without ${without.join(", ")}`;
  const costless = close.withoutCosts ? ", without costs" : "";
  const detail = `${monthStart.slice(0, 7)}: ${counts.traces} traces in ${counts.totals} totals${left}${costless}`;
  await recordAction(db, by, { sourceId, action: CLOSE_ACTION, detail });
  return { state: "closed", ...counts, costs, accepted, without: [...without].sort(), settleAfterSeconds };
}

/** Nobody can have previewed these costs, so a digest never fits. */
async function closeCosts(db: Database, close: Close, found: ClosedMonth): Promise<CloseResult> {
  const { closeId, month, closedAt, ...closed } = found;
  if (close.expectedDigests !== undefined) throw monthChanged(month);
  const costs = await costsOf(db, { closeId, month, traces: closed.traces });
  const sums = costs.map(({ cost, currency }) => `${cost} ${currency}`).join(", ");
  const detail = `${month}: costs, ${sums || "none: it has no traces"}`;
  await recordAction(db, close.by, { sourceId: close.sourceId, action: COSTS_ACTION, detail });
  return { state: "costs_closed", closedAt, costs, ...closed };
}

async function closedBefore(db: Database, found: ClosedMonth): Promise<CloseResult> {
  const { closeId, closedAt, costsClosedAt, accepted, settleAfterSeconds, without } = found;
  const { totals: adjusted = 0, others = [] } = (await countAdjusted(db, [closeId])).get(closeId) ?? {};
  const since = { adjusted, restatedOthers: others };
  return { state: "closed_before", closedAt, costsClosedAt, accepted, settleAfterSeconds, without, ...since };
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

/** A missing price is not the same as a cost of zero. */
async function costsOf(
  db: Database,
  { closeId, month, traces }: { closeId: number; month: string; traces: number },
): Promise<Cost[]> {
  const costs = await keepCosts(db, closeId);
  if (costs.length > 0 || traces === 0) return costs;
  throw new UsageError({
    code: "month_unpriced",
    message: `No price is valid for any trace of ${month}, so it has no costs to close.`,
    next: "Import its prices with `usage-etl prices import FILE`. Or add --without-costs: then the month has no costs anywhere, until you close it again with prices.",
  });
}

function monthChanged(month: string): UsageError {
  return new UsageError({
    code: "month_changed",
    message: `What a close of ${month} keeps or accepts changed since you looked at it. Nothing was closed.`,
    next: `Look at it again: \`usage-etl close ${month}\` or its page. Close the month then.`,
  });
}
