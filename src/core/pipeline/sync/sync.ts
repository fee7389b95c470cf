import { type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { METER, METER_NAME, METER_NOT_KNOWN, type Meter } from "../../domain/usage/meter.ts";
import { retryAfterOutage } from "../../store/catalog/failures.ts";
import { scopesBackingOff } from "../../store/catalog/scopes.ts";
import { unknownMeters } from "../../store/catalog/source-meters.ts";
import { idleWorkspaces } from "../../store/load/by-workspace.ts";
import { storeNow } from "../../store/work/fetch-ledger.ts";
import type { RunEnd } from "../../store/work/runs.ts";
import {
  createTasks,
  putOffTasks,
  tasksInFlight,
  type WorkspaceWindow,
  workspaceWindows,
} from "../../store/work/tasks.ts";
import { learnMeters, metersToLearn } from "../source/learn-meters.ts";
import { keptForMs, type OpenSource } from "../source/source.ts";
import { planRetries, planSource, routineDemand, type Want } from "./plan.ts";
import { syncBudget } from "./sync-budget.ts";

interface PlannedSync {
  readonly planned: number;
  readonly created: number;
  readonly putOff: number;
  readonly requestedAgain: number;
  readonly unknown: string;
}

/**
 * Creates the tasks of a sync: days for all time, hours as long as they are kept. Failures of an outage are due at once,
 * because the platform has just responded. A window by project, user or key gets no task if the workspace's task of that window
 * is created too: that task creates it, unless its response makes it needless. `created`: tasks that were not in flight.
 * `requestedAgain`: parts of time that failed in an outage and are due again.
 */
export async function planSync(source: OpenSource): Promise<PlannedSync> {
  const { sourceId, store, log, runId } = source;
  const requestedAgain = await retryAfterOutage(store.db, sourceId);
  const now = await storeNow(store.db);
  const inFlight = await tasksInFlight(store.db, sourceId);
  const underWay = await workspaceWindows(store.db, sourceId);
  const backingOff = await scopesBackingOff(store.db);
  const quiet = await idleWorkspaces(store.db, { sourceId });
  const isIdle = (task: UsageRequest) => workspaceIdsOf(task).every((id) => quiet.has(id));
  const create = async (isMeant: (meter: Meter) => boolean) => {
    const meters = new Map([...source.meters].filter(([meter]) => isMeant(meter)));
    const wanted = routineDemand({ ...source, meters }, now).filter(({ meter = "traces" }) => isMeant(meter));
    const planned = (await planRoutine({ ...source, meters }, { wanted, inFlight })).filter(
      mustCreate(underWay, backingOff),
    );
    const own = planned
      .filter(({ groupBy }) => groupBy === "workspace")
      .map((task) => ({ ...task, workspaceIds: workspaceIdsOf(task) }));
    const tasks = planned.filter(mustCreate(own, backingOff));
    return {
      planned: planned.length,
      created: await createTasks(store.db, { sourceId, runId, tasks, isIdle, dueAfterMs: keptForMs(source) }),
    };
  };
  const due = await metersToLearn(source);
  const first = await create((meter) => !due.has(meter));
  // A server that is slow to show what else it counts must not hold up traces.
  await learnMeters(source, due);
  const rest = due.size === 0 ? { planned: 0, created: 0 } : await create((meter) => due.has(meter));
  const { syncEveryMs } = source.settings;
  const [waiting] = await putOffTasks(store.db, { syncEveryMs, source: source.config.slug });
  const { needed, allowed, problem, putOff } = syncBudget({ ...source, putOff: waiting }, now);
  if (problem !== undefined) log.warn({ ...problem, needed, allowed }, "rate budget");
  return {
    planned: first.planned + rest.planned,
    created: first.created + rest.created,
    putOff: putOff?.tasks ?? 0,
    requestedAgain,
    unknown: (await unknownMeters(store.db, sourceId)).map(({ meter }) => METER_NAME[meter]).join(", "),
  };
}

/** The fetch tasks of a sync end later. Its run counts their failures then. */
export function endOfSync({ created, unknown }: Pick<PlannedSync, "created" | "unknown">): RunEnd {
  if (unknown === "") return { outcome: "done", tasks: created };
  const message = `It is not known whether the server counts ${unknown}.`;
  return { outcome: "partly_failed", tasks: created, code: METER_NOT_KNOWN, message };
}

/**
 * Returns whether a task must be created now. It need not if a workspace task over the same window will create it. The same
 * holds if the task's window is part of the workspace task's, because the rest is final or in flight. But if a failure of the
 * task's scope backs off in that rest, the workspace task leaves the scope out.
 */
function mustCreate(
  underWay: readonly WorkspaceWindow[],
  backingOff: ReadonlySet<number>,
): (task: UsageRequest) => boolean {
  const keyOf = ({ meter, window }: Pick<WorkspaceWindow, "meter" | "window">, workspaceId = "") =>
    `${meter} ${window.stride} ${workspaceId}`;
  const windows = new Map<string, Window[]>();
  for (const one of underWay)
    for (const id of one.workspaceIds) {
      const key = keyOf(one, id);
      windows.set(key, [...(windows.get(key) ?? []), one.window]);
    }
  return (task) => {
    if (task.groupBy === "workspace" || METER[task.meter].kind !== "traces") return true;
    const [{ workspaceId, scopeId } = { workspaceId: "", scopeId: 0 }] = task.members;
    const { start, end } = task.window;
    const isBackingOff = backingOff.has(scopeId);
    return !windows
      .get(keyOf(task, workspaceId))
      ?.some((one) =>
        isBackingOff ? one.start === start && one.end === end : one.start <= start && one.end >= end,
      );
  };
}

export async function planRoutine(
  source: OpenSource,
  given: { wanted: readonly Want[]; inFlight?: ReadonlyMap<number, readonly Interval[]> },
): Promise<UsageRequest[]> {
  const missing =
    given.wanted.length === 0 ? [] : await planSource(source, { ...given, reprocess: "missing" });
  return [...missing, ...(await planRetries(source, given))];
}
