import { PlatformError } from "../../errors.ts";
import { ACCESS_PROVEN_FOR_MS, noteAccess } from "../../store/catalog/workspace-access.ts";
import { askForListing, reportLost, takeIn } from "./contact.ts";
import { isKeyRefused } from "./refusal.ts";
import { namedByUsage } from "./shown.ts";
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
  const { store, sourceId, dataStart: start } = source;
  const asked = workspaces.map((one) => one.workspaceId);
  const answer = await namedByUsage(source, { workspaceIds: asked, start });
  if (answer === undefined) return;
  const { named, at } = answer;
  reportLost(source, await noteAccess(store, { sourceId, asked, named: [...named], at }));
}
