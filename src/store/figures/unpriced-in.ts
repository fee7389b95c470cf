import { sql } from "kysely";
import type { Days } from "../../domain/time/days.ts";
import type { Database } from "../db/database.ts";

/** Usage for which no price is valid: costs leave it out. */
export interface UnpricedDay {
  /** ISO. */
  readonly day: string;
  /** The platform's id. */
  readonly workspaceId: string;
  readonly traces: number;
}

/** By day. None: every day with usage in the range has a price. */
export async function unpricedIn(
  db: Database,
  { source, workspaceId, range }: { source: string; workspaceId: string | null; range: Days },
): Promise<UnpricedDay[]> {
  const { rows } = await sql<UnpricedDay>`
    select usage_date::text as day, workspace_id as "workspaceId", traces
    from reporting.usage_unpriced_daily
    where source_id = ${source} and not has_other_price
      and usage_date >= ${range.from}::date and usage_date < ${range.to}::date
      and ${workspaceId === null ? sql`true` : sql`workspace_id = ${workspaceId}`}
    order by 1, 2
  `.execute(db);
  return rows;
}

/** Such as `1,200 traces (2026-03-01 to 2026-03-09)`. Undefined: none. */
export function describeUnpricedDays(unpriced: readonly UnpricedDay[]): string | undefined {
  const [first, last] = [unpriced[0]?.day, unpriced.at(-1)?.day];
  if (first === undefined) return undefined;
  const traces = unpriced.reduce((sum, one) => sum + one.traces, 0).toLocaleString("en-US");
  return `${traces} traces (${first === last ? first : `${first} to ${last}`})`;
}
