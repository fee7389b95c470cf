import type { Config } from "../../core/base/config.ts";
import { sourceStatuses } from "../../core/store/activity/overview.ts";
import { lastRuns } from "../../core/store/activity/run-history.ts";
import type { Database } from "../../core/store/db/database.ts";
import type { Counts } from "../../web/layout.ts";
import { ALL_SOURCES } from "../../web/place.ts";
import { conditionSettingsOf, openIncidents } from "../alerts/conditions.ts";
import { trustOfSources } from "./trust.store.ts";

/** What is open of a source or, with `*`, of all: the counts beside the links of the navigation. */
export async function openCounts(
  db: Database,
  { config, source }: { config: Config; source: string | undefined },
): Promise<Counts> {
  const of = <T extends { readonly source: string }>(all: readonly T[]) =>
    all.filter((one) => source === ALL_SOURCES || one.source === source);
  const sum = (amounts: readonly number[]) => amounts.reduce((all, one) => all + one, 0);
  const trusts = of(await trustOfSources(db));
  const statuses = of(await sourceStatuses(db));
  const runs = of(await lastRuns(db, "sync"));
  const incidents = await openIncidents(db, conditionSettingsOf(config));
  const ends = runs.flatMap(({ finishedAt }) => (finishedAt === null ? [] : Date.parse(finishedAt)));
  return {
    gaps: sum(trusts.map(({ gapDays }) => gapDays)),
    differences: sum(
      statuses.map(({ openDifferences, platformDisagrees, otherDifferences }) =>
        sum([
          openDifferences,
          platformDisagrees,
          ...otherDifferences.map((one) => one.open + one.platformDisagrees),
        ]),
      ),
    ),
    alerts: sum(
      [...incidents].map(([slug, own]) => (source === ALL_SOURCES || slug === source ? own.length : 0)),
    ),
    syncedAt: ends.length === 0 ? undefined : Math.max(...ends),
  };
}
