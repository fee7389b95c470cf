import { requestsFor } from "../../domain/planning/request.ts";
import { floorToGrid, HOUR_MS, strideOfRange } from "../../domain/time/stride.ts";
import { ACCESS_PROVEN_FOR_MS, noteAccess } from "../../store/catalog/workspace-access.ts";
import { drawStamp } from "../../store/load/fetch-ledger.ts";
import { ask, queryOf } from "./ask.ts";
import { askForListing, takeIn } from "./contact.ts";
import type { AccessProof, OpenSource } from "./source.ts";

type Asking = Omit<OpenSource, "access">;

export function accessProofOf(source: Asking): AccessProof {
  // First contact has just read the listing. Without a listing nothing was asked yet.
  let renewedAt = source.capabilities.has("no_listing") ? Number.NEGATIVE_INFINITY : source.clock.now();
  let [running, next]: (Promise<void> | undefined)[] = [];
  const look = async () => {
    const listing = source.capabilities.has("no_listing") ? undefined : await askForListing(source);
    if (listing === undefined) await askByUsage(source);
    else await takeIn(source, listing);
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
    fresh: async () => {
      if (source.clock.now() - renewedAt > ACCESS_PROVEN_FOR_MS / 2) await (running ?? renew());
    },
  };
}

/** Without a listing: a workspace that an answer over all of time names can be read. */
async function askByUsage(source: Asking): Promise<void> {
  const { store, sourceId, billing, dataStart: start, workspaces, signal } = source;
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
  await noteAccess(store.db, {
    sourceId,
    asked: workspaces.map((one) => one.workspaceId),
    named: [...named],
    at: stamp.fetchedAt,
  });
}
