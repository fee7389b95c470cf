import type { SourceConfig } from "../../config/config.ts";
import { type PlannableSource, plannableSource } from "../../store/activity/plannable-source.ts";
import type { ServerCapability } from "../../store/catalog/server-capabilities.ts";
import type { Database } from "../../store/db/database.ts";
import type { OpenSource } from "../source/source.ts";
import type { KnownSource } from "../sync/asked-range.ts";

/** A source with its workspaces, without a request to the platform. */
export interface PreviewedSource {
  readonly slug: string;
  readonly dataStart: number;
  /** Platform ids; empty where the platform lists them and was never asked. */
  readonly workspaceIds: readonly string[];
  /** Undefined before the first contact: nothing is loaded. */
  readonly stored: StoredSource | undefined;
}

interface StoredSource {
  readonly db: Database;
  readonly source: KnownSource & {
    /** Strides that the server does not answer in, and whose daily retry is due. */
    readonly strideRetries: ReadonlySet<ServerCapability>;
  };
}

/** What the tables know of a configured source. Without a database: what is configured. */
export async function previewedSource(
  config: Pick<SourceConfig, "slug" | "dataStart" | "workspaceIds">,
  db: Database | undefined,
): Promise<PreviewedSource & { readonly names: PlannableSource["workspaces"] }> {
  const { slug } = config;
  const found = db && (await plannableSource(db, slug));
  if (db === undefined || found === undefined) {
    const { workspaceIds } = config;
    return { slug, dataStart: Date.parse(config.dataStart), workspaceIds, names: [], stored: undefined };
  }
  const { sourceId, capabilities, workspaces } = found;
  const dataStart = Date.parse(found.dataStart);
  const source = {
    ...{ sourceId, dataStart, meters: new Map(found.meters) },
    capabilities: new Set(capabilities.map(({ capability }) => capability)),
    strideRetries: new Set(capabilities.filter((one) => one.retryDue).map(({ capability }) => capability)),
  };
  const workspaceIds = workspaces.map(({ id }) => id);
  return { slug, dataStart, workspaceIds, names: workspaces, stored: { db, source } };
}

/** The same of a source after contact. */
export function previewedOpen(source: OpenSource): PreviewedSource {
  const { config, dataStart, meters, workspaces, store, sourceId, capabilities, strideRetries } = source;
  return {
    ...{ slug: config.slug, dataStart, workspaceIds: workspaces.map((one) => one.workspaceId) },
    stored: { db: store.db, source: { sourceId, dataStart, meters, capabilities, strideRetries } },
  };
}
