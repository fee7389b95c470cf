import type { RangeLine } from "../../domain/coverage/range-status.ts";
import { listSources } from "../../store/activity/overview.ts";
import { capabilitiesOf } from "../../store/catalog/server-capabilities.ts";
import { meterStartsOf } from "../../store/catalog/source-meters.ts";
import type { Database } from "../../store/db/database.ts";
import type { Backfill } from "../../store/work/backfills.ts";
import { type KnownSource, statusOfAsked } from "../sync/asked-range.ts";
import { clipToFuture } from "../sync/plan.ts";

/** What the tables say now about the range of a backfill, whoever loaded it. */
export async function rangeOfBackfill(db: Database, backfill: Backfill): Promise<RangeLine[]> {
  const known = (await listSources(db)).find(({ source }) => source === backfill.source);
  if (known === undefined) return [];
  const { sourceId } = known;
  const dataStart = Date.parse(`${known.dataStart}T00:00:00Z`);
  const source: KnownSource = {
    ...{ sourceId, dataStart },
    meters: await meterStartsOf(db, { sourceId, dataStart }),
    capabilities: new Set((await capabilitiesOf(db, sourceId)).map(({ capability }) => capability)),
  };
  const { from, to, stride, createdAt, groupings, workspaceIds, meter } = backfill;
  const range = { start: Date.parse(from), end: Date.parse(to) };
  const clipped = clipToFuture(source, range, stride, Date.parse(createdAt));
  const wanted = clipped === undefined ? [] : [{ meter, stride, range: clipped }];
  return statusOfAsked(db, source, { wanted, groupings, workspaceIds });
}
