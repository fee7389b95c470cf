import type { SourceConfig } from "../../config/config.ts";
import { UsageError } from "../../errors.ts";
import { previewedSource, previewOf, type Wish } from "../../pipeline/sync/preview.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { instant } from "../report/output.ts";
import { describePlan, type PlannedSource, planToData } from "../report/plan-report.ts";
import { EXIT } from "./exit.ts";
import { groupingsOf, type RangeOptions, rangeOf, type SelectionOptions, workspacesOf } from "./options.ts";
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
  const { config, output } = session;
  const store = config.databaseUrl === undefined ? undefined : await session.migratedStore();
  const now = store === undefined ? Date.now() : await storeNow(store.db);
  const planned: PlannedSource[] = [];
  for (const source of config.sources.length === 0 ? [NO_SOURCE] : config.sources) {
    const known = await previewedSource(source, store);
    refuseOutside(known, asked, now);
    const isKnown = known.workspaceIds.length > 0;
    const workspaceIds = isKnown
      ? workspacesOf(options.workspace, known.workspaceIds)
      : (options.workspace ?? []);
    const chosen = { ...known, workspaceIds };
    const wish = { range: asked, stride, groupings: groupingsOf(options), reprocess };
    const preview = await previewOf(chosen, wish, now);
    planned.push({
      ...wish,
      ...preview,
      source: chosen,
      askedEnd: asked.end,
      hasDatabase: store !== undefined,
      rateLimit: source.rateLimit,
    });
  }
  output.data(planned.map(planToData), () => planned.map(describePlan).join("\n\n"));
  return EXIT.done;
}

/** Error: `range_without_data`. */
export function refuseOutside(
  source: { readonly dataStart: number },
  range: { readonly start: number; readonly end: number },
  now: number,
): void {
  const reason =
    range.end <= source.dataStart
      ? `ends before the source's data start, ${instant(source.dataStart)}`
      : range.start > now
        ? "lies in the future"
        : undefined;
  if (reason === undefined) return;
  throw new UsageError({
    code: "range_without_data",
    message: `The range ${instant(range.start)} to ${instant(range.end)} ${reason}.`,
    next: "Choose a range between the data start (USAGE_DATA_START) and now.",
  });
}
