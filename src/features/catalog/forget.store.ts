import { sql } from "kysely";
import { UsageError } from "../../core/base/errors.ts";
import { lockScopesWhere, lockSource } from "../../core/store/catalog/scopes.ts";
import type { Store } from "../../core/store/db/database.ts";
import { anyOf } from "../../core/store/db/expressions.ts";
import { type Database, query, queryOne, queryValues, type Row } from "../../core/store/db/query.ts";
import { chargesDue } from "../../core/store/months/charges.ts";
import { CLOSE_NAME } from "../../core/store/months/closes.ts";
import { type Actor, recordAction } from "../../core/store/work/operator-actions.ts";

export interface Forgotten {
  readonly forgotten: boolean;
  readonly held: Holdings;
}

interface ForgetHow {
  readonly withRecords: boolean;
  readonly dryRun: boolean;
  readonly by: Actor;
}

/**
 * Removes a workspace and everything that depends on it, in one transaction. The locks of its scopes wait for running loads.
 * Later loads find no scopes and are discarded. Inserts of scopes wait for the workspace's lock, then fail. Errors:
 * `month_closed`, `records_kept`; then nothing has changed.
 */
export async function forgetWorkspace(
  store: Store,
  { sourceId, workspaceId, ...how }: { sourceId: number; workspaceId: string } & ForgetHow,
): Promise<Forgotten> {
  return store.transaction(async ({ db }) => {
    const named = { source_id: sourceId, dimension: "workspace", external_id: workspaceId } as const;
    const entities = db.selectFrom("usage.entity").where((entity) => entity.and(named));
    const { entityId } = await entities.select("entity_id as entityId").executeTakeFirstOrThrow();
    const ofWorkspace = sql`workspace_id = ${entityId}`;
    await lockScopesWhere(db, ofWorkspace);
    // After the scopes, as in other transactions: no deadlock.
    await lockSource(db, sourceId);
    await sql`select from usage.workspace where entity_id = ${entityId} for update`.execute(db);
    const scopeIds = await lockScopesWhere(db, ofWorkspace);
    const held = await holdingsOf(db, { scopeIds, workspaces: [entityId], sourceId: null });
    refuseClosed(`Workspace ${workspaceId}`, held);
    if (how.dryRun) return { forgotten: false, held };
    refuseRecords(`Workspace ${workspaceId}`, held, how);
    await forgetScopes(db, { sourceId, scopeIds });
    await sql`
      update usage.backfill set workspace_ids = array_remove(workspace_ids, ${workspaceId})
      where source_id = ${sourceId} and ${workspaceId} = any (workspace_ids)
    `.execute(db);
    for (const table of ["price", "closed_workspace"])
      await sql`delete from ${sql.id("usage", table)} where workspace_id = ${entityId}`.execute(db);
    for (const table of ["workspace", "entity_name", "entity"])
      await sql`delete from ${sql.id("usage", table)} where entity_id = ${entityId}`.execute(db);
    await chargesDue(db, sourceId);
    await recordAction(db, how.by, {
      sourceId,
      action: "workspace.forget",
      detail: `workspace ${workspaceId}: ${sizeOf(held)}`,
    });
    return { forgotten: true, held };
  });
}

const OF_SOURCE = [
  ...[
    "fetch",
    "recent_naming",
    "late_change",
    "control_check",
    "provider_total",
    "bill_part",
    "logged_change",
    "unloaded_workspace",
    "added_line",
    "statement_line",
    "usage_limit",
    "billing_period",
    "invoice",
    "notification",
    "route_state",
    "source_fact",
    "source_meter",
    "price",
    "charge",
    "charge_day",
    "fetch_task",
    "run",
    "backfill",
  ],
  ...["entity", "source"],
];

/**
 * Removes a source and everything that depends on it, in one transaction. Inserts for the source wait for the lock of its row
 * and then fail. Errors: `source_in_use`, `month_closed`, `records_kept`; then nothing has changed.
 */
export async function forgetSource(
  store: Store,
  { sourceId, slug, ...how }: { sourceId: number; slug: string } & ForgetHow,
): Promise<Forgotten> {
  return store.transaction(async ({ db }) => {
    const ofSource = sql`source_id = ${sourceId}`;
    await lockScopesWhere(db, ofSource);
    await sql`select from usage.source where source_id = ${sourceId} for update`.execute(db);
    const scopeIds = await lockScopesWhere(db, ofSource);
    const ids = await queryValues<Row<"usage.workspace">["entityId"]>(db)`
      select entity_id as id from usage.workspace join usage.entity using (entity_id) where source_id = ${sourceId}
    `;
    const held = await holdingsOf(db, { scopeIds, sourceId, workspaces: ids });
    refuseClosed(`Source ${slug}`, held);
    if (how.dryRun) return { forgotten: false, held };
    await refuseInUse(db, { sourceId, slug });
    refuseRecords(`Source ${slug}`, held, how);
    // Without a source id, this row outlives the source.
    await recordAction(db, how.by, {
      sourceId: null,
      action: "source.forget",
      detail: `source ${slug}: ${sizeOf(held)}`,
    });
    await forgetScopes(db, { sourceId, scopeIds });
    for (const table of OF_SOURCE) {
      if (table === "entity") await forgetEntityParts(db, sourceId);
      await sql`delete from ${sql.id("usage", table)} where source_id = ${sourceId}`.execute(db);
    }
    return { forgotten: true, held };
  });
}

async function forgetEntityParts(db: Database, sourceId: number): Promise<void> {
  for (const table of ["workspace", "entity_name"]) {
    await sql`
      delete from ${sql.id("usage", table)} p using usage.entity e
      where e.entity_id = p.entity_id and e.source_id = ${sourceId}
    `.execute(db);
  }
}

function sizeOf({ records, restatements, prices }: Holdings): string {
  return `${records} records, ${restatements} restatements, ${prices} prices`;
}

function refuseClosed(what: string, { closedMonths }: Holdings): void {
  if (closedMonths.length === 0) return;
  throw new UsageError({
    code: "month_closed",
    message: `${what} cannot be forgotten: it is part of a closed month (${closedMonths.join(", ")}), and a closed month is never changed.`,
    next: "Keep the source or workspace. If it is not configured, no sync loads it.",
  });
}

function refuseRecords(what: string, held: Holdings, { withRecords }: ForgetHow): void {
  const { records, restatements, prices } = held;
  if (withRecords || records + restatements + prices === 0) return;
  const numbers = [
    `${records.toLocaleString("en-US")} records`,
    `${restatements.toLocaleString("en-US")} restatements`,
    `${prices.toLocaleString("en-US")} prices`,
  ];
  throw new UsageError({
    code: "records_kept",
    message: `${what} has ${numbers.join(", ")}. After the platform deletes its own copy, these cannot be loaded again.`,
    next: "Nothing was changed. To delete them permanently, add --with-records.",
  });
}

/** A response takes less than ten minutes. So the process of an older request without an end has died. */
async function refuseInUse(
  db: Database,
  { sourceId, slug }: { sourceId: number; slug: string },
): Promise<void> {
  const rows = await query(db)`
    select from usage.fetch
    where source_id = ${sourceId} and outcome = 'running' and fetched_at > now() - interval '10 minutes'
    union all
    select from usage.fetch_task where source_id = ${sourceId} and open_claims > 0 and leased_until > now()
    limit 1
  `;
  if (rows.length === 0) return;
  throw new UsageError({
    code: "source_in_use",
    message: `A process is loading source ${slug} now.`,
    next: "Remove the source from the configuration of every process, restart the processes, and try again in ten minutes.",
  });
}

const BY_SERIES = ["hourly_record", "dated_record", "monthly_total", "restatement"] as const;
const BY_SCOPE = [
  "coverage",
  "failure",
  "became_final",
  "withdrawal",
  "reconciled",
  "matched_total",
  "difference",
] as const;

async function forgetScopes(
  db: Database,
  { sourceId, scopeIds }: { sourceId: number; scopeIds: readonly number[] },
): Promise<void> {
  const ids = sql`${scopeIds}::integer[]`;
  await forgetTasks(db, { sourceId, scopeIds });
  for (const table of BY_SERIES) {
    await sql`
      delete from ${sql.id("usage", table)} r using usage.series s
      where s.series_id = r.series_id and s.scope_id = any (${ids})
    `.execute(db);
  }
  for (const table of BY_SCOPE) {
    await sql`delete from ${sql.id("usage", table)} where scope_id = any (${ids})`.execute(db);
  }
  const entityIds = await queryValues<Row<"usage.series">["entityId"]>(db)`
    delete from usage.series where scope_id = any (${ids}) returning entity_id
  `;
  await forgetUnused(db, entityIds);
  await db.deleteFrom("usage.scope").where("scope_id", "=", anyOf(scopeIds)).execute();
}

/**
 * Removes scopes from fetch tasks. Tasks of a sync are deleted and planned again. Tasks of a backfill lose the scopes; queued
 * tasks go back to waiting, so a worker that still runs one cannot end it.
 */
async function forgetTasks(
  db: Database,
  { sourceId, scopeIds }: { sourceId: number; scopeIds: readonly number[] },
): Promise<void> {
  const ids = sql`${scopeIds}::integer[]`;
  await sql`
    delete from usage.fetch_task
    where source_id = ${sourceId} and scope_ids && ${ids} and (backfill_id is null or scope_ids <@ ${ids})
  `.execute(db);
  await sql`
    update usage.fetch_task s
    set scope_ids = left_over.scope_ids, workspace_ids = left_over.workspace_ids, leased_until = null,
        state = case when s.state = 'queued' then 'waiting' else s.state end
    from usage.fetch_task t
    cross join lateral (
      select array_agg(u.scope_id order by u.n) as scope_ids, array_agg(u.workspace_id order by u.n) as workspace_ids
      from unnest(t.scope_ids, t.workspace_ids) with ordinality u (scope_id, workspace_id, n)
      where u.scope_id <> all (${ids})
    ) left_over
    where t.task_id = s.task_id and t.source_id = ${sourceId} and t.scope_ids && ${ids}
  `.execute(db);
}

/** A project, user or key that a load is about to use stays, which does no harm. */
async function forgetUnused(db: Database, entityIds: readonly number[]): Promise<void> {
  const unused = await queryValues<Row<"usage.entity">["entityId"]>(db)`
    select e.entity_id from usage.entity e
    where e.entity_id = any (${[...new Set(entityIds)]}::integer[]) and e.dimension <> 'workspace'
      and not exists (select from usage.series s where s.entity_id = e.entity_id)
    order by 1 for update skip locked
  `;
  await db.deleteFrom("usage.entity_name").where("entity_id", "=", anyOf(unused)).execute();
  await db.deleteFrom("usage.entity").where("entity_id", "=", anyOf(unused)).execute();
}

interface Holdings {
  readonly records: number;
  readonly restatements: number;
  readonly loadedIntervals: number;
  readonly failures: number;
  readonly differences: number;
  readonly fetchTasks: number;
  readonly prices: number;
  readonly closedMonths: readonly string[];
  readonly leftOutMonths: readonly string[];
}

async function holdingsOf(
  db: Database,
  of: { scopeIds: readonly number[]; workspaces: readonly number[]; sourceId: number | null },
): Promise<Holdings> {
  const { sourceId } = of;
  const scopes = sql`any (${of.scopeIds}::integer[])`;
  const workspaces = sql`any (${of.workspaces}::integer[])`;
  return queryOne<Holdings>(db)`
    with mine as materialized (select series_id from usage.series where scope_id = ${scopes})
    select ((select count(*) from usage.hourly_record join mine using (series_id))
             + (select count(*) from usage.dated_record join mine using (series_id)))::bigint as records,
           (select count(*)::integer from usage.restatement join mine using (series_id)) as restatements,
           (select count(*)::integer from usage.coverage where scope_id = ${scopes}) as "loadedIntervals",
           (select count(*)::integer from usage.failure where scope_id = ${scopes}) as failures,
           (select count(*)::integer from usage.difference where scope_id = ${scopes}) as differences,
           (select count(*)::integer from usage.fetch_task
            where scope_ids && ${of.scopeIds}::integer[] or source_id = ${sourceId}) as "fetchTasks",
           (select count(*)::integer from usage.price
            where workspace_id = ${workspaces} or source_id = ${sourceId}) as prices,
           array(select distinct ${CLOSE_NAME} from usage.close m
                 left join usage.closed_workspace w on w.close_id = m.close_id and w.workspace_id = ${workspaces}
                 where m.source_id = ${sourceId} or not w.is_left_out
                   or (w.is_left_out and exists (select from mine))
                   or exists (
                     select from usage.closed_correction k where k.close_id = m.close_id and k.workspace_id = ${workspaces}
                   )
                 order by 1) as "closedMonths",
           array(select distinct ${CLOSE_NAME} from usage.close m
                 join usage.closed_workspace w using (close_id)
                 where w.workspace_id = ${workspaces} and w.is_left_out order by 1) as "leftOutMonths"
  `;
}
