import type { SourceConfig } from "../../base/config.ts";
import { counted } from "../../base/printable.ts";
import { planTasks } from "../../domain/planning/plan-tasks.ts";
import { requestsFor } from "../../domain/planning/request.ts";
import { DAY_MS, floorToGrid } from "../../domain/time/stride.ts";
import { METER, METER_NAME, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { plannableSource } from "../../store/activity/plan-facts.ts";
import type { Database } from "../../store/db/database.ts";
import { storeNow } from "../../store/work/fetch-ledger.ts";
import { type PutOffTasks, putOffTasks, SHARE_OF_OLDEST } from "../../store/work/tasks.ts";
import { type Share, sharesOf } from "../source/limit-shares.ts";
import { type OpenSource, startOf } from "../source/source.ts";
import { byMeter, type Demanding, routineDemand } from "./plan.ts";

export interface PutOff extends Pick<PutOffTasks, "tasks" | "byHour" | "quiet"> {
  /** ISO instant when the last of these tasks is sent at the rate limit, if no older paused backfill is resumed. */
  readonly until: string;
}

/**
 * `needed`: requests of a sync after all final days are loaded, if it skips none. `allowed`: requests that the rate
 * limit allows until the next sync.
 */
export interface SyncBudget {
  readonly needed: number;
  readonly added: readonly { readonly meter: Meter; readonly requests: number }[];
  readonly allowed: number;
  /** Null: no task waits longer than a sync. */
  readonly putOff: PutOff | null;
  readonly problem: { readonly code: string; readonly message: string; readonly next: string } | undefined;
}

export type Syncing = Demanding & {
  readonly workspaceIds: readonly string[];
  readonly config: Pick<SourceConfig, "slug" | "rateLimit">;
  readonly settings: Pick<OpenSource["settings"], "settleAfterMs" | "hourlyForMs" | "syncEveryMs" | "meters">;
  readonly putOff?: PutOffTasks | undefined;
};

const MINUTE_MS = 60_000;

/** Returns text like ` (16 of them for long-lived traces)`; empty if there are only traces of all tiers. */
export function describeAdded({ added }: Pick<SyncBudget, "added">): string {
  const parts = added.map(({ meter, requests }) => `${requests} of them for ${METER_NAME[meter]}`);
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`;
}

export function describePutOff({ tasks, byHour, quiet, until }: PutOff): string {
  const count = (n: number) => n.toLocaleString("en-US");
  const parts = [
    ...(byHour === 0 ? [] : [`${count(byHour)} by hour`]),
    ...(quiet === 0 ? [] : [`${count(quiet)} of quiet workspaces`]),
  ];
  const which = parts.length === 0 ? "" : ` (${parts.join(", ")})`;
  return `${counted(tasks, "fetch task")} of syncs ${tasks === 1 ? "is" : "are"} put off${which}. At the rate limit, the last of them is sent about ${until.slice(0, 16).replace("T", " ")} UTC.`;
}

/**
 * If the rate limit allows too few requests, a sync is not done when the next one begins. Plans grow, and old windows get only
 * the share of `takeTasksToQueue`.
 */
export function syncBudget(source: Syncing, now: number): SyncBudget {
  const { config, settings, workspaceIds } = source;
  const notFinal = { start: floorToGrid(now - settings.settleAfterMs, DAY_MS), end: Infinity };
  // Tasks are only counted, so no scope is looked up. All workspaces miss the same time, so only one is planned.
  const members = workspaceIds.map((workspaceId) => ({ workspaceId, scopeId: 0 }));
  const scopes = members
    .slice(0, 1)
    .flatMap((member) =>
      GROUPINGS.flatMap((groupBy) =>
        (["day", "hour"] as const).map((stride) => ({ ...member, groupBy, stride, missing: [notFinal] })),
      ),
    );
  const planned = byMeter(routineDemand(source, now)).map(([meter, wanted]) => {
    const requested = scopes.filter(({ groupBy }) => METER[meter].groupings.includes(groupBy));
    const dataStart = startOf(source, meter);
    const tasks = planTasks({ meter, scopes: requested, wanted, dataStart });
    return { meter, requests: tasks.flatMap((task) => requestsFor({ ...task, members })).length };
  });
  const added = planned.filter(({ meter }) => meter !== "traces");
  const needed = planned.reduce((sum, { requests }) => sum + requests, 0);
  const { fetch } = sharesOf(config.rateLimit);
  const allowed = Math.floor((fetch.max * settings.syncEveryMs) / fetch.duration);
  const putOff = source.putOff === undefined ? null : putOffUntil(source.putOff, { fetch, now });
  if (needed <= allowed || putOff === null) return { needed, added, allowed, putOff, problem: undefined };
  const minutes = Math.ceil(((needed / fetch.max) * fetch.duration) / MINUTE_MS);
  return {
    needed,
    added,
    allowed,
    putOff,
    problem: {
      code: "rate_budget_short",
      message: `A sync of source ${config.slug} needs up to ${needed} requests${describeAdded({ added })}, and the rate limit allows ${allowed} until the next sync. ${describePutOff(putOff)}`,
      next: `Set USAGE_SYNC_EVERY to PT${minutes}M or more, or raise USAGE_RATE_LIMIT if the platform grants it.`,
    },
  };
}

/** The oldest tasks have a share of the requests, so later tasks do not delay them. */
function putOffUntil(
  { tasks, byHour, quiet, ahead }: PutOffTasks,
  { fetch, now }: { fetch: Share; now: number },
): PutOff {
  const waitMs = (ahead * fetch.duration) / (fetch.max * SHARE_OF_OLDEST);
  return { tasks, byHour, quiet, until: new Date(now + waitMs).toISOString() };
}

/** Returns the budget of a configured source without opening it. Undefined if it was never opened. */
export async function knownSyncBudget(
  db: Database,
  { config, settings }: Pick<Syncing, "config" | "settings">,
): Promise<SyncBudget | undefined> {
  const source = await plannableSource(db, config.slug);
  if (source === undefined) return undefined;
  const workspaceIds = source.workspaces.map(({ id }) => id);
  // Daily retries of strides are not part of every sync.
  const [putOff] = await putOffTasks(db, { syncEveryMs: settings.syncEveryMs, source: config.slug });
  const syncing = { ...source, workspaceIds, config, settings, putOff, strideRetries: new Set<never>() };
  return syncBudget(syncing, await storeNow(db));
}
