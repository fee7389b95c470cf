import { batchesOf, type UnstoredRequest } from "../../domain/planning/request.ts";
import { ceilToGrid, DAY_MS, strideOfRange } from "../../domain/time/stride.ts";
import type { Window } from "../../domain/time/window.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { UsageError } from "../../errors.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { askUsage, collectUsable } from "../source/ask.ts";
import type { OpenSource } from "../source/source.ts";

interface ReadingRequest {
  /** UTC midnight, epoch milliseconds. */
  readonly start: number;
  readonly workspaceIds: readonly string[];
  /** Name or id. */
  readonly project: string;
  /** Projects before the other dimensions, or after them: see `compareProbe`. */
  readonly projects: "first" | "last";
}

/**
 * Reads the usage of several workspaces from one instant on as an extraction does, and stores none of it. Throws what
 * `askUsage` throws.
 */
export async function readForProbe(source: OpenSource, request: ReadingRequest) {
  const { start, workspaceIds, project } = request;
  const readings = new Map(
    workspaceIds.map((id) => [
      id,
      { projects: {} as Record<string, number>, workspace: 0, user: 0, api_key: 0 },
    ]),
  );
  /** Ids of projects whose id or name is the one looked for, with the workspace of each. */
  const found = new Map<string, string>();
  const read = async (groupBy: GroupBy, add: (reading: Reading, sum: Sum, workspaceId: string) => void) => {
    const members = workspaceIds.map((workspaceId) => ({ workspaceId }));
    for (const batch of batchesOf(groupBy, members)) {
      for (const sum of await sumsOf(source, start, { groupBy, members: batch })) {
        // Only answers by workspace name the workspace; any other request has one member.
        const workspaceId = groupBy === "workspace" ? sum.id : (batch[0]?.workspaceId ?? "");
        const reading = readings.get(workspaceId);
        if (reading !== undefined) add(reading, sum, workspaceId);
      }
    }
  };
  const readProjects = () =>
    read("project", (reading, { id, names, traces }, workspaceId) => {
      reading.projects[id] = traces;
      if (id === project.toLowerCase() || names.includes(project)) found.set(id, workspaceId);
    });
  if (request.projects === "first") await readProjects();
  for (const groupBy of ["workspace", "user", "api_key"] as const) {
    await read(groupBy, (reading, { traces }) => {
      reading[groupBy] += traces;
    });
  }
  if (request.projects === "last") await readProjects();
  return { byWorkspace: readings, found };
}

type Reading = { projects: Record<string, number> } & Record<"workspace" | "user" | "api_key", number>;
type Sum = Awaited<ReturnType<typeof sumsOf>>[number];

/** Traces of each id of a dimension from `start` to now. */
async function sumsOf(source: OpenSource, start: number, asked: Omit<UnstoredRequest, "window">) {
  // The window ends when the attempt is sent: after a wait over midnight it would miss usage.
  const request = async () => ({ ...asked, window: await windowFrom(source, start) });
  return askUsage(source, { purpose: "probe", request }, async (attempt) => {
    const answer = await collectUsable(source, attempt.request);
    const { keys, records, traces } = answer;
    const result = keys.map(({ dimensionId: id, names }) => ({
      id,
      names: names.map((one) => one.name),
      traces: 0,
    }));
    for (const { id: key, traces: count } of answer.rows()) {
      const sum = result[key];
      if (sum !== undefined) sum.traces += count;
    }
    return { outcome: "compared", records, traces, result };
  });
}

/** To the end of today, or to this instant where the server refuses an end in the future. */
async function windowFrom(source: OpenSource, start: number): Promise<Window> {
  const now = await storeNow(source.store.db);
  const end = source.capabilities.has("no_future_end") ? now : ceilToGrid(now, DAY_MS);
  return { start, end, stride: strideOfRange(end - start) };
}

/** The one project that is meant, if it exists yet. Errors: `probe_project_ambiguous`. */
export function theProject(project: string, found: ReadonlyMap<string, string>): string | undefined {
  const ids = [...found.keys()];
  if (ids.length <= 1) return ids[0];
  throw new UsageError({
    code: "probe_project_ambiguous",
    message: `${ids.length} projects are called ${JSON.stringify(project)}: ${ids.join(", ")}.`,
    next: "Set USAGE_PROBE_PROJECT to the id of the project that belongs to the deployment.",
  });
}
