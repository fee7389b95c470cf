import { requestsFor } from "../../domain/planning/request.ts";
import { floorToGrid, HOUR_MS, strideOfRange } from "../../domain/time/stride.ts";
import { UsageError } from "../../errors.ts";
import { dataStartOf } from "../../store/catalog/data-start.ts";
import { workspacesOf } from "../../store/catalog/workspaces.ts";
import { drawStamp } from "../../store/load/fetch-ledger.ts";
import { ask, queryOf } from "./ask.ts";
import type { EnteredSource, SourceDeps } from "./source.ts";

type Contacted = SourceDeps & EnteredSource;

/** The workspaces that answers over all of time name, and when that was asked; undefined where the data has not begun. */
export async function namedByUsage(
  source: Contacted,
  { workspaceIds, start }: { workspaceIds: readonly string[]; start: number },
): Promise<{ named: ReadonlySet<string>; at: number } | undefined> {
  const { store, billing, signal } = source;
  const { fetchedAt: at } = await drawStamp(store.db);
  // Not in the future: a server that refuses that may not be known as one yet.
  const end = floorToGrid(at, HOUR_MS);
  if (end <= start) return undefined;
  const named = new Set<string>();
  const window = { start, end, stride: strideOfRange(end - start) };
  const members = workspaceIds.map((workspaceId) => ({ workspaceId }));
  for (const request of requestsFor({ meter: "traces", groupBy: "workspace", window, members })) {
    await ask(source, () =>
      billing.usage(queryOf(request), {
        signal,
        onRecords: (records) => {
          for (const record of records) named.add(record.dimensionId);
        },
      }),
    );
  }
  return { named, at };
}

/**
 * Of these ids those that are not known, and that neither the listing nor an answer over all of time shows: a typo would be
 * a workspace for ever, with days that no sync can load.
 */
export async function notShown(
  source: Contacted,
  { workspaceIds, listed }: { workspaceIds: readonly string[]; listed: readonly string[] },
): Promise<string[]> {
  const { store, sourceId, config } = source;
  const known = new Set((await workspacesOf(store.db, sourceId)).map((one) => one.workspaceId));
  const unknown = workspaceIds.filter((id) => !known.has(id) && !listed.includes(id));
  if (unknown.length === 0) return [];
  const start = Date.parse((await dataStartOf(store.db, config.slug)) ?? config.dataStart);
  const { named } = (await namedByUsage(source, { workspaceIds: unknown, start })) ?? { named: new Set() };
  return unknown.filter((id) => !named.has(id));
}

export function notShownError(slug: string, ids: readonly string[]): UsageError {
  const [first = ""] = ids;
  return new UsageError({
    code: "workspace_not_shown",
    message:
      `Source ${slug} is asked to load workspace ${ids.join(", ")}, which the platform does not show: ` +
      "no listing and no usage names it.",
    next: `Correct USAGE_WORKSPACE_IDS, or give the key access to the workspace. If it exists and has no usage yet, run \`usage-etl workspace add ${first} --source ${slug} --force\`.`,
  });
}
