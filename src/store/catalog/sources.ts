import { sql } from "kysely";
import type { Meter } from "../../domain/usage/meter.ts";
import { UsageError } from "../../errors.ts";
import type { Database, Store, Transaction } from "../db/database.ts";
import { dataStartAfterContact, expectNoNames } from "./data-start.ts";

/** Identity and settings of a source in the process that opens it. */
interface SourceSettings {
  readonly slug: string;
  readonly baseUrl: string;
  /** The configured one: a UTC day, `YYYY-MM-DD`. */
  readonly dataStart: string;
  readonly hourlyHours: number;
  /** Digest of key and configuration. If it changes, kept failures and a refused key are cleared. */
  readonly configurationDigest: string;
  /** Digest of the key alone, which does not reveal it: by it the timeline tells that another one is used. */
  readonly keyDigest?: string;
  /** What its syncs are to keep, as far as the server counts it. Undefined: what is stored stays. */
  readonly wantedMeters?: readonly Meter[];
  /** Names in the FOCUS views. Undefined: the host of the base URL; the provider. */
  readonly providerName?: string | undefined;
  readonly invoiceIssuerName?: string | undefined;
}

/** Enters the source or updates its row, and returns its id. A configured data start moves the stored one earlier only. */
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
    // Table before row, like bindOrganization in another process: the other order could deadlock.
    await sql`lock table usage.source in row exclusive mode`.execute(db);
    const before = await db
      .selectFrom("source")
      .select(["source_id", "configuration_digest", "data_start"])
      .where("slug", "=", slug)
      .forUpdate()
      .executeTakeFirst();
    if (before === undefined) {
      const inserted = await db
        .insertInto("source")
        .values(values)
        .onConflict((conflict) => conflict.column("slug").doUpdateSet(values))
        .returning("source_id")
        .executeTakeFirstOrThrow();
      return inserted.source_id;
    }
    const after = await db
      .updateTable("source")
      .set({ ...values, data_start: dataStartAfterContact(before.source_id, dataStart) })
      .where("source_id", "=", before.source_id)
      .returning("data_start")
      .executeTakeFirstOrThrow();
    if (after.data_start > before.data_start) await expectNoNames(db, before.source_id);
    if (before.configuration_digest !== configurationDigest) await clearRefusals(db, before.source_id);
    return before.source_id;
  });
}

async function clearRefusals(db: Database, sourceId: number): Promise<void> {
  // Another key may read more.
  await sql`update usage.source_meter set ask_again_at = now() where source_id = ${sourceId}`.execute(db);
  await db
    .updateTable("source")
    .set({ refused_at: null, refused_code: null, refused_message: null })
    .where("source_id", "=", sourceId)
    .execute();
  await db
    .deleteFrom("failure")
    .where("scope_id", "in", (q) =>
      q.selectFrom("scope").select("scope_id").where("source_id", "=", sourceId),
    )
    .execute();
}

/** Whether the platform refused the key of this source within the last milliseconds. */
export async function wasRefusedWithin(db: Database, sourceId: number, ms: number): Promise<boolean> {
  const row = await db
    .selectFrom("source")
    .select("source_id")
    .where("source_id", "=", sourceId)
    .where("refused_at", ">", sql<Date>`now() - make_interval(secs => ${ms / 1000})`)
    .executeTakeFirst();
  return row !== undefined;
}

/** Keeps that the platform refused the key (401, 403). Undefined clears it after an answer. */
export async function noteRefusal(
  db: Database,
  sourceId: number,
  refusal: { code: string; message: string } | undefined,
): Promise<void> {
  await db
    .updateTable("source")
    .set({
      refused_at: refusal === undefined ? null : sql<Date>`now()`,
      refused_code: refusal?.code ?? null,
      refused_message: refusal?.message ?? null,
    })
    .where("source_id", "=", sourceId)
    .execute();
}

/**
 * Binds the source to the organisation of its key at first contact (rule 11 of docs/architecture.md).
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
  await store.transaction(async (transaction) => {
    const { db } = transaction;
    // Two sources that bind at once must see each other.
    await sql`lock table usage.source in share row exclusive mode`.execute(db);
    const source = await db
      .selectFrom("source")
      .select(["slug", "organization_id"])
      .where("source_id", "=", binding.sourceId)
      .executeTakeFirstOrThrow();
    if (source.organization_id !== null && source.organization_id !== binding.organizationId) {
      throw new UsageError({
        code: "organization_changed",
        message: `Source ${source.slug} is bound to organization ${source.organization_id}, but its key belongs to ${binding.organizationId}.`,
        next: "Use a key of the first organization, or configure the other one as a source of its own (USAGE_SOURCES_FILE).",
      });
    }
    await refuseSharedWorkspace(transaction, source.slug, binding);
    await db
      .updateTable("source")
      .set({ organization_id: binding.organizationId, organization_name: binding.organizationName })
      .where("source_id", "=", binding.sourceId)
      .execute();
  });
}

async function refuseSharedWorkspace(
  { db }: Transaction,
  slug: string,
  binding: { sourceId: number; organizationId: string; workspaceIds: readonly string[] },
): Promise<void> {
  if (binding.workspaceIds.length === 0) return;
  const shared = await db
    .selectFrom("source")
    .innerJoin("entity", "entity.source_id", "source.source_id")
    .select(["source.slug", "entity.external_id"])
    .where("source.organization_id", "=", binding.organizationId)
    .where("source.source_id", "!=", binding.sourceId)
    .where("entity.dimension", "=", "workspace")
    .where("entity.external_id", "in", [...binding.workspaceIds])
    .executeTakeFirst();
  if (shared === undefined) return;
  throw new UsageError({
    code: "workspace_shared",
    message: `Sources ${shared.slug} and ${slug} both read workspace ${shared.external_id} of organization ${binding.organizationId}. Its usage would be counted twice.`,
    next: "Give each source its own workspaces (USAGE_WORKSPACE_IDS, or workspaceIds in USAGE_SOURCES_FILE).",
  });
}
