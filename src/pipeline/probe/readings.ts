import { WORKSPACES_PER_REQUEST } from "../../domain/planning/slice.ts";
import type { WorkspaceReading } from "../../domain/probe.ts";
import { ceilToGrid, DAY_MS, strideOfRange } from "../../domain/time/stride.ts";
import type { Window } from "../../domain/time/window.ts";
import { AnswerCollector } from "../../domain/usage/answer.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { PlatformError, UsageError } from "../../errors.ts";
import { beginFetch, finishFetch, storeNow } from "../../store/load/fetch-ledger.ts";
import { withRetries } from "../source/retry.ts";
import { keepRefusal, type OpenSource } from "../source/source.ts";

/** Usage of several workspaces from one instant on, and what the probe's project is among it. */
export interface ProbeReading {
  readonly byWorkspace: ReadonlyMap<string, WorkspaceReading>;
  /** Ids of projects whose id or name is the one looked for, with the workspace of each. */
  readonly found: ReadonlyMap<string, string>;
}

interface ReadingRequest {
  /** UTC midnight, epoch milliseconds. */
  readonly start: number;
  readonly workspaceIds: readonly string[];
  /** Name or id. */
  readonly project: string;
  /** Projects before the other groupings, or after them: see `compareProbe`. */
  readonly projects: "first" | "last";
}

/**
 * Reads usage through the source's own client, budget and ledger, as an extraction does, and stores none of it. Throws what
 * the platform client raises, and `PlatformError` for an answer whose buckets are not those that were asked for.
 */
export async function readForProbe(source: OpenSource, request: ReadingRequest): Promise<ProbeReading> {
  const { workspaceIds, project } = request;
  const projectsOf = new Map<string, Record<string, number>>();
  const found = new Map<string, string>();
  const readProjects = async () => {
    for (const workspaceId of workspaceIds) {
      const sums = await sumsOf(source, request.start, "project", [workspaceId]);
      projectsOf.set(workspaceId, Object.fromEntries(sums.map((one) => [one.id, one.traces])));
      for (const { id, names } of sums) {
        if (id === project.toLowerCase() || names.includes(project)) found.set(id, workspaceId);
      }
    }
  };
  if (request.projects === "first") await readProjects();
  const workspaces = new Map<string, number>();
  for (let first = 0; first < workspaceIds.length; first += WORKSPACES_PER_REQUEST) {
    const batch = workspaceIds.slice(first, first + WORKSPACES_PER_REQUEST);
    for (const { id, traces } of await sumsOf(source, request.start, "workspace", batch))
      workspaces.set(id, traces);
  }
  const totals = new Map<string, { user: number; api_key: number }>();
  for (const workspaceId of workspaceIds) {
    const total = async (groupBy: "user" | "api_key") =>
      (await sumsOf(source, request.start, groupBy, [workspaceId])).reduce((sum, one) => sum + one.traces, 0);
    totals.set(workspaceId, { user: await total("user"), api_key: await total("api_key") });
  }
  if (request.projects === "last") await readProjects();
  const byWorkspace = new Map(
    workspaceIds.map((id) => [
      id,
      {
        projects: projectsOf.get(id) ?? {},
        workspace: workspaces.get(id) ?? 0,
        ...(totals.get(id) ?? { user: 0, api_key: 0 }),
      },
    ]),
  );
  return { byWorkspace, found };
}

interface Sum {
  readonly id: string;
  readonly names: readonly string[];
  readonly traces: number;
}

/** Traces of each id of a grouping from `start` to now. */
async function sumsOf(
  source: OpenSource,
  start: number,
  groupBy: GroupBy,
  workspaceIds: readonly string[],
): Promise<Sum[]> {
  const { store, sourceId } = source;
  return withRetries(source, async () => {
    await source.admit();
    const window = await windowFrom(source, start);
    const stamp = await beginFetch(store.db, {
      sourceId,
      purpose: "probe",
      groupBy,
      window,
      workspaces: workspaceIds.length,
    });
    const answer = new AnswerCollector({ window, groupBy, workspaceIds });
    try {
      const { stride } = await source.billing.usage(
        { start: window.start, end: window.end, groupBy, workspaceIds },
        { signal: source.signal, onRecords: (records) => answer.add(records) },
      );
      const flaw = answer.flaw(stride);
      if (flaw !== undefined) throw unusable(source, flaw);
    } catch (error) {
      if (error instanceof PlatformError) {
        await finishFetch(store.db, { ...stamp, outcome: "failed", code: error.code, status: error.status });
      }
      await keepRefusal(source, sourceId, error);
      throw error;
    }
    const { records, traces, keys } = answer;
    await finishFetch(store.db, { ...stamp, outcome: "compared", records, traces });
    const sums = keys.map(({ dimensionId, names }) => ({
      id: dimensionId,
      names: names.map((one) => one.name),
      traces: 0,
    }));
    for (const row of answer.rows(keys.map((_, index) => index))) {
      const sum = sums[row.seriesId];
      if (sum !== undefined) sum.traces += row.traces;
    }
    return sums;
  });
}

/** To the end of today, whatever is under way in it; to this instant where the server refuses an end in the future. */
async function windowFrom(source: OpenSource, start: number): Promise<Window> {
  const now = await storeNow(source.store.db);
  const end = source.capabilities.has("no_future_end") ? now : ceilToGrid(now, DAY_MS);
  return { start, end, stride: strideOfRange(end - start) };
}

function unusable(source: OpenSource, flaw: { code: string; message: string }): PlatformError {
  return new PlatformError({
    code: flaw.code,
    method: "GET",
    url: source.config.baseUrl,
    message: `The answer cannot be held against the probe: ${flaw.message}.`,
    next: "`usage-etl doctor` shows what the server was seen to answer.",
  });
}

/** The one project that is meant, if it is there yet. Errors: `probe_project_ambiguous`. */
export function theProject(project: string, found: ReadonlyMap<string, string>): string | undefined {
  const ids = [...found.keys()];
  if (ids.length <= 1) return ids[0];
  throw new UsageError({
    code: "probe_project_ambiguous",
    message: `${ids.length} projects are called ${JSON.stringify(project)}: ${ids.join(", ")}.`,
    next: "Set USAGE_PROBE_PROJECT to the id of the deployment's own.",
  });
}
