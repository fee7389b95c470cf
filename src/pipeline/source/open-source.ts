import { configurationDigest, keyDigest } from "../../config/config.ts";
import { HOUR_MS } from "../../domain/time/stride.ts";
import { dataStartOf } from "../../store/catalog/data-start.ts";
import { capabilitiesOf } from "../../store/catalog/server-capabilities.ts";
import { meterStartsOf } from "../../store/catalog/source-meters.ts";
import { noteRefusal, registerSource } from "../../store/catalog/sources.ts";
import { configuredWorkspaces } from "../../store/catalog/workspaces.ts";
import { liftFetchNumbers } from "../../store/load/fetch-ledger.ts";
import { accessProofOf } from "./access.ts";
import { makeContact } from "./contact.ts";
import { logDataStart } from "./data-start.ts";
import type { EnteredSource, OpenSource, SourceDeps } from "./source.ts";
import { createSplitLimit } from "./split-limit.ts";

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
