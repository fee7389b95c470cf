import { type RawBuilder, sql } from "kysely";
import type { LineKind, WireLine } from "../../core/platform/billing/statement.ts";
import { lockSource } from "../../core/store/catalog/scopes.ts";
import type { Store } from "../../core/store/db/database.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import type { StatementLine } from "./statement.ts";

export async function keepStatementLines(
  store: Store,
  of: { sourceId: number; kinds: readonly LineKind[]; month: string; lines: readonly WireLine[] },
): Promise<void> {
  const { sourceId, kinds, month, lines } = of;
  const rows = lines.map(({ lineId, window, ...line }) => ({
    ...line,
    line_id: lineId,
    window_name: window,
  }));
  await store.transaction(async ({ db }) => {
    // If two readings run at once, the one that ends last counts.
    await lockSource(db, sourceId);
    await sql`
      delete from usage.statement_line where source_id = ${sourceId} and taken_on = ${TODAY} and kind = any (${kinds}::text[])
    `.execute(db);
    await sql`
      insert into usage.statement_line
        (source_id, taken_on, kind, line_id, subject, window_name, month_start, value, remark, read_at)
      select ${sourceId}, ${TODAY}, kind, line_id, subject, window_name, ${month}::date, value, remark, now()
      from json_populate_recordset(null::usage.statement_line, ${JSON.stringify(rows)}::json)
    `.execute(db);
  });
}

const TODAY: RawBuilder<unknown> = sql`(now() at time zone 'UTC')::date`;

export async function statementLines(
  db: Database,
  { source, monthStart }: { source: string; monthStart: string },
): Promise<StatementLine[]> {
  return query<StatementLine>(db)`
    select kind, name, subject, window_name as "window", trim_scale(value)::text as value, unit, remark,
           taken_on::text as "takenOn", endpoint, does_not_say as "doesNotSay"
    from reporting_detail.provider_statement_line
    where source_id = ${source} and month_start = ${monthStart}::date and is_newest
    order by array_position('{members,gateway_spend}', kind), kind, value desc nulls last, line_id
  `;
}
