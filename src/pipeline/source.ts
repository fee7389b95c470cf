import type { Clock } from "../clock.ts";
import { configurationDigest, type EmailPolicy, type SourceConfig } from "../config.ts";
import { WORKSPACES_PER_REQUEST } from "../domain/slice.ts";
import { DAY_MS, HOUR_MS } from "../domain/stride.ts";
import { PlatformError, UsageError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { BillingClient } from "../platform/billing.ts";
import type { Store } from "../store/database.ts";
import { type Fact, factsOf, forgetFact, learnFact } from "../store/facts.ts";
import { drawStamp, liftFetchNumbers } from "../store/fetches.ts";
import { noteReadable, READABLE_FOR_MS } from "../store/readable.ts";
import { bindOrganization, noteRefusal, registerSource, wasRefusedWithin } from "../store/sources.ts";
import { knowWorkspaces, type StoredWorkspace, takeListing, workspacesOf } from "../store/workspaces.ts";
import { withRetries } from "./retry.ts";
import { createSplitBudget, type SplitBudget } from "./split.ts";

/** A person waits for the first contact: a server that is not there is soon said to be. */
const CONTACT_ATTEMPTS = 3;

/** What a use case needs from outside, for one source. */
export interface SourceDeps {
  readonly store: Store;
  readonly billing: BillingClient;
  readonly config: SourceConfig;
  readonly settings: {
    readonly settleAfterMs: number;
    readonly hourlyForMs: number;
    readonly userEmail: EmailPolicy;
  };
  readonly log: Logger;
  readonly clock: Clock;
  /** How often a request is tried within one slice: 1 where the queue tries again. */
  readonly attempts: number;
  /** Resolves when the source's rate budget has room for one more request. */
  readonly admit: () => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

/** A source after its first contact in this process. */
export interface OpenSource extends SourceDeps {
  readonly sourceId: number;
  /** UTC day, epoch milliseconds. */
  readonly dataStart: number;
  readonly workspaces: readonly StoredWorkspace[];
  /** Learned about the server; grows and shrinks as its answers teach. */
  readonly facts: Set<Fact>;
  /** Strides whose daily probe is due. */
  readonly probes: Set<Fact>;
  readonly evidence: Evidence;
  readonly splitBudget: SplitBudget;
}

/** Asks again who can be read, when the last evidence grows old or a caller needs newer one. */
interface Evidence {
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
    const listed = await withRetries(deps, () => learnWorkspaces(deps, sourceId), CONTACT_ATTEMPTS);
    await bind(deps, sourceId, config.workspaceIds.length > 0 ? config.workspaceIds : listed);
    await noteRefusal(store.db, sourceId, undefined);
  } catch (error) {
    await keepRefusal(deps, sourceId, error);
    throw error;
  }
  const facts = await factsOf(store.db, sourceId);
  const known = await workspacesOf(store.db, sourceId);
  const workspaces =
    config.workspaceIds.length === 0
      ? known
      : known.filter((w) => config.workspaceIds.includes(w.workspaceId));
  const open: Omit<OpenSource, "evidence"> = {
    ...deps,
    splitBudget: createSplitBudget(),
    sourceId,
    dataStart: Date.parse(`${config.dataStart}T00:00:00Z`),
    workspaces,
    facts: new Set(facts.map((fact) => fact.fact)),
    probes: new Set(facts.filter((fact) => fact.probeDue).map((fact) => fact.fact)),
  };
  return { ...open, evidence: evidenceOf(open) };
}

/** A source as Postgres knows it. */
export interface EnteredSource {
  readonly store: Store;
  readonly sourceId: number;
}

/** Enters the source, or brings its row up to date, without asking the platform. */
export async function enterSource({ store, config, settings }: SourceDeps): Promise<EnteredSource> {
  await liftFetchNumbers(store.db);
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

async function bind(deps: SourceDeps, sourceId: number, workspaceIds: readonly string[]): Promise<void> {
  await deps.admit();
  const organization = await deps.billing.organization({ signal: deps.signal });
  if (organization === undefined) return;
  await bindOrganization(deps.store, {
    sourceId,
    organizationId: organization.id,
    organizationName: organization.displayName,
    workspaceIds,
  });
}

/** Takes in the configured workspaces and the listing; returns the ids that the listing names. */
async function learnWorkspaces(deps: SourceDeps, sourceId: number): Promise<string[]> {
  const { store, config } = deps;
  await knowWorkspaces(store.db, { sourceId, workspaceIds: config.workspaceIds });
  const listed = await takeInListing(deps, sourceId);
  if (listed !== undefined) {
    await forgetFact(store.db, { sourceId, fact: "no_listing" });
    return listed;
  }
  await learnFact(store.db, {
    sourceId,
    fact: "no_listing",
    evidence: "GET /api/v1/workspaces is not found",
  });
  if ((await workspacesOf(store.db, sourceId)).length > 0) return [];
  throw new UsageError({
    code: "workspaces_unknown",
    message: `${config.baseUrl} does not list its workspaces, and none is configured for source ${config.slug}.`,
    next: "Set USAGE_WORKSPACE_IDS (comma-separated UUIDs; they stand in the platform's settings page).",
  });
}

async function takeInListing(deps: SourceDeps, sourceId: number): Promise<string[] | undefined> {
  const { store, config, billing } = deps;
  const stamp = await drawStamp(store.db);
  await deps.admit();
  const listing = await billing.workspaces({ includeDeleted: true, signal: deps.signal });
  if (listing === undefined) return undefined;
  const wanted = new Set(config.workspaceIds);
  const workspaces = listing
    .map((w) => ({ workspaceId: w.id.toLowerCase(), name: w.displayName, isDeleted: w.isDeleted }))
    .filter((w) => wanted.size === 0 || wanted.has(w.workspaceId));
  const { unlisted } = await takeListing(store, { sourceId, workspaces, stamp });
  for (const workspaceId of unlisted) {
    deps.log.warn(
      { code: "workspace_unlisted", source: config.slug, workspaceId },
      "a known workspace is gone from the listing without being deleted: its time stays as it was loaded",
    );
  }
  return workspaces.map((w) => w.workspaceId);
}

function evidenceOf(open: Omit<OpenSource, "evidence">): Evidence {
  // At first contact the listing has just been read; without one nothing has been asked yet.
  let renewedAt = open.facts.has("no_listing") ? Number.NEGATIVE_INFINITY : open.clock.now();
  let running: Promise<void> | undefined;
  const ask = async () => {
    await withRetries(open, async () => {
      if (open.facts.has("no_listing")) await askByUsage(open);
      else await takeInListing(open, open.sourceId);
    });
    renewedAt = open.clock.now();
  };
  const renew = () => {
    running ??= ask().finally(() => {
      running = undefined;
    });
    return running;
  };
  return {
    renew,
    fresh: async () => {
      if (open.clock.now() - renewedAt > READABLE_FOR_MS / 2) await renew();
    },
  };
}

/** Where nothing is listed: a workspace that an answer over all of time names can be read. */
async function askByUsage(open: Omit<OpenSource, "evidence">): Promise<void> {
  const stamp = await drawStamp(open.store.db);
  const tomorrow =
    Math.floor(stamp.fetchedAt / DAY_MS) * DAY_MS + (open.facts.has("no_future_end") ? 0 : DAY_MS);
  const named = new Set<string>();
  const ids = open.workspaces.map((w) => w.workspaceId);
  for (let first = 0; first < ids.length; first += WORKSPACES_PER_REQUEST) {
    await open.admit();
    await open.billing.usage(
      {
        start: open.dataStart,
        end: tomorrow,
        groupBy: "workspace",
        workspaceIds: ids.slice(first, first + WORKSPACES_PER_REQUEST),
      },
      {
        ...(open.signal === undefined ? {} : { signal: open.signal }),
        onRecords: (records) => {
          for (const record of records) named.add(record.dimensionId);
        },
      },
    );
  }
  await noteReadable(open.store.db, {
    sourceId: open.sourceId,
    workspaceIds: [...named],
    at: stamp.fetchedAt,
  });
}
