import { configurationDigest, type EmailPolicy, type SourceConfig } from "../../config/config.ts";
import { HOUR_MS } from "../../domain/time/stride.ts";
import type { BillingClient } from "../../platform/billing/billing.ts";
import { capabilitiesOf, type ServerCapability } from "../../store/catalog/server-capabilities.ts";
import { noteRefusal, registerSource } from "../../store/catalog/sources.ts";
import { type StoredWorkspace, workspacesOf } from "../../store/catalog/workspaces.ts";
import type { Store } from "../../store/db/database.ts";
import { liftFetchNumbers } from "../../store/load/fetch-ledger.ts";
import { type AccessProof, accessProofOf } from "./access.ts";
import { makeContact } from "./contact.ts";
import type { RetryDeps } from "./retry.ts";
import { createSplitLimit, type SplitLimit } from "./split-limit.ts";

/** What a use case needs from outside, for one source. */
export interface SourceDeps extends RetryDeps {
  readonly store: Store;
  readonly billing: BillingClient;
  readonly config: SourceConfig;
  readonly settings: {
    readonly settleAfterMs: number;
    readonly hourlyForMs: number;
    readonly syncEveryMs: number;
    readonly userEmail: EmailPolicy;
  };
  /** Resolves when the source's rate limit has room for one more request. */
  readonly admit: () => Promise<void>;
}

/** A source as Postgres knows it. */
export interface EnteredSource {
  readonly store: Store;
  readonly sourceId: number;
}

/** A source after its first contact in this process. */
export interface OpenSource extends SourceDeps, EnteredSource {
  /** UTC day, epoch milliseconds. */
  readonly dataStart: number;
  readonly workspaces: readonly StoredWorkspace[];
  /** What the server was learned not to do. The set changes as its answers teach. */
  readonly capabilities: Set<ServerCapability>;
  /** Strides that the server does not answer in, and whose daily retry is due. */
  readonly strideRetries: Set<ServerCapability>;
  readonly access: AccessProof;
  readonly splitLimit: SplitLimit;
}

/**
 * First contact: enters the source, binds it to its organisation, learns which workspaces the key reads.
 *
 * Errors: those of the platform client; `workspaces_unknown` where the server lists none and none is configured.
 */
export async function openSource(deps: SourceDeps): Promise<OpenSource> {
  const { store, config } = deps;
  const entered = { ...deps, ...(await enterSource(deps)) };
  const { sourceId } = entered;
  await makeContact(entered);
  await noteRefusal(store.db, sourceId, undefined);
  const learned = await capabilitiesOf(store.db, sourceId);
  const known = await workspacesOf(store.db, sourceId);
  const isRead = (id: string) => config.workspaceIds.length === 0 || config.workspaceIds.includes(id);
  const open = {
    ...entered,
    dataStart: Date.parse(`${config.dataStart}T00:00:00Z`),
    workspaces: known.filter((one) => isRead(one.workspaceId)),
    capabilities: new Set(learned.map((one) => one.capability)),
    strideRetries: new Set(learned.filter((one) => one.retryDue).map((one) => one.capability)),
    splitLimit: createSplitLimit(),
  };
  return { ...open, access: accessProofOf(open) };
}

/** Enters the source, or brings its row up to date, without a request to the platform. */
export async function enterSource({ store, config, settings }: SourceDeps): Promise<EnteredSource> {
  await liftFetchNumbers(store);
  const sourceId = await registerSource(store, {
    slug: config.slug,
    baseUrl: config.baseUrl,
    dataStart: config.dataStart,
    hourlyHours: Math.ceil(settings.hourlyForMs / HOUR_MS),
    configurationDigest: configurationDigest(config),
  });
  return { store, sourceId };
}
