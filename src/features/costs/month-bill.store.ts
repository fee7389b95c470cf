import { sql } from "kysely";
import { type CalendarMonth, monthBefore } from "../../core/domain/months/month.ts";
import { amountText } from "../../core/domain/usage/amount.ts";
import type { Database } from "../../core/store/db/database.ts";
import { iso } from "../../core/store/db/expressions.ts";
import { query } from "../../core/store/db/query.ts";
import { CLOSED_BY } from "../../core/store/months/closes.ts";
import { type Bill, billTotals, type CurrencyCost } from "./bill.ts";
import { monthBill } from "./bill-lines.store.ts";
import { unloadedWorkspaces } from "./bill-terms.store.ts";
import { statementLines } from "./statement-lines.store.ts";

interface BillOf {
  readonly source: string;
  readonly dataStart: string;
  readonly month: CalendarMonth;
}

export async function readMonthBill(db: Database, { source, dataStart, month }: BillOf): Promise<Bill> {
  const monthStart = month.start;
  const lines = await monthBill(db, { source, monthStart });
  const unloaded = await unloadedWorkspaces(db, { source, monthStart });
  const alsoReported = await statementLines(db, { source, monthStart });
  const before = await monthBill(db, { source, monthStart: monthBefore(month).start });
  const [of] = await query<Pick<Bill, "organization" | "asOf" | "closed" | "budgets">>(db)`
    select coalesce(s.organization_name, s.organization_id) as organization, ${iso("now()")} as "asOf",
           (select json_build_object('at', ${iso("m.costs_closed_at")}, 'by', a.actor)
            from usage.close m left join ${CLOSED_BY} on true
            where m.source_id = s.source_id and m.month_start = ${monthStart}::date and m.costs_closed_at is not null) as closed,
           ${budgets(sql`s.slug`)} as budgets
    from usage.source s where s.slug = ${source}
  `;
  return {
    ...{ source, month, dataStart, lines, unloaded, alsoReported },
    ...(of ?? { organization: null, asOf: "", closed: null, budgets: [] }),
    before: billTotals(before).map(({ currency, cost }) => ({ currency, cost: amountText(cost) })),
  };
}

function budgets(source: ReturnType<typeof sql>) {
  return sql<CurrencyCost[]>`(
    select coalesce(json_agg(json_build_object('currency', b.currency, 'cost', b.amount) order by b.currency), '[]')
    from (
      select currency, trim_scale(sum(amount))::text as amount from usage.budget
      where per = 'month' and currency is not null and num_nonnulls(owner, workspace, project) = 0
        and (source = ${source} or source is null and (select count(*) from usage.source) = 1)
      group by currency
    ) b
  )`;
}
