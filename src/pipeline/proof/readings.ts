import { batchesOf, type UnstoredRequest } from "../../domain/planning/request.ts";
import type { ProbeReadings } from "../../domain/proof/probe.ts";
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
  /**
   * The readings before the traffic, for one after it: projects come first before, and last after (see `compareProbe`).
   * Where the project's workspace is known, of other workspaces only the projects of those that changed are read.
   */
  readonly before?: ProbeReadings;
  readonly home?: string | undefined;
}

type Reading = { workspace: number } & Record<"project" | "user" | "api_key", Record<string, number>>;

/**
 * Reads the usage of several workspaces from one instant on as an extraction does, and stores none of it. Throws what
 * `askUsage` throws.
 */
export async function readForProbe(source: OpenSource, request: ReadingRequest) {
  const { start, workspaceIds, project, before, home } = request;
  const readings = new Map(
    workspaceIds.map((id): [string, Reading] => [id, { workspace: 0, project: {}, user: {}, api_key: {} }]),
  );
  /** Ids of projects whose id or name is the one looked for, with the workspace of each. */
  const found = new Map<string, string>();
  const read = async (groupBy: GroupBy, ids: readonly string[]) => {
    for (const members of batchesOf(
      groupBy,
      ids.map((workspaceId) => ({ workspaceId })),
    )) {
      for (const { id, names, traces } of await sumsOf(source, start, {
        meter: "traces",
        groupBy,
        members,
      })) {
        // Only answers by workspace name the workspace; any other request has one member.
        const workspaceId = groupBy === "workspace" ? id : (members[0]?.workspaceId ?? "");
        const reading = readings.get(workspaceId);
        if (reading === undefined) continue;
        if (groupBy === "workspace") reading.workspace += traces;
        else reading[groupBy][id] = traces;
        const isMeant = id === project.toLowerCase() || names.includes(project);
        if (groupBy === "project" && isMeant) found.set(id, workspaceId);
      }
    }
  };
  if (before === undefined) await read("project", workspaceIds);
  await read("workspace", workspaceIds);
  const near = home === undefined ? workspaceIds : [home];
  await read("user", near);
  await read("api_key", near);
  if (before !== undefined) {
    const isUnchanged = (id: string) => readings.get(id)?.workspace === before.get(id)?.workspace;
    const far = workspaceIds.filter((id) => !near.includes(id));
    await read("project", [...near, ...far.filter((id) => !isUnchanged(id))]);
    for (const id of far.filter(isUnchanged)) {
      Object.assign(readings.get(id) ?? {}, { project: before.get(id)?.project });
    }
  }
  return { readings: readings as ProbeReadings, found };
}

/** Traces of each id of a dimension from `start` to now. */
async function sumsOf(source: OpenSource, start: number, asked: Omit<UnstoredRequest, "window">) {
  // The window ends when the attempt is sent: after a wait over midnight it would miss usage.
  const request = async () => ({ ...asked, window: await windowFrom(source, start) });
  return askUsage(source, { purpose: "probe", request }, async (attempt) => {
    const answer = await collectUsable(source, attempt.request);
    const { keys, records, traces } = answer;
    const result = Array.from(keys, ({ dimensionId: id, names }) => ({
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
