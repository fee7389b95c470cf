import { type RawBuilder, sql } from "kysely";
import type { Meter } from "../../domain/usage/meter.ts";
import { UsageError } from "../../errors.ts";
import type { Store } from "../db/database.ts";
import { type Database, query, queryOne, queryValues } from "../db/query.ts";
import { dataStartAfterContact, expectNoNames } from "./data-start.ts";
import { forgetAnswers } from "./source-meters.ts";

interface SourceSettings {
  readonly slug: string;
  readonly baseUrl: string;
  /** The configured start: a UTC day, `YYYY-MM-DD`. */
  readonly dataStart: string;
  readonly hourlyHours: number;
  /** Digest of key and configuration. If it changes, kept failures and a refused key are cleared. */
  readonly configurationDigest: string;
  /** Digest of the key, by which the timeline recognizes a new one. */
  readonly keyDigest?: string;
  /** Meters that syncs keep, if the server counts them. Undefined: the stored choice stays. */
  readonly wantedMeters?: readonly Meter[];
  /** Names in the FOCUS views. Undefined: the host of the base URL. */
  readonly providerName?: string | undefined;
  readonly invoiceIssuerName?: string | undefined;
}

/** A configured data start moves the stored one earlier only. */
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
    const [before] = await query<{ id: number; digest: string; dataStart: string }>(db)`
      select source_id as id, configuration_digest as digest, data_start as "dataStart"
      from usage.source where slug = ${slug} for update
    `;
    if (before === undefined) {
      const [id] = await queryValues<number>(db)`
        insert into usage.source (${sql.join(Object.keys(values).map((column) => sql.id(column)))})
        values (${sql.join(Object.values(values))})
        on conflict (slug) do update set ${assigned(values)} returning source_id as id
      `;
      return id as number;
    }
    const moved = { ...values, data_start: dataStartAfterContact(before.id, dataStart) };
    const after = await query<{ dataStart: string }>(db)`
      update usage.source set ${assigned(moved)} where source_id = ${before.id} returning data_start as "dataStart"
    `;
    if ((after[0]?.dataStart ?? "") > before.dataStart) await expectNoNames(db, before.id);
    if (before.digest !== configurationDigest) await clearRefusals(db, before.id);
    return before.id;
  });
}

function assigned(values: Readonly<Record<string, unknown>>): RawBuilder<unknown> {
  return sql.join(Object.entries(values).map(([column, value]) => sql`${sql.id(column)} = ${value}`));
}

async function clearRefusals(db: Database, sourceId: number): Promise<void> {
  await forgetAnswers(db, sourceId);
  await noteRefusal(db, sourceId, undefined);
  await sql`
    delete from usage.failure where scope_id in (select scope_id from usage.scope where source_id = ${sourceId})
  `.execute(db);
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
  await sql`
    update usage.source
    set refused_at = ${refusal === undefined ? null : sql`now()`}, refused_code = ${refusal?.code ?? null},
        refused_message = ${refusal?.message ?? null}
    where source_id = ${sourceId}
  `.execute(db);
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
    const { slug, bound } = await queryOne<{ slug: string; bound: string | null }>(db)`
      select slug, organization_id as bound from usage.source where source_id = ${binding.sourceId}
    `;
    if (bound !== null && bound !== binding.organizationId) {
      throw new UsageError({
        code: "organization_changed",
        message: `Source ${slug} is bound to organization ${bound}, but its key belongs to ${binding.organizationId}.`,
        next: "Use a key of the first organization, or configure the other one as a source of its own (USAGE_SOURCES_FILE).",
      });
    }
    await refuseSharedWorkspace(db, slug, binding);
    await sql`
      update usage.source
      set organization_id = ${binding.organizationId}, organization_name = ${binding.organizationName}
      where source_id = ${binding.sourceId}
    `.execute(db);
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
