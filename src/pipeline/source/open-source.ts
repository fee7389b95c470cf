import { configurationDigest, keyDigest } from "../../config/config.ts";
import { HOUR_MS } from "../../domain/time/stride.ts";
import { PlatformError } from "../../errors.ts";
import { dataStartOf } from "../../store/catalog/data-start.ts";
import { capabilitiesOf } from "../../store/catalog/server-capabilities.ts";
import { meterStartsOf } from "../../store/catalog/source-meters.ts";
import { bindOrganization, noteRefusal, registerSource } from "../../store/catalog/sources.ts";
import { ACCESS_PROVEN_FOR_MS, noteAccess } from "../../store/catalog/workspace-access.ts";
import { configuredWorkspaces, enterWorkspaces } from "../../store/catalog/workspaces.ts";
import { liftFetchNumbers } from "../../store/load/fetch-ledger.ts";
import { type Actor, recordAction } from "../../store/work/operator-actions.ts";
import { ask, isKeyRefused } from "./ask.ts";
import {
  askForListing,
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
  return { ...open, access: accessProofOf(open) };
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

function accessProofOf(source: Asking): AccessProof {
  const isListed = !source.capabilities.has("no_listing");
  // A listing proves nothing for a deleted workspace.
  const askedByUsage = source.workspaces.filter((one) => !isListed || one.isDeleted);
  // First contact has just read the listing. By usage nothing was asked yet.
  let renewedAt = askedByUsage.length > 0 ? Number.NEGATIVE_INFINITY : source.clock.now();
  let [running, next]: (Promise<void> | undefined)[] = [];
  const look = async () => {
    const listing = isListed ? await askForListing(source) : undefined;
    if (listing !== undefined) await takeIn(source, listing);
    if (askedByUsage.length > 0) await askByUsage(source, askedByUsage);
    renewedAt = source.clock.now();
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
    renew,
    confirm: async () => {
      try {
        await renew();
      } catch (error) {
        if (!(error instanceof PlatformError) || isKeyRefused(error)) throw error;
        const { code, message } = error;
        source.log.warn(
          { code, reason: message },
          "Access was not proven again. The next contact proves it.",
        );
      }
    },
    fresh: async () => {
      if (source.clock.now() - renewedAt > ACCESS_PROVEN_FOR_MS / 2) await (running ?? renew());
    },
  };
}

/** Where no listing proves it: a workspace that an answer over all of time names can be read. */
async function askByUsage(source: Asking, workspaces: OpenSource["workspaces"]): Promise<void> {
  const { store, sourceId, dataStart: start } = source;
  const answer = await namedByUsage(source, {
    workspaceIds: workspaces.map((one) => one.workspaceId),
    start,
  });
  if (answer === undefined) return;
  const { named, at } = answer;
  // One that was deleted without ever having usage is named by no answer, and not lost.
  const asked = workspaces
    .filter(({ isDeleted, hadUsage }) => hadUsage || !isDeleted)
    .map((one) => one.workspaceId);
  reportLost(source, await noteAccess(store, { sourceId, asked, named: [...named], at }));
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
