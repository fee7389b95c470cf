import { scopeIdsOf, type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import { type Comparison, compareExport } from "../../store/proof/compare-export.ts";
import { type OnProgress, sequentially } from "../extract/sequentially.ts";
import { askUsage, queryOf } from "../source/ask.ts";
import type { OpenSource } from "../source/source.ts";

/** The result of comparing tasks with their exports. */
export interface ComparedTasks {
  readonly windows: number;
  readonly requests: number;
  /** Distinct keys compared. */
  readonly compared: number;
  readonly failures: readonly { task: UsageRequest; code: string; message: string }[];
  /** Windows that were not compared: access to the workspace is not proven, or they changed while they were asked for. */
  readonly unverified: number;
  readonly moved: number;
}

/** Asks for the export of each task and compares it with the store, one after another: one export is kept at a time. */
export async function compareTasks(
  source: OpenSource,
  tasks: readonly UsageRequest[],
  onProgress?: OnProgress,
): Promise<ComparedTasks> {
  let [requests, compared, unverified, moved] = [0, 0, 0, 0];
  const work = async (task: UsageRequest) => {
    const compare = () => compareTask(source, task, () => requests++);
    let comparison = await compare();
    // A load that came between the export and the comparison stored something newer, so the export is asked for again.
    if (comparison.outcome === "outdated") comparison = await compare();
    compared += comparison.compared;
    unverified += comparison.unverified.length;
    // Outdated twice in a row, or no longer final: the next pass compares it.
    moved += comparison.outcome === "outdated" ? task.members.length : comparison.notFinal.length;
  };
  const failed = await sequentially(source, tasks, { work, onProgress });
  const failures = failed.map(({ one, ...reason }) => ({ task: one, ...reason }));
  return { windows: tasks.length, requests, compared, failures, unverified, moved };
}

async function compareTask(
  source: OpenSource,
  task: UsageRequest,
  onAttempt: () => void,
): Promise<Comparison> {
  const { store, sourceId, billing, signal, settings } = source;
  const { meter, groupBy, window } = task;
  return askUsage(source, { purpose: "reconcile", request: task, onAttempt }, async ({ stamp }) => {
    const exported = await billing.exportCsv(queryOf(task), { signal });
    const asked = {
      ...{ sourceId, meter, groupBy, window, stamp, whole: exported.whole },
      workspaceIds: workspaceIdsOf(task),
      scopeIds: scopeIdsOf(task),
      // An address that is not stored cannot be compared.
      withNames: groupBy !== "user" || settings.userEmail === "keep",
    };
    const comparison = await exported
      .read((rows) => compareExport(store, { ...asked, rows }))
      .finally(() => exported.close());
    const { rows: records, traces } = comparison;
    return { outcome: "compared", records, traces, result: comparison };
  });
}
