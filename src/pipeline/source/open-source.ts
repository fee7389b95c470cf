import { configurationDigest, keyDigest } from "../../config/config.ts";
import { HOUR_MS } from "../../domain/time/stride.ts";
import { PlatformError } from "../../errors.ts";
import { dataStartOf } from "../../store/catalog/data-start.ts";
import { doubtZeros, restedOnListing } from "../../store/catalog/lost-access.ts";
import { capabilitiesOf } from "../../store/catalog/server-capabilities.ts";
import { meterStartsOf } from "../../store/catalog/source-meters.ts";
import { bindOrganization, noteRefusal, registerSource } from "../../store/catalog/sources.ts";
import { ACCESS_PROVEN_FOR_MS, noteAccess } from "../../store/catalog/workspace-access.ts";
import { configuredWorkspaces, enterWorkspaces } from "../../store/catalog/workspaces.ts";
import { drawStamp, liftFetchNumbers } from "../../store/load/fetch-ledger.ts";
import { type Actor, recordAction } from "../../store/work/operator-actions.ts";
import { ask, isKeyRefused } from "./ask.ts";
import {
  askForListing,
  CONTACT_ATTEMPTS,
  endOfAllTime,
  makeContact,
  namedByUsage,
  notShown,
  notShownError,
  reportLost,
  takeIn,
} from "./contact.ts";
import { logDataStart } from "./data-start.ts";
import {
  type AccessProof,
  createSplitLimit,
  type EnteredSource,
  type OpenSource,
  type SourceDeps,
} from "./source.ts";

/**
 * First contact: enters the source unless it is `known`, binds it to its organisation, learns which workspaces the key reads.
 *
 * Errors: those of the platform client; `workspaces_unknown` where the server lists none and none is configured.
 */
export async function openSource(deps: SourceDeps, known?: EnteredSource): Promise<OpenSource> {
  const { store, config } = deps;
  const entered = { ...deps, ...(known ?? (await enterSource(deps))) };
  const { sourceId } = entered;
  await makeContact(entered);
  await noteRefusal(store.db, sourceId, undefined);
  const learned = await capabilitiesOf(store.db, sourceId);
  const startDay = (await dataStartOf(store.db, config.slug)) ?? config.dataStart;
  const dataStart = Date.parse(`${startDay}T00:00:00Z`);
  const open = {
    ...entered,
    dataStart,
    meters: await meterStartsOf(store.db, { sourceId, dataStart }),
    workspaces: await configuredWorkspaces(store.db, sourceId),
    capabilities: new Set(learned.map((one) => one.capability)),
    strideRetries: new Set(learned.filter((one) => one.retryDue).map((one) => one.capability)),
    splitLimit: createSplitLimit(),
  };
  const access = accessProofOf(open);
  // First contact has just read the listing.
  await access.byUsage(CONTACT_ATTEMPTS);
  return { ...open, access };
}

/** Enters the source, or brings its row up to date, without a request to the platform. */
export async function enterSource({ store, config, settings, log }: SourceDeps): Promise<EnteredSource> {
  await liftFetchNumbers(store);
  const before = await dataStartOf(store.db, config.slug);
  const sourceId = await registerSource(store, {
    slug: config.slug,
    baseUrl: config.baseUrl,
    dataStart: config.dataStart,
    hourlyHours: Math.ceil(settings.hourlyForMs / HOUR_MS),
    configurationDigest: configurationDigest(config),
    keyDigest: keyDigest(config),
    wantedMeters: settings.meters,
    providerName: config.providerName,
    invoiceIssuerName: config.invoiceIssuerName,
  });
  await logDataStart({ db: store.db, sourceId, config, log }, before);
  return { store, sourceId };
}

type Asking = Omit<OpenSource, "access">;

function accessProofOf(source: Asking): AccessProof & { byUsage(attempts?: number): Promise<void> } {
  const isListed = !source.capabilities.has("no_listing");
  let renewedAt = Number.NEGATIVE_INFINITY;
  let [running, next]: (Promise<void> | undefined)[] = [];
  const byUsage = async (attempts?: number) => {
    await orGoOn(source, () => askByUsage(source, attempts));
    renewedAt = source.clock.now();
  };
  const look = async () => {
    const listing = isListed ? await askForListing(source) : undefined;
    if (listing !== undefined) await takeIn(source, listing);
    await byUsage();
  };
  const begin = () => {
    running = look().finally(() => {
      running = undefined;
    });
    return running;
  };
  // A request that is under way may be older than the answer its caller doubts. All who wait share the one that follows.
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
    byUsage,
    renew,
    confirm: () => orGoOn(source, renew),
    fresh: async () => {
      if (source.clock.now() - renewedAt > ACCESS_PROVEN_FOR_MS / 2) await (running ?? renew());
    },
  };
}

/** What the platform fails to prove is proven by the next contact. A refused key is another matter. */
async function orGoOn(source: Asking, prove: () => Promise<void>): Promise<void> {
  try {
    await prove();
  } catch (error) {
    if (!(error instanceof PlatformError) || isKeyRefused(error)) throw error;
    const { code, message } = error;
    source.log.warn({ code, reason: message }, "Access was not proven again. The next contact proves it.");
  }
}

/** A workspace that an answer over all of time names can be read; one that such an answer named before cannot be if it does not. */
async function askByUsage(source: Asking, attempts?: number): Promise<void> {
  const { store, sourceId, dataStart: start } = source;
  const { fetchedAt: at } = await drawStamp(store.db);
  const until = endOfAllTime(at);
  if (until <= start) return;
  const workspaceIds = source.workspaces.map((one) => one.workspaceId);
  const { asked, named } = await namedByUsage(source, { workspaceIds, start, end: until, attempts });
  await askAboutPast(source, { named, at, until });
  reportLost(source, await noteAccess(store, { sourceId, asked, named, at, until }));
}

/**
 * Of workspaces that are named for the first time: whether they had usage in the days that are already final. Then the key did not
 * read them when these were loaded, and all their zeros are asked for again.
 */
async function askAboutPast(
  source: Asking,
  { named, at, until }: { named: readonly string[]; at: number; until: number },
): Promise<void> {
  const { store, sourceId, dataStart: start, config, log } = source;
  const rested = await restedOnListing(store.db, { sourceId, workspaceIds: named, until });
  for (const { workspaceId, finalUntil } of rested) {
    const { fetchedAt: later } = await drawStamp(store.db);
    const past = await namedByUsage(source, { workspaceIds: [workspaceId], start, end: finalUntil });
    if (past.named.length === 0) continue;
    await doubtZeros(store, { sourceId, workspaceIds: past.named, at });
    await noteAccess(store, { sourceId, asked: [], named: past.named, at: later, until: finalUntil });
    log.warn(
      { code: "zeros_withdrawn", source: config.slug, workspaceId },
      "The key reads a workspace that it did not read when its days were loaded as zero. They are loaded again.",
    );
  }
}

/**
 * Makes workspaces known that the platform shows; forced, others too: on a server without a listing nothing shows a workspace
 * before its first usage. Errors: those of first contact.
 */
export async function addWorkspaces(
  deps: SourceDeps,
  { workspaceIds, isForced, by }: { workspaceIds: readonly string[]; isForced: boolean; by: Actor },
): Promise<void> {
  const source = { ...deps, ...(await enterSource(deps)) };
  const { store, sourceId, billing, config, signal } = source;
  const organization = await ask(source, () => billing.organization({ signal }));
  if (organization !== undefined) {
    const { id: organizationId, displayName: organizationName } = organization;
    await bindOrganization(store, { sourceId, organizationId, organizationName, workspaceIds });
  }
  if (!isForced) {
    const listed = (await askForListing(source))?.workspaces.map((one) => one.workspaceId) ?? [];
    const unshown = await notShown(source, { workspaceIds, listed });
    if (unshown.length > 0) throw notShownError(config.slug, unshown);
  }
  await store.transaction(async ({ db }) => {
    await enterWorkspaces(db, { sourceId, workspaceIds });
    const detail = `workspace ${workspaceIds.join(", ")}${isForced ? ", forced" : ""}`;
    await recordAction(db, by, { sourceId, action: "workspace.add", detail });
  });
}
