import { configurationDigest, type EmailPolicy, type SourceConfig } from "../../config/config.ts";
import type { FetchStamp } from "../../domain/planning/coverage.ts";
import { WORKSPACES_PER_REQUEST } from "../../domain/planning/slice.ts";
import { floorToGrid, HOUR_MS } from "../../domain/time/stride.ts";
import type { UsageRecord } from "../../domain/usage/record.ts";
import { PlatformError, UsageError } from "../../errors.ts";
import type { BillingClient } from "../../platform/billing/billing.ts";
import {
  capabilitiesOf,
  forgetCapability,
  learnCapability,
  type ServerCapability,
} from "../../store/catalog/server-capabilities.ts";
import {
  bindOrganization,
  noteRefusal,
  registerSource,
  wasRefusedWithin,
} from "../../store/catalog/sources.ts";
import { ACCESS_PROVEN_FOR_MS, noteAccess } from "../../store/catalog/workspace-access.ts";
import {
  applyListing,
  registerWorkspaces,
  type StoredWorkspace,
  workspacesOf,
} from "../../store/catalog/workspaces.ts";
import type { Store } from "../../store/db/database.ts";
import { drawStamp, liftFetchNumbers } from "../../store/load/fetch-ledger.ts";
import { createSplitBudget, type SplitBudget } from "../extract/split.ts";
import { type RetryDeps, withRetries } from "./retry.ts";

/** A person waits for the first contact: a server that is not there is soon said to be. */
const CONTACT_ATTEMPTS = 3;

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
  /** Resolves when the source's rate budget has room for one more request. */
  readonly admit: () => Promise<void>;
}

/** A source after its first contact in this process. */
export interface OpenSource extends SourceDeps {
  readonly sourceId: number;
  /** UTC day, epoch milliseconds. */
  readonly dataStart: number;
  readonly workspaces: readonly StoredWorkspace[];
  /** Learned about the server; grows and shrinks as its answers teach. */
  readonly capabilities: Set<ServerCapability>;
  /** Strides whose daily probe is due. */
  readonly strideRetries: Set<ServerCapability>;
  readonly access: ProofOfAccess;
  readonly splitBudget: SplitBudget;
}

/** Asks again who can be read, when the last evidence grows old or a caller needs newer one. */
interface ProofOfAccess {
  /** Makes sure that evidence is at most half as old as it may be. */
  fresh(): Promise<void>;
  /** Asks now, whatever is known. */
  renew(): Promise<void>;
}

/**
 * First contact: enters the source, binds it to its organisation, learns which workspaces the key reads.
 *
 * Errors: what the platform client raises; `workspaces_unknown` where the server lists none and none is configured.
 */
export async function openSource(deps: SourceDeps): Promise<OpenSource> {
  const { store, config } = deps;
  const { sourceId } = await enterSource(deps);
  try {
    await makeContact(deps, sourceId);
    await noteRefusal(store.db, sourceId, undefined);
  } catch (error) {
    await keepRefusal(deps, sourceId, error);
    throw error;
  }
  const capabilities = await capabilitiesOf(store.db, sourceId);
  const known = await workspacesOf(store.db, sourceId);
  const workspaces =
    config.workspaceIds.length === 0
      ? known
      : known.filter((w) => config.workspaceIds.includes(w.workspaceId));
  const open: Omit<OpenSource, "access"> = {
    ...deps,
    splitBudget: createSplitBudget(),
    sourceId,
    dataStart: Date.parse(`${config.dataStart}T00:00:00Z`),
    workspaces,
    capabilities: new Set(capabilities.map((one) => one.capability)),
    strideRetries: new Set(capabilities.filter((one) => one.retryDue).map((one) => one.capability)),
  };
  return { ...open, access: accessOf(open) };
}

/** A source as Postgres knows it. */
export interface EnteredSource {
  readonly store: Store;
  readonly sourceId: number;
}

/** Enters the source, or brings its row up to date, without asking the platform. */
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

/** Whether the platform refused the key within the last hour: then nothing asks. */
export async function isRefusedLately({ store, sourceId }: EnteredSource): Promise<boolean> {
  return wasRefusedWithin(store.db, sourceId, REFUSED_FOR_MS);
}

/** How long a refused key is left alone. */
const REFUSED_FOR_MS = 3_600_000;

/** Keeps a refused key (401, 403), so that nothing asks on and `status` shows why. */
export async function keepRefusal(deps: SourceDeps, sourceId: number, error: unknown): Promise<void> {
  if (!isKeyRefused(error)) return;
  await noteRefusal(deps.store.db, sourceId, { code: error.code, message: error.message });
}

type KeyRefused = PlatformError & { readonly status: 401 | 403 };

export function isKeyRefused(error: unknown): error is KeyRefused {
  return error instanceof PlatformError && (error.status === 401 || error.status === 403);
}

/** Binds the source, then takes in what it reads: one that is refused leaves nothing behind. */
async function makeContact(deps: SourceDeps, sourceId: number): Promise<void> {
  const { store, config, billing, signal } = deps;
  const organization = await ask(deps, () => billing.organization({ signal }), CONTACT_ATTEMPTS);
  const listing = await askForListing(deps, CONTACT_ATTEMPTS);
  if (organization !== undefined) {
    await bindOrganization(store, {
      sourceId,
      organizationId: organization.id,
      organizationName: organization.displayName,
      workspaceIds: config.workspaceIds.length > 0 ? config.workspaceIds : (listing?.ids ?? []),
    });
  }
  await registerWorkspaces(store.db, { sourceId, workspaceIds: config.workspaceIds });
  if (listing !== undefined) {
    await takeIn(deps, sourceId, listing);
    await forgetCapability(store.db, { sourceId, capability: "no_listing" });
    return;
  }
  await learnCapability(store.db, {
    sourceId,
    capability: "no_listing",
    evidence: "GET /api/v1/workspaces is not found",
  });
  if ((await workspacesOf(store.db, sourceId)).length > 0) return;
  throw new UsageError({
    code: "workspaces_unknown",
    message: `${config.baseUrl} does not list its workspaces, and none is configured for source ${config.slug}.`,
    next: "Set USAGE_WORKSPACE_IDS (comma-separated UUIDs; they stand in the platform's settings page).",
  });
}

/** A request that no slice stands behind: within the same budget, and tried again the same way. */
function ask<T>(deps: SourceDeps, send: () => Promise<T>, attempts?: number): Promise<T> {
  return withRetries(
    deps,
    async () => {
      await deps.admit();
      return send();
    },
    attempts,
  );
}

interface Listing {
  readonly stamp: FetchStamp;
  readonly workspaces: readonly { workspaceId: string; name: string | null; isDeleted: boolean }[];
  readonly ids: readonly string[];
}

/** Undefined where the server lists nothing. */
async function askForListing(deps: SourceDeps, attempts?: number): Promise<Listing | undefined> {
  const send = async () => {
    const stamp = await drawStamp(deps.store.db);
    const listed = await deps.billing.workspaces({ includeDeleted: true, signal: deps.signal });
    const workspaces = listed?.map((w) => ({
      workspaceId: w.id.toLowerCase(),
      name: w.displayName,
      isDeleted: w.isDeleted,
    }));
    return workspaces && { stamp, workspaces, ids: workspaces.map((w) => w.workspaceId) };
  };
  return ask(deps, send, attempts);
}

async function takeIn(deps: SourceDeps, sourceId: number, listing: Listing): Promise<void> {
  const { store, config } = deps;
  // Of those that are not configured, the ones that once were: left out, they would seem to be gone.
  const known = (await workspacesOf(store.db, sourceId)).map((w) => w.workspaceId);
  const wanted = new Set([...config.workspaceIds, ...known]);
  const { unlisted } = await applyListing(store, {
    sourceId,
    workspaces: listing.workspaces.filter(
      (w) => config.workspaceIds.length === 0 || wanted.has(w.workspaceId),
    ),
    stamp: listing.stamp,
  });
  for (const workspaceId of unlisted) {
    deps.log.warn(
      { code: "workspace_unlisted", source: config.slug, workspaceId },
      "a known workspace is gone from the listing without being deleted: its time stays as it was loaded",
    );
  }
}

function accessOf(open: Omit<OpenSource, "access">): ProofOfAccess {
  // At first contact the listing has just been read; without one nothing has been asked yet.
  let renewedAt = open.capabilities.has("no_listing") ? Number.NEGATIVE_INFINITY : open.clock.now();
  let [running, next]: (Promise<void> | undefined)[] = [];
  const look = async () => {
    const listing = open.capabilities.has("no_listing") ? undefined : await askForListing(open);
    if (listing === undefined) await askByUsage(open);
    else await takeIn(open, open.sourceId, listing);
    renewedAt = open.clock.now();
  };
  const begin = () => {
    running = look().finally(() => {
      running = undefined;
    });
    return running;
  };
  // A look that has begun already may be older than what the caller holds against it: one that begins afterwards is shared
  // by all who wait for it.
  const renew = () => {
    if (running === undefined) return begin();
    next ??= running
      .catch(() => {})
      .then(() => {
        next = undefined;
        return begin();
      });
    return next;
  };
  return {
    renew,
    fresh: async () => {
      if (open.clock.now() - renewedAt > ACCESS_PROVEN_FOR_MS / 2) await (running ?? renew());
    },
  };
}

/** Where nothing is listed: a workspace that an answer over all of time names can be read. */
async function askByUsage(open: Omit<OpenSource, "access">): Promise<void> {
  const { store, billing, dataStart: start, signal } = open;
  const stamp = await drawStamp(store.db);
  // Never in the future: a server that refuses that may not be known as one yet.
  const end = floorToGrid(stamp.fetchedAt, HOUR_MS);
  if (end <= start) return;
  const named = new Set<string>();
  const ids = open.workspaces.map((w) => w.workspaceId);
  for (let first = 0; first < ids.length; first += WORKSPACES_PER_REQUEST) {
    const workspaceIds = ids.slice(first, first + WORKSPACES_PER_REQUEST);
    const onRecords = (records: readonly UsageRecord[]) => {
      for (const record of records) named.add(record.dimensionId);
    };
    await ask(open, () =>
      billing.usage({ start, end, groupBy: "workspace", workspaceIds }, { signal, onRecords }),
    );
  }
  await noteAccess(store.db, {
    sourceId: open.sourceId,
    asked: ids,
    named: [...named],
    at: stamp.fetchedAt,
  });
}
