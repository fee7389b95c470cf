import type { Command } from "commander";
import { requireSources } from "../../core/base/config.ts";
import { UsageError } from "../../core/base/errors.ts";
import { capabilitiesOf } from "../../core/store/catalog/server-capabilities.ts";
import { linesOf, tableOf } from "../../terminal/output.ts";
import { commandActor, inSession, type Session } from "../../terminal/session.ts";
import { forgetWorkspace } from "./forget.store.ts";
import { type KnownWorkspace, listWorkspaces, type WorkspaceState } from "./known.store.ts";
import { storedSource } from "./named.ts";
import { describeForgotten, type ForgetOptions, withForgetting } from "./source.command.ts";

interface SourceOption {
  readonly source?: string;
}

const OF_SOURCE = ["--source <slug>", "of this source; needed if several are meant"] as const;

export const examples = [
  ["workspace list", "all that are known, and since when"],
  ["workspace add 5c91043c-b824-44e0-cff1-b9acdbf3443f", "one that the platform does not list"],
] as const;

export function define(workspace: Command): void {
  workspace
    .command("list")
    .description("show the known workspaces, and whether the key can read them")
    .option("--source <slug>", "only of this source")
    .action(inSession(list));
  workspace
    .command("add <id...>")
    .description("add workspaces, so that USAGE_WORKSPACE_IDS may name them")
    .option(...OF_SOURCE)
    .option("--force", "also if the platform does not show them: new ones on a server without a listing")
    .action(inSession(add));
  withForgetting(workspace.command("forget <id>"))
    .description("remove a workspace that is no longer loaded, with everything that is stored about it")
    .option(...OF_SOURCE)
    .action(inSession(forget));
}

const STATES: Readonly<Record<WorkspaceState, string>> = {
  never_shown: "never shown",
  deleted: "deleted",
  not_configured: "not configured",
  left_listing: "left the listing",
  readable: "readable",
  never_read: "never read",
  not_proven: "not proven",
};

async function list(session: Session, { source }: SourceOption): Promise<undefined> {
  const { db } = await session.migratedStore();
  const all = (await listWorkspaces(db)).filter((one) => source === undefined || one.source === source);
  const rows = all.map(({ sourceId: _, ...one }) => one);
  const isSeveral = new Set(rows.map((one) => one.source)).size > 1;
  session.output.data(rows, () => {
    if (rows.length === 0)
      return "No workspace is known. `usage-etl sync --inline` finds those that the key reads.";
    const ghosts = rows.filter(({ state }) => state === "never_shown");
    return linesOf(
      tableOf(rows, {
        source: isSeveral && "source",
        workspace: "workspaceId",
        access: ({ state }) => STATES[state],
        traces: "traces",
        name: "name",
      }),
      ghosts.map(
        (one) =>
          `No listing and no response ever named ${one.workspaceId}. If it is a mistake, take it out of USAGE_WORKSPACE_IDS and ` +
          `run \`usage-etl workspace forget ${one.workspaceId} --source ${one.source}\`.`,
      ),
    );
  });
}

async function add(
  session: Session,
  options: SourceOption & { force?: boolean },
  ...given: string[]
): Promise<undefined> {
  const { config, output, signal, onClose } = session;
  const ids = given.map(parseId);
  const configs = requireSources(config).map((one) => ({ ...one, source: one.slug }));
  const source = storedSource(configs, options.source);
  const { addWorkspaces } = await import("../../core/pipeline/source/open-source.ts");
  const { sourceDepsOf } = await import("../../terminal/sources.ts");
  const store = await session.migratedStore();
  const deps = sourceDepsOf(source, { config, store, signal, onClose, output });
  await addWorkspaces(deps, { workspaceIds: ids, isForced: options.force ?? false, by: commandActor() });
  const unnamed =
    source.workspaceIds.length === 0 ? [] : ids.filter((id) => !source.workspaceIds.includes(id));
  output.data({ source: source.slug, added: ids }, () =>
    linesOf(
      `Source ${source.slug} knows ${ids.join(", ")} now. The next sync loads what the key may read.`,
      unnamed.length > 0 &&
        `Only named workspaces are loaded: add ${unnamed.join(", ")} to USAGE_WORKSPACE_IDS.`,
    ),
  );
}

async function forget(
  session: Session,
  options: SourceOption & ForgetOptions,
  text: string,
): Promise<undefined> {
  const workspaceId = parseId(text);
  const store = await session.migratedStore();
  const known = (await listWorkspaces(store.db)).filter((one) => one.workspaceId === workspaceId);
  if (known.length === 0) {
    throw new UsageError({
      code: "workspace_unknown",
      message: `Workspace ${workspaceId} is not known.`,
      next: "Run `usage-etl workspace list` to see the known ones.",
    });
  }
  const workspace = storedSource(known, options.source);
  const { source, sourceId } = workspace;
  const learned = await capabilitiesOf(store.db, sourceId);
  const isListed = !learned.some(({ capability }) => capability === "no_listing");
  refuseIfLoaded(session, workspace, isListed);
  const { withRecords = false, dryRun = false } = options;
  const order = { sourceId, workspaceId, withRecords, dryRun, by: commandActor() };
  const result = await forgetWorkspace(store, order);
  const again = `workspace forget ${workspaceId} --source ${source}${withRecords ? " --with-records" : ""}`;
  session.output.data({ source, workspaceId, ...result }, () =>
    describeForgotten(`Workspace ${workspaceId} of source ${source}`, result, again),
  );
}

/** The next sync would add the workspace again. */
function refuseIfLoaded(
  { config }: Session,
  { source, workspaceId, state }: KnownWorkspace,
  isListed: boolean,
): void {
  const configured = config.sources.find((one) => one.slug === source)?.workspaceIds;
  if (configured === undefined) return;
  const isNamed = configured.includes(workspaceId);
  if (!isNamed && !(isListed && configured.length === 0 && LISTED.includes(state))) return;
  throw new UsageError({
    code: "workspace_configured",
    message:
      `Workspace ${workspaceId} of source ${source} cannot be forgotten, because the next sync would load it again: ` +
      (isNamed ? "USAGE_WORKSPACE_IDS names it." : "every workspace that the platform lists is loaded."),
    next: isNamed
      ? "Remove the workspace from USAGE_WORKSPACE_IDS of every process first."
      : "List only the other workspaces in USAGE_WORKSPACE_IDS of every process first.",
  });
}

const LISTED: readonly WorkspaceState[] = ["readable", "never_read", "not_proven", "deleted"];

function parseId(text: string): string {
  const id = text.toLowerCase();
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return id;
  throw new UsageError({
    code: "workspace_unknown",
    message: "That is not the id of a workspace, which is a UUID.",
    next: "Run `usage-etl workspace list` to see the known ones.",
  });
}
