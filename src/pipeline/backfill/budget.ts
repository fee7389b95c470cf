import type { SourceConfig } from "../../config/config.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { sharesOf } from "../source/rate-shares.ts";
import { type Syncing, syncBudget } from "../sync/sync-budget.ts";
import type { PreviewedSource } from "./previewed-source.ts";

/** Requests a minute of a source: what the rate limit gives to fetch tasks, what routine syncs need of it, and what is left. */
export interface BackfillBudget {
  readonly perMinute: number;
  readonly routinePerMinute: number;
  /** For backfills. 0 where routine syncs need all of it: backfills then advance only while no sync has work left. */
  readonly leftPerMinute: number;
}

const MINUTE_MS = 60_000;

export function backfillBudget(
  { workspaceIds, dataStart, stored }: PreviewedSource,
  given: { config: Pick<SourceConfig, "slug" | "rateLimit">; settings: Syncing["settings"]; now: number },
): BackfillBudget {
  const { config, settings, now } = given;
  const { fetch } = sharesOf(config.rateLimit);
  const perMinute = (fetch.max * MINUTE_MS) / fetch.duration;
  const source = {
    ...{ config, settings, dataStart },
    meters: new Map<Meter, number>(stored?.source.meters ?? [["traces", dataStart]]),
    workspaces: workspaceIds.map((workspaceId) => ({ workspaceId })),
    capabilities: new Set(stored?.source.capabilities),
    strideRetries: new Set<never>(),
  };
  const routinePerMinute = (syncBudget(source, now).needed * MINUTE_MS) / settings.syncEveryMs;
  return { perMinute, routinePerMinute, leftPerMinute: Math.max(0, perMinute - routinePerMinute) };
}

/** Whole minutes that so many requests take beside routine syncs; null where nothing is left for them. */
export function minutesOf(requests: number, { leftPerMinute }: BackfillBudget): number | null {
  if (requests === 0) return 0;
  return leftPerMinute === 0 ? null : Math.ceil(requests / leftPerMinute);
}
