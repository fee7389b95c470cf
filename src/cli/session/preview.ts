import type { SourceConfig } from "../../config/config.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import {
  backfillBudget,
  type PreviewedSource,
  planBackfill,
  previewBackfill,
  previewedSource,
} from "../../pipeline/backfill/plan-backfill.ts";
import { refuseOutside, type Wish, workspacesOf } from "../../pipeline/backfill/wish.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { describePlan, type PlannedSource, planToData } from "../report/plan-report.ts";
import { EXIT } from "./exit.ts";
import { groupingsOf, meterOf, type RangeOptions, rangeOf, type SelectionOptions } from "./options.ts";
import type { Session } from "./session.ts";

type Asked = RangeOptions & SelectionOptions & { readonly reprocess?: Wish["reprocess"] };

/** Without any source the plan is that of a cloud organization. */
const NO_SOURCE: Pick<SourceConfig, "slug" | "dataStart" | "workspaceIds" | "rateLimit"> = {
  ...{ slug: "default", dataStart: "2026-01-05", workspaceIds: [], rateLimit: 200 },
};

/** Shows what is loaded of a range and what would be asked for, of every source: `plan` and `backfill --dry-run`. */
export async function showPreview(session: Session, options: Asked): Promise<number> {
  const asked = rangeOf(options);
  const { stride, reprocess = "missing" } = options;
  const { config: settings, output } = session;
  const store = settings.databaseUrl === undefined ? undefined : await session.migratedStore();
  const now = store === undefined ? Date.now() : await storeNow(store.db);
  const planned: PlannedSource[] = [];
  for (const config of settings.sources.length === 0 ? [NO_SOURCE] : settings.sources) {
    const known = await previewedSource(config, store?.db);
    refuseOutside(known, asked, now);
    const isKnown = known.workspaceIds.length > 0;
    const workspaceIds = isKnown
      ? workspacesOf(options.workspace, known.workspaceIds)
      : (options.workspace ?? []);
    const chosen = { ...known, workspaceIds };
    const wish = {
      meter: meterOf(options),
      range: asked,
      stride,
      groupings: groupingsOf(options),
      reprocess,
    };
    planned.push({
      ...wish,
      ...(await previewBackfill(chosen, wish, { now })),
      beside: await besideOf(chosen, wish, { meters: settings.meters, now }),
      source: chosen,
      askedEnd: asked.end,
      hasDatabase: store !== undefined,
      rateLimit: config.rateLimit,
      // What routine syncs need is that of all workspaces.
      budget: isKnown ? backfillBudget(known, { config, settings, now }) : undefined,
    });
  }
  output.data(planned.map(planToData), () => planned.map(describePlan).join("\n\n"));
  return EXIT.done;
}

/** What syncs load of the same days beside traces of all tiers. */
async function besideOf(
  source: PreviewedSource,
  wish: Wish,
  { meters, now }: { meters: readonly Meter[]; now: number },
): Promise<PlannedSource["beside"]> {
  if (wish.meter !== "traces" || wish.stride !== "day") return [];
  const others = meters.filter((meter) => meter !== "traces" && source.stored?.source.meters.has(meter));
  const planned = await Promise.all(
    others.map(async (meter) => {
      const { tasks } = await planBackfill(source, { ...wish, meter }, now);
      return { meter, requests: tasks.length };
    }),
  );
  return planned.filter(({ requests }) => requests > 0);
}
