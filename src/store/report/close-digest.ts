import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Interval } from "../../domain/time/window.ts";
import type { Database } from "../db/database.ts";
import type { RequiredWorkspace } from "./month-open-days.ts";
import { type KeptTotals, totalsToClose } from "./month-totals.ts";

/** A close that is looked at or made. */
interface Close {
  readonly sourceId: number;
  /** First day of the month, ISO. */
  readonly monthStart: string;
  /** Its days that are expected. */
  readonly range: Interval;
  readonly required: readonly RequiredWorkspace[];
  /** Platform ids of the workspaces that are left out. */
  readonly without: readonly string[];
}

/** The digest of a close that would be made now, of what loads keep by month. */
export async function digestToClose(db: Database, close: Close): Promise<string> {
  const { sourceId, monthStart, required } = close;
  const workspaces = required.map(({ entityId }) => entityId);
  return digestOfClose(db, { ...close, kept: await totalsToClose(db, { sourceId, monthStart, workspaces }) });
}

/**
 * SHA-256 of what a close is about: its workspaces and those left out, the totals and costs that it keeps, and each finding on
 * which the platform contradicts itself. Two closes with the same digest keep and accept the same.
 */
export async function digestOfClose(
  db: Database,
  close: Pick<Close, "required" | "without" | "range"> & { readonly kept: KeptTotals },
): Promise<string> {
  const { required, without, range, kept } = close;
  const workspaces = required.map(({ entityId }) => entityId).sort((a, b) => a - b);
  const about = {
    ...{ workspaces, without: [...without].sort(), totals: kept.totals },
    costs: kept.costs.map(({ currency, cost }) => [currency, cost]),
    findings: await findingsIn(db, { workspaces, range }),
  };
  return createHash("sha256").update(JSON.stringify(about)).digest("hex");
}

/** Digest of the findings that a close of these days accepts, with both numbers of each. */
async function findingsIn(
  db: Database,
  { workspaces, range }: { workspaces: readonly number[]; range: Interval },
): Promise<string> {
  const [start, end] = [sql`${new Date(range.start)}::timestamptz`, sql`${new Date(range.end)}::timestamptz`];
  const { rows } = await sql<{ digest: string }>`
    with own as materialized (
      select scope_id from usage.scope
      where workspace_id = any (${[...workspaces]}::integer[]) and stride = 'day'
    )
    select md5(coalesce(string_agg(f.finding, ',' order by f.finding collate "C"), '')) as digest
    from (
      select json_build_array('export', scope_id, extract(epoch from bucket_start), external_id, kind, stored_traces,
                              export_traces, export_says)::text as finding
      from usage.reconciliation_difference d join own using (scope_id)
      where d.state = 'platform_disagrees' and bucket_start >= ${start} and bucket_start < ${end}
      union all
      select json_build_array('total', scope_id, extract(epoch from period_start), extract(epoch from period_end), external_id,
                              kind, stored_traces, control_traces)::text
      from usage.control_difference d join own using (scope_id)
      where d.state = 'platform_disagrees' and period_start < ${end} and period_end > ${start}
    ) f
  `.execute(db);
  return rows[0]?.digest ?? "";
}
