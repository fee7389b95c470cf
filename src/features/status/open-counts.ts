import type { Config } from "../../core/base/config.ts";
import { lastRuns } from "../../core/store/activity/run-history.ts";
import type { Database } from "../../core/store/db/database.ts";
import type { Counts } from "../../web/layout.ts";
import { ALL_SOURCES } from "../../web/place.ts";
import { countOpenDifferences } from "../activity/difference-list.store.ts";
import { conditionSettingsOf, openIncidents } from "../alerts/conditions.ts";
import { listGaps } from "../coverage/gaps.store.ts";

/** Counts open things of a source or, with `*`, of all, for the links of the navigation. */
export async function openCounts(
  db: Database,
  { config, source }: { config: Config; source: string | undefined },
): Promise<Counts> {
  const isChosen = (slug: string) => source === ALL_SOURCES || slug === source;
  const of = <T extends { readonly source: string }>(all: readonly T[]) =>
    all.filter((one) => isChosen(one.source));
  const sum = (amounts: readonly number[]) => amounts.reduce((all, one) => all + one, 0);
  const runs = of(await lastRuns(db, "sync"));
  const incidents = await openIncidents(db, conditionSettingsOf(config));
  const ends = runs.flatMap(({ finishedAt }) => (finishedAt === null ? [] : Date.parse(finishedAt)));
  return {
    gaps: of(await listGaps(db)).length,
    differences: sum(
      [...(await countOpenDifferences(db))].map(([slug, open]) => (isChosen(slug) ? open : 0)),
    ),
    alerts: sum([...incidents].map(([slug, own]) => (isChosen(slug) ? own.length : 0))),
    isSyncing: runs.some(({ finishedAt, outcome }) => finishedAt === null && outcome === "running"),
    syncedAt: ends.length === 0 ? undefined : Math.max(...ends),
  };
}
