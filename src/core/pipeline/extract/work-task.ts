import { faultOf } from "../../base/faults.ts";
import { scopeIdsOf, type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import { failScopes } from "../../store/catalog/failures.ts";
import type { Store } from "../../store/db/database.ts";
import { idleWorkspaces } from "../../store/load/by-workspace.ts";
import { drawFetchToken } from "../../store/work/fetch-ledger.ts";
import { noteTaskFailed } from "../../store/work/runs.ts";
import {
  type ClaimedTask,
  claimTask,
  createTasks,
  endTask,
  handBackTask,
  releaseTasks,
  type StoredTask,
} from "../../store/work/tasks.ts";
import { isKeyRefused } from "../source/refused-key.ts";
import { keptForMs, type OpenSource } from "../source/source.ts";
import { createsOthers, leftByWorkspace } from "./by-workspace.ts";
import { extractTask, isFinalBy, type TaskResult } from "./extract.ts";

const POISON_AFTER = 20;

export const LOCK_LOST = "lock_lost";

/**
 * `gone`: another worker ended the task, or it was cancelled. `loaded_already`: the window was loaded after the task was
 * created, by another task or by a worker that ended before it could record this.
 */
export type WorkResult =
  | { readonly outcome: "gone" | "poisoned" | "dropped" }
  | { readonly outcome: "loaded_already"; readonly created: number }
  | (TaskResult & { readonly task: StoredTask; readonly created: number });

/**
 * Claims the task of a queue message, fetches and loads it. The task ends in the statement that ends its fetch, or in the
 * transaction that creates its follow-ups (`created`). Throws errors to be retried; the message then stays queued.
 */
export async function workMessage(
  source: OpenSource,
  message: { taskId: number; generation: number; isLastAttempt: boolean },
): Promise<WorkResult> {
  const { store, signal, gate } = source;
  const task = await claimTask(store.db, message);
  if (task === undefined) return { outcome: "gone" };
  try {
    return await workTask(source, task, message.isLastAttempt);
  } catch (error) {
    const handBack = () => handBackTask(store.db, task.taskId);
    if (isHandedBack(error, signal)) await (gate?.onceWritable(handBack) ?? handBack());
    throw error;
  }
}

/**
 * True if a worker that stops with this error gives its claim back. Otherwise (a crash, a freeze, a lasting error) the claim
 * counts towards poison.
 */
function isHandedBack(error: unknown, signal: AbortSignal | undefined): boolean {
  if (signal?.aborted === true) return signal.reason !== LOCK_LOST;
  return isKeyRefused(error) || faultOf(error)?.retryable === true;
}

async function workTask(source: OpenSource, task: ClaimedTask, isLastAttempt: boolean): Promise<WorkResult> {
  const { store } = source;
  if (task.openClaims > POISON_AFTER) return poison(source, task);
  if (source.server.refuses(task.window.stride)) {
    await endTask(store.db, { task, state: "done", code: "stride_not_available" });
    return { outcome: "dropped" };
  }
  // A sync and a backfill may each have a task for the same window, and a worker may have died after its load. A repair does
  // not rely on such a load, because it may only have compared digests.
  const mayCreateOthers = createsOthers(task);
  if (task.isLoaded && !task.isRepair) {
    const created = await endTaskWith(
      source,
      task,
      mayCreateOthers ? await leftByWorkspace(source, task) : [],
    );
    return { outcome: "loaded_already", created };
  }
  const { runId, isRepair } = task;
  const result = await extractTask({ ...source, runId }, task, {
    onTransient: isLastAttempt ? "keep" : "throw",
    isRepair,
    workspacesSince: isRepair ? undefined : task.createdAt,
    isRoutine: task.backfillId === undefined,
    // If the task creates no others, one statement ends both the fetch and the task.
    row: mayCreateOthers ? undefined : task,
  });
  const isSettled = isFinalBy(result);
  if (isSettled && !mayCreateOthers) return { ...result, task, created: 0 };
  // After a split, each part creates the other dimensions of its window. A stride that is not available needs none.
  const isOver = isSettled || result.outcome === "failed" || result.outcome === "unverified";
  const others = mayCreateOthers && isOver ? await leftByWorkspace(source, task) : [];
  return { ...result, task, created: await endTaskWith(source, task, others, result) };
}

/**
 * In one transaction, ends a task and creates its follow-ups and its window's tasks by project, user and key. These tasks keep
 * the creation time of the ended task. Returns the number of new tasks.
 */
async function endTaskWith(
  { store, sourceId, settings }: OpenSource,
  task: ClaimedTask,
  others: readonly UsageRequest[],
  result?: TaskResult,
): Promise<number> {
  const { backfillId, runId, createdAt } = task;
  const workspaceIds = others.flatMap(workspaceIdsOf);
  const dueAfterMs = keptForMs({ settings });
  const quiet = others.length === 0 ? new Set() : await idleWorkspaces(store.db, { sourceId, workspaceIds });
  return store.transaction(async ({ db }) => {
    const isIdle = (one: UsageRequest) => workspaceIdsOf(one).every((id) => quiet.has(id));
    const created =
      (await createTasks(db, { sourceId, backfillId, runId, tasks: result?.followUps ?? [] })) +
      (await createTasks(db, { sourceId, runId, tasks: others, isIdle, dueAfterMs, createdAt }));
    const reason = result && failureOf(result);
    if (reason === undefined) {
      await endTask(db, { task, state: "done", code: result?.code, message: result?.message });
      return created;
    }
    await endTask(db, { task, state: "failed", ...reason });
    // This statement comes last, because other failing tasks of the run wait for it until the transaction ends.
    await noteTaskFailed(db, { runId, ...reason });
    return created;
  });
}

function failureOf({ outcome, code, message }: TaskResult): { code: string; message: string } | undefined {
  if (outcome === "unverified") return UNVERIFIED;
  if (outcome !== "failed") return undefined;
  return { code: code ?? "failed", message: message || `It failed with ${code ?? "an unnamed error"}.` };
}

const UNVERIFIED = {
  code: "workspace_unverified",
  message: "The response had no record of a workspace without proof of access, so it may not mean zero.",
};

async function poison(source: OpenSource, task: StoredTask): Promise<WorkResult> {
  const code = "task_poisoned";
  const message = `${POISON_AFTER} workers took it and neither finished it nor handed it back.`;
  const fetchToken = await drawFetchToken(source.store.db);
  const failure = { scopeIds: scopeIdsOf(task), period: task.window, fetchToken, code, message };
  await failScopes(source.store, { ...failure, state: "failed" });
  await endTask(source.store.db, { task, state: "failed", code, message });
  await noteTaskFailed(source.store.db, { runId: task.runId, code, message });
  source.log.error({ code, task: task.taskId }, message);
  return { outcome: "poisoned" };
}

/** Queues tasks again without working on them, because the platform refuses the key. */
export async function returnMessages(store: Store, taskIds: readonly number[]): Promise<void> {
  await releaseTasks(store.db, taskIds);
}
