import { requestsFor } from "../../domain/planning/request.ts";
import { floorToGrid, HOUR_MS, strideOfRange } from "../../domain/time/stride.ts";
import { PlatformError } from "../../errors.ts";
import { ACCESS_PROVEN_FOR_MS, noteAccess } from "../../store/catalog/workspace-access.ts";
import { drawStamp } from "../../store/load/fetch-ledger.ts";
import { ask, queryOf } from "./ask.ts";
import { askForListing, reportLost, takeIn } from "./contact.ts";
import { isKeyRefused } from "./refusal.ts";
import type { AccessProof, OpenSource } from "./source.ts";

type Asking = Omit<OpenSource, "access">;

export function accessProofOf(source: Asking): AccessProof {
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
  const { store, sourceId, billing, dataStart: start, signal } = source;
  const stamp = await drawStamp(store.db);
  // Not in the future: a server that refuses that may not be known as one yet.
  const end = floorToGrid(stamp.fetchedAt, HOUR_MS);
  if (end <= start) return;
  const named = new Set<string>();
  const window = { start, end, stride: strideOfRange(end - start) };
  for (const request of requestsFor({ groupBy: "workspace", window, members: workspaces })) {
    await ask(source, () =>
      billing.usage(queryOf(request), {
        signal,
        onRecords: (records) => {
          for (const record of records) named.add(record.dimensionId);
        },
      }),
    );
  }
  const asked = workspaces.map((one) => one.workspaceId);
  reportLost(source, await noteAccess(store, { sourceId, asked, named: [...named], at: stamp.fetchedAt }));
}
