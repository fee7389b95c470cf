import { type RawBuilder, sql } from "kysely";
import type { BudgetDay } from "../../domain/bill/budget.ts";
import { type Budget, UNALLOCATED } from "../../domain/bill/owner.ts";
import { addDays, type Days } from "../../domain/time/days.ts";
import { amountOf } from "../../domain/usage/amount.ts";
import type { Database } from "../db/database.ts";
import { COVERAGE_VERSION } from "../figures/loaded.ts";

export interface BudgetCourse extends Budget {
  /** Name of the workspace or project; null where it has none. */
  readonly name: string | null;
  /** Each day of the range since the data start. */
  readonly days: readonly BudgetDay[];
  /** Whether there is a price in its currency, or it is in traces. */
  readonly isPriced: boolean;
  /** Whether it is of an owner who has the rest of a workspace: what is not loaded by id is in it, and may be of others. */
  readonly mayBeLess: boolean;
}

interface Row extends Budget {
  readonly name: string | null;
  readonly isPriced: boolean;
  readonly mayBeLess: boolean;
  readonly amounts: readonly { day: string; amount: string }[];
  /** Days of it that are not loaded, by source, or loaded and not final; half-open ranges. */
  readonly missing: Readonly<Record<string, readonly Days[]>>;
  readonly open: readonly Days[];
  /** Of money: days with usage of workspaces that have prices, but none then. */
  readonly unpriced: readonly Days[];
  readonly since: string | null;
}

export interface BudgetsVersion {
  /** Equal as long as nothing that budgets follow from has changed, nor the day (UTC). Null: there are no budgets. */
  readonly version: string | null;
  /** When other budgets were set, epoch milliseconds. */
  readonly changedAt: number;
}

/** Undefined: no owner file is applied. */
export async function budgetsVersion(db: Database): Promise<BudgetsVersion | undefined> {
  const { rows } = await sql<BudgetsVersion>`
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
  `.execute(db);
  return rows[0];
}

/** By slug, of sources that budgets name for it: the billing period in which a day lies. */
export async function billingPeriodsOn(db: Database, day: string): Promise<ReadonlyMap<string, Days>> {
  const { rows } = await sql<Days & { source: string }>`
    select distinct on (source_id) source_id as source, period_start::text as "from", period_end::text as "to"
    from reporting_detail.dim_billing_period where period_start <= ${day}::date and period_end > ${day}::date
      and source_id in (select b.source from usage.budget b where b.per = 'billing_period')
    order by source_id, period_end
  `.execute(db);
  return new Map(rows.map(({ source, from, to }) => [source, { from, to }]));
}

/**
 * All budgets, in the order of the file, with what each had by day. A day is loaded once each workspace that it is about is loaded: by
 * workspace, by what divides traces between owners, and of all that is priced, and nothing of it lacks a price.
 */
export async function budgetCourses(db: Database, { from, to }: Days): Promise<BudgetCourse[]> {
  const isIn = sql`u.usage_date >= ${from}::date and u.usage_date < ${to}::date`;
  const isOf = sql`coalesce(u.source_id = b.source, true)`;
  const { rows } = await sql<Row>`
    with budget as materialized (select * from usage.budget),
    part as (
      select b.budget_number, u.usage_date, u.traces as amount
      from budget b join reporting.fct_usage_owner_daily u on u.owner = b.owner and ${isOf}
      where b.currency is null and ${isIn} and exists (select from budget where owner is not null and currency is null)
      union all
      select b.budget_number, u.usage_date, u.estimated_cost
      from budget b join reporting.fct_cost_owner_daily u on u.owner = b.owner and u.currency = b.currency and ${isOf}
      where ${isIn} and exists (select from budget where owner is not null and currency is not null)
      union all
      select b.budget_number, u.usage_date, u.traces
      from budget b join reporting.fct_usage_workspace_daily u on coalesce(u.workspace_id = b.workspace, true) and ${isOf}
      where b.owner is null and b.project is null and b.currency is null and ${isIn}
        and exists (select from budget where owner is null and project is null and currency is null)
      union all
      select b.budget_number, u.usage_date, u.estimated_cost
      from budget b
      join reporting.fct_cost_workspace_daily u on coalesce(u.workspace_id = b.workspace, true) and u.currency = b.currency and ${isOf}
      where b.owner is null and b.project is null and ${isIn}
        and exists (select from budget where owner is null and project is null and currency is not null)
      union all
      select b.budget_number, u.usage_date, u.traces
      from budget b join reporting.fct_usage_project_daily u on u.project_id = b.project and ${isOf}
      where b.currency is null and ${isIn} and exists (select from budget where project is not null and currency is null)
      union all
      select b.budget_number, u.usage_date, u.estimated_cost
      from budget b join reporting_detail.fct_cost_project_daily u on u.project_id = b.project and u.currency = b.currency and ${isOf}
      where ${isIn} and exists (select from budget where project is not null and currency is not null)
    ),
    spent as (
      select budget_number, json_agg(json_build_object('day', usage_date::text, 'amount', round(amount, 10)::text)) as amounts
      from (select budget_number, usage_date, sum(amount) as amount from part where amount is not null group by 1, 2) p
      group by 1
    ),
    rest_owner as materialized (
      select distinct owner from usage.owned_days where dimension = '' and exists (select from budget where owner is not null)
    ),
    span as materialized (select datemultirange(daterange(${from}::date, ${to}::date)) as days),
    cell as materialized (
      select c.slug, c.workspace_id, c.group_by, null as meter, c.data_start, s.days * c.expected - c.loaded as missing,
             s.days * c.expected - c.final as open
      from usage.trace_cell c cross join span s where c.group_by in ('workspace', 'project', 'user', 'api_key')
      union all
      select w.slug, w.workspace_id, 'workspace', c.meter, null, s.days * c.expected - c.loaded, s.days * c.expected - c.final
      from usage.bill_cell c join usage.shown_workspace w on w.entity_id = c.workspace_entity_id cross join span s
      where c.meter in (select unnest(usage.meters_of_measure(meter)) from usage.priced_meter)
      union all
      -- A workspace that never has a price is meant to have none.
      select u.source_id, u.workspace_id, 'unpriced', null, null, datemultirange(daterange(u.usage_date, u.usage_date + 1)), '{}'
      from reporting_detail.usage_unpriced_daily u
      where not u.has_other_price and ${isIn} and exists (select from budget where currency is not null)
        and (u.source_id, u.workspace_id) in (select u.source_id, u.workspace_id from reporting.fct_cost_workspace_daily u where ${isIn})
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
           coalesce(s.amounts, '[]') as amounts, d.missing, ${rangesOf(sql`d.open`)} as open,
           ${rangesOf(sql`d.unpriced`)} as unpriced, d.since
    from budget b
    left join spent s using (budget_number)
    cross join lateral (
      select coalesce(json_object_agg(c.slug, ${rangesOf(sql`c.missing`)}) filter (where not isempty(c.missing)), '{}') as missing,
             range_agg(c.open) as open, range_agg(c.unpriced) as unpriced, min(c.since)::text as since
      from (
        select c.slug, range_agg(c.missing) as missing, range_agg(c.open) as open,
               range_agg(c.missing) filter (where c.group_by = 'unpriced') as unpriced, min(c.data_start) as since
        from cell c
        where coalesce(c.slug = b.source, true) and coalesce(c.workspace_id = b.workspace, true) and (
          c.group_by = 'workspace' and (c.meter is null or b.currency is not null)
          or c.group_by = 'unpriced' and b.currency is not null
          or c.group_by = case when b.owner is not null then (select o.dimension from usage.owned_dimension o) when b.project is not null then 'project' end
        )
        group by c.slug
      ) c
    ) d
    order by b.budget_number
  `.execute(db);
  return rows.map((row) => courseOf(row, { from, to }));
}

function rangesOf(days: RawBuilder<unknown>) {
  return sql`(
    select coalesce(json_agg(json_build_object('from', lower(r)::text, 'to', upper(r)::text)), '[]') from unnest(${days}) r
  )`;
}

function courseOf(
  { amounts, missing, open, unpriced, since, ...budget }: Row,
  { from, to }: Days,
): BudgetCourse {
  const found = new Map(amounts.map(({ day, amount }) => [day, amountOf(amount)]));
  const isIn = (ranges: readonly Days[], day: string) =>
    ranges.some((one) => one.from <= day && day < one.to);
  const days: BudgetDay[] = [];
  for (let day = from; day < to; day = addDays(day, 1)) {
    if (since === null || day < since) continue;
    const missingIn = Object.keys(missing).filter((source) => isIn(missing[source] ?? [], day));
    const isLoaded = missingIn.length === 0;
    days.push({
      ...{ day, amount: found.get(day) ?? 0n, isLoaded, isUnpriced: isIn(unpriced, day) },
      ...{ isFinal: isLoaded && !isIn(open, day), missingIn },
    });
  }
  return { ...budget, days };
}
