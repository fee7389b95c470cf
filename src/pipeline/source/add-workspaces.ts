import { bindOrganization } from "../../store/catalog/sources.ts";
import { enterWorkspaces } from "../../store/catalog/workspaces.ts";
import { type Actor, recordAction } from "../../store/work/operator-actions.ts";
import { ask } from "./ask.ts";
import { askForListing } from "./contact.ts";
import { enterSource } from "./open-source.ts";
import { notShown, notShownError } from "./shown.ts";
import type { SourceDeps } from "./source.ts";

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
