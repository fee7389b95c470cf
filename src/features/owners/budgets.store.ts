import type { Days } from "../../core/domain/time/days.ts";
import { amountOf } from "../../core/domain/usage/amount.ts";
import { type Database, query, type Row } from "../../core/store/db/query.ts";
import { COVERAGE_VERSION } from "../../core/store/figures/loaded.ts";
import type { BudgetDay } from "./budget.ts";
import { type Budget, UNALLOCATED } from "./owner.ts";

export interface BudgetTrend extends Budget {
  readonly name: string | null;
  readonly days: readonly BudgetDay[];
  readonly isPriced: boolean;
  /** True if the owner has the rest of a workspace: it includes usage that is not loaded by id and may belong to others. */
  readonly mayBeLess: boolean;
}

interface BudgetRow
  extends Row<"usage.budget", "line" | "source" | "per" | "currency" | "amount" | "warnAt">,
    Pick<BudgetTrend, "of" | "name" | "isPriced" | "mayBeLess"> {
  readonly days: readonly (Omit<BudgetDay, "amount"> & { readonly amount: string })[];
}

export interface BudgetsVersion {
  /** Changes with the day (UTC) and with everything that the state of budgets depends on. Null: there are no budgets. */
  readonly version: string | null;
  /** When the set of budgets last changed, epoch ms. */
  readonly changedAt: number;
}

export async function budgetsVersion(db: Database): Promise<BudgetsVersion | undefined> {
  const rows = await query<BudgetsVersion>(db)`
    select case when exists (select from usage.budget) then
             concat_ws(' ', current_database(), (now() at time zone 'UTC')::date, f.applied_at, ${COVERAGE_VERSION}, p.version, t.version, s.version, i.version)
           end as version,
           floor(extract(epoch from f.budgets_changed_at) * 1000)::float8 as "changedAt"
    from usage.owner_file f
    cross join (select concat_ws(' ', count(*), sum(price_id)) as version from usage.price) p
    cross join (
      select concat_ws(' ', count(*), count(valid_to), max(valid_from), max(valid_to)) as version from usage.resource_tag
    ) t
    cross join (select string_agg(concat_ws(' ', slug, data_start), ' ' order by source_id) as version from usage.source) s
    cross join (select concat_ws(' ', count(*), max(ends_at)) as version from usage.billing_period) i
  `;
  return rows[0];
}

export async function billingPeriodsOn(db: Database, day: string): Promise<ReadonlyMap<string, Days>> {
  const rows = await query<Days & { source: string }>(db)`
    select distinct on (source_id) source_id as source, period_start::text as "from", period_end::text as "to"
    from reporting_detail.dim_billing_period where period_start <= ${day}::date and period_end > ${day}::date
      and source_id in (select b.source from usage.budget b where b.per = 'billing_period')
    order by source_id, period_end
  `;
  return new Map(rows.map(({ source, from, to }) => [source, { from, to }]));
}

/**
 * All budgets, in the order of the file, with the amount of each day over all sources. A day is loaded if it is loaded in every
 * source.
 */
export async function budgetTrends(db: Database, { from, to }: Days): Promise<BudgetTrend[]> {
  const rows = await query<BudgetRow>(db)`
    with day as materialized (
      select budget_number, usage_date as day, round(coalesce(sum(spent), 0), 10)::text as amount, bool_and(is_complete) as "isLoaded",
             bool_or(is_unpriced) as "isUnpriced", bool_and(is_final) as "isFinal",
             array_remove(array_agg(case when not is_complete then source_id end order by source_id), null) as "missingIn"
      from reporting_detail.fct_budget_daily where usage_date >= ${from}::date and usage_date < ${to}::date
      group by 1, 2
    ),
    rest_owner as materialized (
      select distinct owner from usage.owned_days where dimension = '' and exists (select from usage.budget where owner is not null)
    )
    select b.line, b.source, b.per, b.currency, trim_scale(b.amount)::text as amount, b.warn_at as "warnAt",
           case when num_nonnulls(b.owner, b.workspace, b.project) > 0 then json_build_object(
             'kind', case when b.owner is not null then 'owner' when b.workspace is not null then 'workspace' else 'project' end,
             'id', coalesce(b.owner, b.workspace, b.project)
           ) end as of,
           (
             select max(e.dimension_name) from usage.labelled_entity e
             where e.dimension = case when b.workspace is not null then 'workspace' else 'project' end
               and e.dimension_id = coalesce(b.workspace, b.project)
           ) as name,
           b.currency is null or exists (select from usage.price p where p.currency = b.currency)
             or exists (select from usage.closed_charge k where k.currency = b.currency) as "isPriced",
           coalesce(b.owner = ${UNALLOCATED} or b.owner in (select owner from rest_owner), false) as "mayBeLess",
           (select coalesce(json_agg(d order by d.day), '[]') from day d where d.budget_number = b.budget_number) as days
    from usage.budget b
    order by b.budget_number
  `;
  return rows.map(({ days, ...budget }) => ({
    ...budget,
    days: days.map(({ day, amount, isLoaded, isUnpriced, isFinal, missingIn }) => {
      return { day, amount: amountOf(amount), isLoaded, isUnpriced, isFinal, missingIn };
    }),
  }));
}
