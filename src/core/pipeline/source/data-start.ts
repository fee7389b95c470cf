import type { SourceConfig } from "../../base/config.ts";
import type { Logger } from "../../base/log.ts";
import { closesBetween, dataStartOf } from "../../store/catalog/data-start.ts";
import type { Database } from "../../store/db/database.ts";

/** Undefined unless the configured data start is later than the stored one. The stored one applies. */
export function dataStartProblem(
  slug: string,
  { stored, configured }: { stored: string; configured: string },
) {
  if (configured <= stored) return undefined;
  return {
    code: "data_start_later",
    message: `Source ${slug} is configured to start on ${configured}, but its stored data start, ${stored}, applies.`,
    next: `Run \`usage-etl data-start ${configured} --source ${slug}\` to move the data start, or set USAGE_DATA_START=${stored}.`,
  };
}

export async function logDataStart(
  source: { db: Database; sourceId: number; config: SourceConfig; log: Logger },
  before: string | undefined,
): Promise<void> {
  const { db, sourceId, config, log } = source;
  const stored = await dataStartOf(db, config.slug);
  if (before === undefined || stored === undefined) return;
  const { slug, dataStart: configured } = config;
  const problem = dataStartProblem(slug, { stored, configured });
  if (problem !== undefined) {
    log.warn({ code: problem.code, source: slug, stored, configured }, `${problem.message} ${problem.next}`);
  }
  if (stored === before) return;
  const closedMonths = await closesBetween(db, { sourceId, from: stored, to: before });
  const remark = closedMonths.length === 0 ? "" : " Closed months keep their totals: see their adjustments.";
  log.warn(
    { code: "data_start_moved", source: slug, before, stored, closedMonths },
    `The data start of source ${slug} moved from ${before} to ${stored}.${remark}`,
  );
}
