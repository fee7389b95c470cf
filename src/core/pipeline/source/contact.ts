import { PlatformError, UsageError } from "../../base/errors.ts";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { halvesByMember, requestsFor, workspaceIdsOf } from "../../domain/planning/request.ts";
import { floorToGrid, HOUR_MS, strideOfRange } from "../../domain/time/stride.ts";
import type { UsageRecord } from "../../domain/usage/record.ts";
import type { LostWorkspace } from "../../store/access/lost-access.ts";
import { applyListing, registerWorkspaces, workspacesOf } from "../../store/access/workspaces.ts";
import { dataStartOf } from "../../store/catalog/data-start.ts";
import { forgetCapability, learnCapability } from "../../store/catalog/server-capabilities.ts";
import { bindOrganization } from "../../store/catalog/sources.ts";
import { drawFetchToken, storeNow } from "../../store/work/fetch-ledger.ts";
import { readRecords } from "./fetch-usage.ts";
import { sendRequest } from "./send-request.ts";
import type { CreatedSource, SourceDeps } from "./source.ts";

/** A person waits for the first contact, so an absent server is reported after few attempts. */
export const CONTACT_ATTEMPTS = 3;

type Contacted = SourceDeps & CreatedSource;

interface Listing {
  readonly fetchToken: FetchToken;
  readonly workspaces: readonly { workspaceId: string; name: string | null; isDeleted: boolean }[];
}

/** Binds the source to its organization before it stores any workspace, so a refused source leaves nothing behind. */
export async function makeContact(source: Contacted): Promise<void> {
  const { store, sourceId, config, billing, signal } = source;
  const organization = await sendRequest(source, () => billing.organization({ signal }), CONTACT_ATTEMPTS);
  const listing = await requestListing(source, CONTACT_ATTEMPTS);
  const listed = listing?.workspaces.map((one) => one.workspaceId) ?? [];
  if (organization !== undefined) {
    await bindOrganization(store, {
      sourceId,
      organizationId: organization.id,
      organizationName: organization.displayName,
      workspaceIds: config.workspaceIds.length > 0 ? config.workspaceIds : listed,
    });
  }
  const workspaceIds = await shownOf(source, listed);
  await registerWorkspaces(store.db, { sourceId, workspaceIds });
  if (listing !== undefined) {
    await takeIn(source, listing);
    await forgetCapability(store.db, { sourceId, capability: "no_listing" });
    if (listing.workspaces.length > 0 || config.workspaceIds.length > 0) return;
    throw new UsageError({
      code: "workspaces_unknown",
      message: `${config.baseUrl} lists no workspace for the key of source ${config.slug}.`,
      next: "Check that the key belongs to the organization and may read its workspaces, or set USAGE_WORKSPACE_IDS to comma-separated UUIDs.",
    });
  }
  const evidence = "GET /api/v1/workspaces is not found";
  await learnCapability(store.db, { sourceId, capability: "no_listing", evidence });
  if ((await workspacesOf(store.db, sourceId)).length > 0) return;
  throw new UsageError({
    code: "workspaces_unknown",
    message: `${config.baseUrl} does not list its workspaces, and none is configured for source ${config.slug}.`,
    next: "Set USAGE_WORKSPACE_IDS to comma-separated UUIDs. The platform's settings page shows them.",
  });
}

/**
 * Returns the configured workspaces that are known or that the platform shows. A command refuses the others; the service leaves
 * them out and logs an error. If none remain, the service refuses too, because an empty list would mean all.
 */
async function shownOf(source: Contacted, listed: readonly string[]): Promise<readonly string[]> {
  const { config, log, leavesOutUnshown = false } = source;
  const unshown = await notShown(source, { workspaceIds: config.workspaceIds, listed });
  if (unshown.length === 0) return config.workspaceIds;
  const error = notShownError(config.slug, unshown);
  const shown = config.workspaceIds.filter((id) => !unshown.includes(id));
  if (!leavesOutUnshown || shown.length === 0) throw error;
  const { code, message, next } = error;
  log.error({ code, workspaceIds: unshown }, `${message} The others are loaded. ${next}`);
  return shown;
}

export async function requestListing(source: Contacted, attempts?: number): Promise<Listing | undefined> {
  const { store, billing, signal } = source;
  return sendRequest(
    source,
    async () => {
      const fetchToken = await drawFetchToken(store.db);
      const listed = await billing.workspaces({ includeDeleted: true, signal });
      return (
        listed && {
          fetchToken,
          workspaces: listed.map(({ id, displayName, isDeleted }) => ({
            workspaceId: id.toLowerCase(),
            name: displayName,
            isDeleted,
          })),
        }
      );
    },
    attempts,
  );
}

export async function takeIn(source: Contacted, { workspaces, fetchToken }: Listing): Promise<void> {
  const { store, sourceId, config } = source;
  // Workspaces that were configured earlier must not seem to have left the listing.
  const known = await workspacesOf(store.db, sourceId);
  const wanted = new Set([...config.workspaceIds, ...known]);
  const listed = workspaces.filter((one) => config.workspaceIds.length === 0 || wanted.has(one.workspaceId));
  reportLost(source, await applyListing(store, { sourceId, workspaces: listed, fetchToken }));
}

/** Logs lost workspaces once. `status`, the webhook and metrics show them while they are lost. */
export function reportLost({ config, log }: Contacted, lost: readonly LostWorkspace[]): void {
  for (const { workspaceId, isNewlyUnlisted, zeros } of lost) {
    const about = { source: config.slug, workspaceId };
    if (isNewlyUnlisted) {
      log.warn(
        { code: "workspace_unlisted", ...about },
        "A known workspace left the listing without being deleted. Its loaded usage stays as it is.",
      );
    }
    if (zeros > 0) {
      log.warn(
        { code: "zeros_invalidated", ...about, zeros },
        "The key lost access to a workspace. Its zeros since the last proof of access are unverified.",
      );
    }
  }
}

/** The end is not in the future, because it may not be known yet that the server refuses that. */
export function endOfAllTime(now: number): number {
  return floorToGrid(now, HOUR_MS);
}

/**
 * Returns the workspaces that a response over all of time names. One wrong record spoils a whole response, and many ids make a
 * URL too long, so its workspaces are then requested in halves. `requested`: the workspaces with a usable response.
 */
export async function namedByUsage(
  source: Contacted,
  {
    workspaceIds,
    attempts,
    ...time
  }: { workspaceIds: readonly string[]; start: number; end: number; attempts?: number | undefined },
): Promise<{ requested: readonly string[]; named: readonly string[] }> {
  const window = { ...time, stride: strideOfRange(time.end - time.start) };
  const all = workspaceIds.map((workspaceId) => ({ workspaceId }));
  const requests = requestsFor({ meter: "traces", groupBy: "workspace", window, members: all });
  const [requested, named]: [string[], Set<string>] = [[], new Set()];
  for (let request = requests.pop(); request !== undefined; request = requests.pop()) {
    const { members } = request;
    const known = new Set(workspaceIdsOf(request));
    const inResponse = new Set<string>();
    const onRecords = (records: readonly UsageRecord[]) => {
      for (const { dimensionId: id } of records) if (known.has(id)) inResponse.add(id);
    };
    // An attempt that breaks off is repeated, so the workspaces that it named are discarded.
    const send = () => {
      inResponse.clear();
      return readRecords(source, request, { onRecords });
    };
    try {
      await sendRequest(source, send, attempts);
    } catch (error) {
      if (!(error instanceof PlatformError && (error.isAboutRecords || error.isUrlTooLong))) throw error;
      requests.push(...halvesByMember(request));
      continue;
    }
    for (const { workspaceId } of members) {
      requested.push(workspaceId);
      if (inResponse.has(workspaceId)) named.add(workspaceId);
    }
  }
  return { requested, named: [...named] };
}

/**
 * Returns the ids that are neither known nor listed, and that no usage names. A typo would become a workspace forever, with
 * days that no sync can load.
 */
export async function notShown(
  source: Contacted,
  { workspaceIds, listed }: { workspaceIds: readonly string[]; listed: readonly string[] },
): Promise<string[]> {
  const { store, sourceId, config } = source;
  const known = new Set(await workspacesOf(store.db, sourceId));
  const unknown = workspaceIds.filter((id) => !known.has(id) && !listed.includes(id));
  if (unknown.length === 0) return [];
  const start = Date.parse((await dataStartOf(store.db, config.slug)) ?? config.dataStart);
  const end = endOfAllTime(await storeNow(store.db));
  if (end <= start) return unknown;
  const { named } = await namedByUsage(source, { workspaceIds: unknown, start, end });
  return unknown.filter((id) => !named.includes(id));
}

export function notShownError(slug: string, ids: readonly string[]): UsageError {
  const [first = ""] = ids;
  return new UsageError({
    code: "workspace_not_shown",
    message:
      `Source ${slug} is configured to load workspace ${ids.join(", ")}, which the platform does not show: ` +
      "no listing and no usage names it.",
    next: `Correct USAGE_WORKSPACE_IDS, or give the key access to the workspace. If it exists and has no usage yet, run \`usage-etl workspace add ${first} --source ${slug} --force\`.`,
  });
}
