import { type RawBuilder, sql } from "kysely";
import { UsageError } from "../../base/errors.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import type { Store } from "../db/database.ts";
import { NOW } from "../db/expressions.ts";
import { type Database, query, queryValues } from "../db/query.ts";
import { chargesDue, notingCharges } from "../months/charges.ts";
import { clearFailures } from "./failures.ts";
import { forgetResponses } from "./source-meters.ts";
import { expectNoNames } from "./write-workspaces.ts";

/**
 * Writes `usage.source`. Workspaces, data start and meters decide which days are expected, so their changes make charges due.
 */

interface SourceSettings {
  readonly slug: string;
  readonly baseUrl: string;
  /** The configured start: a UTC day, `YYYY-MM-DD`. */
  readonly dataStart: string;
  readonly hourlyHours: number;
  /** Digest of key and configuration. A change of it clears kept failures and a refused key. */
  readonly configurationDigest: string;
  readonly keyDigest?: string;
  /** Meters that syncs keep, if the server counts them. Undefined: the stored choice stays. */
  readonly wantedMeters?: readonly Meter[];
  /** Names in the FOCUS views. Undefined: the host of the base URL. */
  readonly providerName?: string | undefined;
  readonly invoiceIssuerName?: string | undefined;
}

/** Once usage is loaded, a configured data start moves the stored one earlier only. */
export async function registerSource(store: Store, settings: SourceSettings): Promise<number> {
  return store.transaction(async ({ db }) => {
    const { slug, baseUrl, dataStart, hourlyHours, configurationDigest } = settings;
    const values = {
      slug,
      base_url: baseUrl,
      data_start: dataStart,
      hourly_hours: hourlyHours,
      configuration_digest: configurationDigest,
      ...(settings.keyDigest === undefined ? {} : { key_digest: settings.keyDigest }),
      ...(settings.wantedMeters === undefined ? {} : { wanted_meters: [...settings.wantedMeters] }),
      provider_name: settings.providerName ?? null,
      invoice_issuer_name: settings.invoiceIssuerName ?? null,
    };
    // Locks the table before the row, as bindOrganization does: the other order could deadlock.
    await sql`lock table usage.source in row exclusive mode`.execute(db);
    const stored = db.selectFrom("usage.source").where("slug", "=", slug);
    const before = await stored.selectAll().forUpdate().executeTakeFirst();
    if (before === undefined) {
      const { source_id } = await db
        .insertInto("usage.source")
        .values(values)
        .onConflict((known) => known.column("slug").doUpdateSet(values))
        .returning("source_id")
        .executeTakeFirstOrThrow();
      // Another process may have inserted the source meanwhile, with other settings.
      await chargesDue(db, source_id);
      return source_id;
    }
    const { source_id, data_start, wanted_meters } = before;
    const expectsOthers = sql<boolean>`(data_start, wanted_meters) is distinct from (${data_start}::date, ${wanted_meters}::text[])`;
    const after = await db
      .updateTable("usage.source")
      .set({ ...values, data_start: dataStartAfterContact(source_id, dataStart) })
      .where("source_id", "=", source_id)
      .returning(["data_start", expectsOthers.as("expectsOthers")])
      .executeTakeFirstOrThrow();
    if (after.data_start > data_start) await expectNoNames(db, source_id);
    if (after.expectsOthers) await chargesDue(db, source_id);
    if (before.configuration_digest !== configurationDigest) await clearRefusals(db, source_id);
    return source_id;
  });
}

/** The configured start if it is earlier, or if nothing was ever loaded; else the stored one. */
function dataStartAfterContact(sourceId: number, configured: string): RawBuilder<string> {
  return sql<string>`case
    when exists (
      select from usage.coverage v join usage.trace_scope c using (scope_id) where c.source_id = ${sourceId}
    ) or exists (select from usage.fetch_task where source_id = ${sourceId})
      then least(data_start, ${configured}::date)
    else ${configured}::date end`;
}

export async function setDataStart(db: Database, sourceId: number, day: string): Promise<void> {
  await notingCharges(sql`
    update usage.source set data_start = ${day} where source_id = ${sourceId} returning source_id
  `).execute(db);
}

/** Stores the workspaces that the configuration names. An empty list means all listed workspaces. */
export async function configureWorkspaces(
  db: Database,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] },
): Promise<void> {
  await notingCharges(sql`
    update usage.source set workspace_ids = ${workspaceIds}::text[]
    where source_id = ${sourceId} and workspace_ids <> ${workspaceIds}::text[]
    returning source_id
  `).execute(db);
}

/** Moves the start of the kept history. Returns it as text; undefined if the source is younger. */
export async function cutHistory(
  db: Database,
  { sourceId, keepDays }: { sourceId: number; keepDays: number },
): Promise<string | undefined> {
  const [cut] = await queryValues<string>(db)`
    update usage.source
    set history_since = greatest(history_since, now() - make_interval(days => ${keepDays}))
    where source_id = ${sourceId} and created_at < now() - make_interval(days => ${keepDays})
    returning history_since::text as cut
  `;
  return cut;
}

async function clearRefusals(db: Database, sourceId: number): Promise<void> {
  await forgetResponses(db, sourceId);
  await noteRefusal(db, sourceId, undefined);
  await clearFailures(db, sql`c.source_id = ${sourceId}`);
}

export async function wasRefusedWithin(db: Database, sourceId: number, ms: number): Promise<boolean> {
  const rows = await query(db)`
    select from usage.source
    where source_id = ${sourceId} and refused_at > now() - make_interval(secs => ${ms / 1000})
  `;
  return rows.length > 0;
}

/** Records that the platform refused the key (401, 403). Undefined clears it. */
export async function noteRefusal(
  db: Database,
  sourceId: number,
  refusal: { code: string; message: string } | undefined,
): Promise<void> {
  const { code: refused_code = null, message: refused_message = null } = refusal ?? {};
  const refused = { refused_at: refusal === undefined ? null : NOW, refused_code, refused_message };
  await db.updateTable("usage.source").set(refused).where("source_id", "=", sourceId).execute();
}

/**
 * Binds the source to the organisation of its key at first contact (rule 11 of docs/rules.md).
 *
 * Errors: `organization_changed` if the source was bound to another one; `workspace_shared` if another source of the same
 * organisation reads one of the workspaces.
 */
export async function bindOrganization(
  store: Store,
  binding: {
    sourceId: number;
    organizationId: string;
    organizationName: string | null;
    workspaceIds: readonly string[];
  },
): Promise<void> {
  await store.transaction(async ({ db }) => {
    // Two sources that bind at once must see each other.
    await sql`lock table usage.source in share row exclusive mode`.execute(db);
    const { sourceId, organizationId, organizationName } = binding;
    const stored = db.selectFrom("usage.source").where("source_id", "=", sourceId);
    const { slug, organization_id: bound } = await stored.selectAll().executeTakeFirstOrThrow();
    if (bound !== null && bound !== organizationId) {
      throw new UsageError({
        code: "organization_changed",
        message: `Source ${slug} is bound to organization ${bound}, but its key belongs to ${organizationId}.`,
        next: "Use a key of the first organization, or configure the other one as a source of its own (USAGE_SOURCES_FILE).",
      });
    }
    await refuseSharedWorkspace(db, slug, binding);
    const organization = { organization_id: organizationId, organization_name: organizationName };
    await db.updateTable("usage.source").set(organization).where("source_id", "=", sourceId).execute();
  });
}

async function refuseSharedWorkspace(
  db: Database,
  slug: string,
  binding: { sourceId: number; organizationId: string; workspaceIds: readonly string[] },
): Promise<void> {
  const [shared] = await query<{ slug: string; external_id: string }>(db)`
    select s.slug, e.external_id from usage.source s join usage.entity e using (source_id)
    where s.organization_id = ${binding.organizationId} and s.source_id <> ${binding.sourceId}
      and e.dimension = 'workspace' and e.external_id = any (${binding.workspaceIds}::text[])
    limit 1
  `;
  if (shared === undefined) return;
  throw new UsageError({
    code: "workspace_shared",
    message: `Sources ${shared.slug} and ${slug} both read workspace ${shared.external_id} of organization ${binding.organizationId}. Its usage would be counted twice.`,
    next: "Give each source its own workspaces (USAGE_WORKSPACE_IDS, or workspaceIds in USAGE_SOURCES_FILE).",
  });
}
