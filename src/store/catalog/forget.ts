import { sql } from "kysely";
import { UsageError } from "../../errors.ts";
import type { Database, Store } from "../db/database.ts";
import { type Actor, type NewAction, recordAction } from "../work/operator-actions.ts";
import { forgetScopes } from "./forget-scopes.ts";
import { type Holdings, holdingsOf } from "./holdings.ts";
import { lockScopesWhere } from "./scopes.ts";

/** What a workspace or a source held, and whether it is gone now. */
export interface Forgotten {
  readonly forgotten: boolean;
  readonly held: Holdings;
}

interface ForgetHow {
  /** Also if it holds records, restatements or prices. */
  readonly withRecords: boolean;
  /** Only says what would go. */
  readonly dryRun: boolean;
  /** Who gives the order, which is then kept with it. */
  readonly by?: Actor;
}

/**
 * Removes a workspace with all that depends on it, in one transaction. It locks the scopes, so it waits for running loads, and
 * loads that come later find their scopes gone and are discarded. New scopes wait for the lock of the workspace, and fail.
 *
 * Errors: `month_closed`, `records_kept`; then nothing has changed.
 */
export async function forgetWorkspace(
  store: Store,
  { sourceId, workspaceId, ...how }: { sourceId: number; workspaceId: string } & ForgetHow,
): Promise<Forgotten> {
  return store.transaction(async ({ db }) => {
    const { rows } = await sql<{ entityId: number }>`
      select entity_id as "entityId" from usage.entity
      where source_id = ${sourceId} and dimension = 'workspace' and external_id = ${workspaceId}
    `.execute(db);
    const { entityId } = rows[0] as { entityId: number };
    const ofWorkspace = sql`workspace_id = ${entityId}`;
    await lockScopesWhere(db, ofWorkspace);
    // After the scopes: other transactions lock in this order too.
    await sql`select from usage.source where source_id = ${sourceId} for no key update`.execute(db);
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
    await record(db, how, {
      sourceId,
      action: "workspace.forget",
      detail: `workspace ${workspaceId}: ${sizeOf(held)}`,
    });
    return { forgotten: true, held };
  });
}

/** Tables whose rows name their source, each before those it refers to. */
const OF_SOURCE = [
  ...[
    "fetch",
    "late_change",
    "control_check",
    "provider_total",
    "bill_part",
    "usage_limit",
    "billing_period",
    "period_close",
    "alert",
    "source_fact",
    "source_meter",
    "price",
    "charge",
    "fetch_task",
    "run",
    "backfill",
    "probe",
  ],
  ...["entity", "source"],
];

/**
 * Removes a source with all that depends on it, in one transaction. The lock of its row keeps everything else from entering
 * rows of it, which then fail.
 *
 * Errors: `source_in_use`, `month_closed`, `records_kept`; then nothing has changed.
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
    const { rows } = await sql<{ id: number }>`
      select entity_id as id from usage.workspace join usage.entity using (entity_id) where source_id = ${sourceId}
    `.execute(db);
    const held = await holdingsOf(db, { scopeIds, sourceId, workspaces: rows.map(({ id }) => id) });
    refuseClosed(`Source ${slug}`, held);
    if (how.dryRun) return { forgotten: false, held };
    await refuseInUse(db, { sourceId, slug });
    refuseRecords(`Source ${slug}`, held, how);
    // The row of the source goes, and this one stays.
    await record(db, how, {
      sourceId: null,
      action: "source.forget",
      detail: `source ${slug}: ${sizeOf(held)}`,
    });
    await forgetScopes(db, { sourceId, scopeIds });
    await sql`
      delete from usage.probe_figure f using usage.probe p where p.probe_id = f.probe_id and p.source_id = ${sourceId}
    `.execute(db);
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

async function record(db: Database, { by }: ForgetHow, action: NewAction): Promise<void> {
  if (by !== undefined) await recordAction(db, by, action);
}

function sizeOf({ records, restatements, prices }: Holdings): string {
  return `${records} records, ${restatements} restatements, ${prices} prices`;
}

/** A closed month stays as it was closed: totals, costs, and which workspaces it was about. */
function refuseClosed(what: string, { closedMonths }: Holdings): void {
  if (closedMonths.length === 0) return;
  throw new UsageError({
    code: "month_closed",
    message: `${what} cannot be forgotten: ${closedMonths.join(", ")} is closed with it, and a closed month keeps what it was closed with.`,
    next: "Leave it as it is. Where it is not configured, nothing loads it any more.",
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
    message: `${what} holds ${numbers.join(", ")}. They cannot be loaded again once the platform has forgotten it too.`,
    next: "Nothing was changed. To remove them for good, add --with-records.",
  });
}

/** A request without an end is under way, or its process died. An answer takes less than ten minutes. */
async function refuseInUse(
  db: Database,
  { sourceId, slug }: { sourceId: number; slug: string },
): Promise<void> {
  const { rows } = await sql`
    select from usage.fetch
    where source_id = ${sourceId} and outcome = 'running' and fetched_at > now() - interval '10 minutes'
    union all
    select from usage.fetch_task where source_id = ${sourceId} and open_claims > 0 and leased_until > now()
    limit 1
  `.execute(db);
  if (rows.length === 0) return;
  throw new UsageError({
    code: "source_in_use",
    message: `A process is loading source ${slug} now.`,
    next: "Take it out of the configuration of every process, restart them, and try again in ten minutes.",
  });
}
