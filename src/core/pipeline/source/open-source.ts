import { configurationDigest, keyDigest } from "../../base/config.ts";
import { HOUR_MS } from "../../domain/time/stride.ts";
import { configuredWorkspaces } from "../../store/access/workspaces.ts";
import { dataStartOf } from "../../store/catalog/data-start.ts";
import { expectMeters } from "../../store/catalog/source-meters.ts";
import { bindOrganization, noteRefusal, registerSource } from "../../store/catalog/sources.ts";
import { createWorkspaces } from "../../store/catalog/write-workspaces.ts";
import { liftFetchNumbers } from "../../store/work/fetch-ledger.ts";
import { type Actor, recordAction } from "../../store/work/operator-actions.ts";
import { accessProofOf } from "./access-proof.ts";
import { CONTACT_ATTEMPTS, makeContact, notShown, notShownError, requestListing } from "./contact.ts";
import { logDataStart } from "./data-start.ts";
import { LearnedServer } from "./learned-server.ts";
import { sendRequest } from "./send-request.ts";
import { type CreatedSource, createSplitLimit, type OpenSource, type SourceDeps } from "./source.ts";

/**
 * First contact: stores the source unless it is `known`, binds it to its organization, and learns which workspaces the key
 * reads. Errors: those of the platform client; `workspaces_unknown` if the server lists none and none is configured.
 */
export async function openSource(deps: SourceDeps, known?: CreatedSource): Promise<OpenSource> {
  const { store, config } = deps;
  const created = { ...deps, ...(known ?? (await createSource(deps))) };
  const { sourceId } = created;
  await makeContact(created);
  await noteRefusal(store.db, sourceId, undefined);
  const startDay = (await dataStartOf(store.db, config.slug)) ?? config.dataStart;
  const dataStart = Date.parse(`${startDay}T00:00:00Z`);
  const server = await LearnedServer.read(store.db, sourceId);
  const open = {
    ...created,
    dataStart,
    server,
    ...server.facts,
    workspaceIds: await configuredWorkspaces(store.db, sourceId),
    splitLimit: createSplitLimit(),
  };
  const access = accessProofOf(open);
  await access.byUsage(CONTACT_ATTEMPTS);
  return { ...open, access };
}

/** Sends no request to the platform. */
export async function createSource({ store, config, settings, log }: SourceDeps): Promise<CreatedSource> {
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
  await expectMeters(store.db, { sourceId, meters: settings.meters });
  await logDataStart({ db: store.db, sourceId, config, log }, before);
  return { store, sourceId };
}

/**
 * Adds workspaces that the platform shows. `isForced` also adds others, because without a listing nothing shows a workspace
 * before its first usage. Errors: those of first contact.
 */
export async function addWorkspaces(
  deps: SourceDeps,
  { workspaceIds, isForced, by }: { workspaceIds: readonly string[]; isForced: boolean; by: Actor },
): Promise<void> {
  const source = { ...deps, ...(await createSource(deps)) };
  const { store, sourceId, billing, config, signal } = source;
  const organization = await sendRequest(source, () => billing.organization({ signal }));
  if (organization !== undefined) {
    const { id: organizationId, displayName: organizationName } = organization;
    await bindOrganization(store, { sourceId, organizationId, organizationName, workspaceIds });
  }
  if (!isForced) {
    const listed = (await requestListing(source))?.workspaces.map((one) => one.workspaceId) ?? [];
    const unshown = await notShown(source, { workspaceIds, listed });
    if (unshown.length > 0) throw notShownError(config.slug, unshown);
  }
  await store.transaction(async ({ db }) => {
    await createWorkspaces(db, { sourceId, workspaceIds });
    const detail = `workspace ${workspaceIds.join(", ")}${isForced ? ", forced" : ""}`;
    await recordAction(db, by, { sourceId, action: "workspace.add", detail });
  });
}
