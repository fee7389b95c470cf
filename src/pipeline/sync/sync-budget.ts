import type { SourceConfig } from "../../config/config.ts";
import { planSlices } from "../../domain/planning/slice.ts";
import { DAY_MS, floorToGrid } from "../../domain/time/stride.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { capabilitiesOf } from "../../store/catalog/server-capabilities.ts";
import { workspacesOf } from "../../store/catalog/workspaces.ts";
import type { Database } from "../../store/db/database.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { listSources } from "../../store/report/overview.ts";
import { sharesOf } from "../source/rate-shares.ts";
import type { OpenSource } from "../source/source.ts";
import { routineDemand } from "./plan.ts";

/** Requests of one round once all that is settled is loaded, and how many the rate budget lets through until the next. */
export interface SyncBudget {
  readonly needed: number;
  readonly allowed: number;
  /** What to do about it, where it is too small. */
  readonly problem: { readonly code: string; readonly message: string; readonly next: string } | undefined;
}

type Rounds = Pick<OpenSource, "workspaces" | "capabilities" | "strideRetries" | "dataStart"> & {
  readonly config: Pick<SourceConfig, "slug" | "rateLimit">;
  readonly settings: Pick<OpenSource["settings"], "settleAfterMs" | "hourlyForMs" | "syncEveryMs">;
};

const MINUTE_MS = 60_000;

/**
 * What unsettled time costs each round. Above the budget no round is done when the next one begins: what is planned
 * grows, and old windows are left with the share that the feed keeps for them.
 */
export function syncBudget(source: Rounds, now: number): SyncBudget {
  const { config, settings, dataStart } = source;
  const settled = { start: dataStart, end: floorToGrid(now - settings.settleAfterMs, DAY_MS) };
  const done = settled.start < settled.end ? [settled] : [];
  const scopes = source.workspaces.flatMap(({ workspaceId }, w) =>
    GROUPINGS.flatMap((groupBy, g) =>
      (["day", "hour"] as const).map((stride, s) => ({
        ...{ workspaceId, groupBy, stride, done },
        scopeId: (w * GROUPINGS.length + g) * 2 + s,
      })),
    ),
  );
  const needed = planSlices({ scopes, wanted: routineDemand(source, now), dataStart }).length;
  const { fetch } = sharesOf(config.rateLimit);
  const allowed = Math.floor((fetch.max * settings.syncEveryMs) / fetch.duration);
  if (needed <= allowed) return { needed, allowed, problem: undefined };
  const minutes = Math.ceil(((needed / fetch.max) * fetch.duration) / MINUTE_MS);
  return {
    needed,
    allowed,
    problem: {
      code: "rate_budget_short",
      message: `A round of source ${config.slug} needs ${needed} requests, and the rate budget lets ${allowed} through until the next one: figures come later from round to round.`,
      next: `Set USAGE_SYNC_EVERY to PT${minutes}M or more, or raise USAGE_RATE_LIMIT if the platform grants it.`,
    },
  };
}

/** The same of a configured source that is not open; undefined where it was never opened. */
export async function knownSyncBudget(
  db: Database,
  known: { config: SourceConfig; settings: Rounds["settings"] },
): Promise<SyncBudget | undefined> {
  const { config, settings } = known;
  const found = (await listSources(db)).find(({ source }) => source === config.slug);
  if (found === undefined) return undefined;
  const capabilities = await capabilitiesOf(db, found.sourceId);
  const workspaces = (await workspacesOf(db, found.sourceId)).filter(
    ({ workspaceId }) => config.workspaceIds.length === 0 || config.workspaceIds.includes(workspaceId),
  );
  const dataStart = Date.parse(`${config.dataStart}T00:00:00Z`);
  const learned = {
    capabilities: new Set(capabilities.map(({ capability }) => capability)),
    strideRetries: new Set<never>(),
  };
  return syncBudget({ config, settings, dataStart, workspaces, ...learned }, await storeNow(db));
}
