import { PlatformError } from "../../base/errors.ts";
import { invalidateZeros, restedOnStatistics, withoutUsage } from "../../store/access/lost-access.ts";
import { ACCESS_PROVEN_FOR_MS, noteAccess } from "../../store/access/workspace-access.ts";
import { drawFetchToken } from "../../store/work/fetch-ledger.ts";
import {
  CONTACT_ATTEMPTS,
  endOfAllTime,
  namedByUsage,
  reportLost,
  requestListing,
  takeIn,
} from "./contact.ts";
import { isKeyRefused } from "./refused-key.ts";
import { sendAside } from "./send-request.ts";
import type { AccessProof, OpenSource } from "./source.ts";

type RequestOptions = Omit<OpenSource, "access">;

export function accessProofOf(
  source: RequestOptions,
): AccessProof & { byUsage(attempts?: number): Promise<void> } {
  const isListed = !source.capabilities.has("no_listing");
  let renewedAt = Number.NEGATIVE_INFINITY;
  let [running, next]: (Promise<void> | undefined)[] = [];
  const byUsage = async (attempts?: number) => {
    await orGoOn(source, () => requestByUsage(source, attempts));
    await orGoOn(source, () => requestStatistics(source));
    renewedAt = source.clock.now();
  };
  const look = async () => {
    const listing = isListed ? await requestListing(source) : undefined;
    if (listing !== undefined) await takeIn(source, listing);
    await byUsage();
  };
  const begin = () => {
    running = look().finally(() => {
      running = undefined;
    });
    return running;
  };
  // The running request may be older than the response that its caller doubts, so all callers share the next request.
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

/** Only logs if the platform cannot prove access now: the next contact does. Throws if the key is refused. */
async function orGoOn(source: RequestOptions, prove: () => Promise<void>): Promise<void> {
  try {
    await prove();
  } catch (error) {
    if (!(error instanceof PlatformError) || isKeyRefused(error)) throw error;
    const { code, message } = error;
    source.log.warn({ code, reason: message }, "Access was not proven again. The next contact proves it.");
  }
}

/**
 * A response over all of time names the readable workspaces. A workspace that earlier responses named and this one does not has
 * become unreadable.
 */
async function requestByUsage(source: RequestOptions, attempts?: number): Promise<void> {
  const { store, sourceId, dataStart: start } = source;
  const { fetchedAt: at } = await drawFetchToken(store.db);
  const until = endOfAllTime(at);
  if (until <= start) return;
  const { workspaceIds } = source;
  const { requested, named } = await namedByUsage(source, { workspaceIds, start, end: until, attempts });
  await requestPast(source, { named, at, until });
  reportLost(source, await noteAccess(store, { sourceId, requested, named, at, until }));
}

async function requestPast(
  source: RequestOptions,
  { named, at, until }: { named: readonly string[]; at: number; until: number },
): Promise<void> {
  const { store, sourceId, dataStart: start, config, log } = source;
  const rested = await restedOnStatistics(store.db, { sourceId, workspaceIds: named, until });
  for (const [finalUntil, some] of Map.groupBy(rested, (one) => one.finalUntil)) {
    const { fetchedAt: later } = await drawFetchToken(store.db);
    const workspaceIds = some.map((one) => one.workspaceId);
    const past = await namedByUsage(source, { workspaceIds, start, end: finalUntil });
    if (past.named.length === 0) continue;
    await invalidateZeros(store, { sourceId, workspaceIds: past.named, at });
    await noteAccess(store, { sourceId, requested: [], named: past.named, at: later, until: finalUntil });
    log.warn(
      { code: "zeros_invalidated", source: config.slug, workspaceIds: past.named },
      "The key reads workspaces that it did not read when their days were loaded as zero. They are loaded again.",
    );
  }
}

/** Concurrent requests. An organization may have hundreds of workspaces without usage. */
const TOGETHER = 20;

/**
 * A workspace that no usage ever named may be empty or unreadable, and the listing does not show which. Its own statistics name
 * it only to a key that reads it.
 */
async function requestStatistics(source: RequestOptions): Promise<void> {
  const { store, sourceId } = source;
  const { fetchedAt: at } = await drawFetchToken(store.db);
  const workspaceIds = await withoutUsage(store.db, source);
  const [requested, named]: [string[], string[]] = [[], []];
  while (workspaceIds.length > 0) {
    const some = workspaceIds.splice(0, TOGETHER);
    const found = await Promise.all(some.map((workspaceId) => isNamedByStatistics(source, workspaceId)));
    some.forEach((workspaceId, i) => {
      if (found[i] !== undefined) requested.push(workspaceId);
      if (found[i] === true) named.push(workspaceId);
    });
  }
  reportLost(source, await noteAccess(store, { sourceId, requested, named, at, isStatistics: true }));
}

/** Undefined: no response, or a transient error. A refusal is about the workspace, because the same key reads usage. */
async function isNamedByStatistics(
  source: RequestOptions,
  workspaceId: string,
): Promise<boolean | undefined> {
  const { billing, signal, log } = source;
  const send = () => billing.workspaceOfStatistics({ workspaceId, signal });
  try {
    return (await sendAside(source, send, CONTACT_ATTEMPTS)) === workspaceId;
  } catch (error) {
    if (!(error instanceof PlatformError) || error.status === 401) throw error;
    const { code, message } = error;
    log.debug({ code, workspaceId, reason: message }, "The statistics of a workspace were not read.");
    return error.retryable ? undefined : false;
  }
}
