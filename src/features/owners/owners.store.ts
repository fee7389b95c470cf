import { sql } from "kysely";
import type { Days } from "../../core/domain/time/days.ts";
import { isIfGiven, NOW } from "../../core/store/db/expressions.ts";
import { type Database, query, queryOne, queryValues, type Row } from "../../core/store/db/query.ts";
import { replaceRoutes } from "./alert-routes.store.ts";
import { type OwnedDimension, type OwnerFile, type OwnerRule, type Tag, UNALLOCATED } from "./owner.ts";

/** Others cannot change owners until the transaction ends, but can read them. */
export async function lockOwners(db: Database): Promise<void> {
  await sql`lock table usage.owner_file in share row exclusive mode`.execute(db);
}

export async function replaceOwners(
  db: Database,
  { content, divideBy, rules, budgets, routes }: OwnerFile,
): Promise<void> {
  await db.deleteFrom("usage.owner_rule").execute();
  const file = { content, divide_by: divideBy };
  await db
    .insertInto("usage.owner_file")
    .values(file)
    .onConflict((applied) => applied.column("is_only").doUpdateSet({ ...file, applied_at: NOW }))
    .execute();
  await sql`
    insert into usage.owner_rule
      (rule_number, line, source, workspace, dimension, external_id, name_pattern, tag_key, tag_value, valid)
    select r.n, r.line, r.source, r.workspace, r.dimension, r.id, r.name, r."tagKey", r."tagValue", daterange(r."from", r."to")
    from jsonb_to_recordset(${JSON.stringify(rules.map(rowOf))}::jsonb) r (
      n integer, line integer, source text, workspace text, dimension text, id text, name text, "tagKey" text, "tagValue" text,
      "from" date, "to" date
    )
  `.execute(db);
  const shares = rules.flatMap((rule, at) => rule.shares.map((share) => ({ n: at + 1, ...share })));
  await sql`
    insert into usage.owner_share (rule_number, owner, cost_center, share)
    select s.n, s.owner, s."costCenter", s.share / 10000.0
    from jsonb_to_recordset(${JSON.stringify(shares)}::jsonb) s (n integer, owner text, "costCenter" text, share integer)
  `.execute(db);
  const budgetsBefore = await budgetsText(db);
  await db.deleteFrom("usage.budget").execute();
  await sql`
    insert into usage.budget (budget_number, line, source, owner, workspace, project, currency, amount, warn_at, per)
    select b.n, b.line, b.source, case b.kind when 'owner' then b.id end, case b.kind when 'workspace' then b.id end,
           case b.kind when 'project' then b.id end, b.currency, b.amount, array(select jsonb_array_elements_text(b."warnAt")::integer), b.per
    from jsonb_to_recordset(${JSON.stringify(budgets.map(({ of, ...budget }, at) => ({ n: at + 1, ...budget, ...of })))}::jsonb)
      b (n integer, line integer, source text, kind text, id text, currency text, amount numeric, "warnAt" jsonb, per text)
  `.execute(db);
  if ((await budgetsText(db)) !== budgetsBefore)
    await db.updateTable("usage.owner_file").set({ budgets_changed_at: NOW }).execute();
  await replaceRoutes(db, routes);
  // Without statistics, the planner would expect few rows in later joins.
  await sql`analyze usage.owner_rule, usage.owner_share`.execute(db);
}

/** Equal for equal budgets, whatever their order in the file. */
async function budgetsText(db: Database): Promise<string | null | undefined> {
  const [text] = await queryValues<string | null>(db)`
    select string_agg(b, ' ' order by b) as text
    from (select (to_jsonb(budget) - 'budget_number' - 'line')::text as b from usage.budget) t
  `;
  return text;
}

function rowOf({ line, source, workspace, of, name, tag, from, to }: OwnerRule, at: number) {
  return {
    n: at + 1,
    line,
    source,
    workspace,
    name,
    from,
    to,
    dimension: of?.dimension ?? null,
    id: of?.id ?? null,
    tagKey: tag?.key ?? null,
    tagValue: tag?.value ?? null,
  };
}

export interface AppliedOwners extends Row<"usage.owner_file", "content" | "divideBy" | "appliedAt"> {
  readonly rules: number;
}

/** Returns undefined if no file was applied. */
export async function appliedOwners(db: Database): Promise<AppliedOwners | undefined> {
  const rows = await query<AppliedOwners>(db)`
    select content, divide_by as "divideBy", applied_at as "appliedAt", (select count(*)::integer from usage.owner_rule) as rules
    from usage.owner_file
  `;
  return rows[0];
}

/** Lines of rules without effect: a rule names something unknown, or earlier rules match all of its usage. */
export async function idleRules(db: Database): Promise<number[]> {
  return queryValues<Row<"usage.owner_rule">["line"]>(db)`
    select line from usage.owner_rule where rule_number not in (select rule_number from usage.owned_days) order by line
  `;
}

/**
 * Lines of budgets that count nothing. The source, workspace or project is unknown, the owner has no rule, no price has the
 * currency, or no billing period was read.
 */
export async function idleBudgets(db: Database): Promise<number[]> {
  return queryValues<Row<"usage.budget">["line"]>(db)`
    with owned as materialized (
      select distinct slug, owner from usage.owned_days where exists (select from usage.budget where owner is not null)
    )
    select b.line from usage.budget b
    where not exists (
      select from usage.source s
      where coalesce(s.slug = b.source, true) and case
        when b.owner is not null then b.owner = ${UNALLOCATED} or exists (select from owned o where o.slug = s.slug and o.owner = b.owner)
        when num_nonnulls(b.workspace, b.project) = 0 then true
        else exists (
          select from usage.entity e
          where e.source_id = s.source_id and e.dimension = case when b.project is null then 'workspace' else 'project' end
            and usage.shown_id(e.external_id) = coalesce(b.workspace, b.project)
        )
      end
    )
    or b.currency is not null and not exists (select from usage.price p where p.currency = b.currency)
      and not exists (select from usage.closed_charge k where k.currency = b.currency)
    or b.per = 'billing_period' and not exists (select from reporting_detail.dim_billing_period p where p.source_id = b.source)
    order by 1
  `;
}

export interface NameForId extends Row<"usage.owner_rule", "line"> {
  readonly dimension: string;
  readonly given: string;
  /** Ids, as views show them, that have the given name in any case. */
  readonly ids: readonly string[];
}

/** Lines whose id is unknown but is the current name of an id. */
export async function namesForIds(db: Database): Promise<NameForId[]> {
  return query<NameForId>(db)`
    with given (line, source, dimension, id) as (
      select line, source, dimension, external_id from usage.owner_rule where external_id is not null
      union select line, source, 'workspace', workspace from usage.owner_rule where workspace is not null
      union select line, source, 'workspace', workspace from usage.budget where workspace is not null
      union select line, source, 'project', project from usage.budget where project is not null
    )
    select g.line, g.dimension, g.id as given, array_agg(distinct n.dimension_id order by n.dimension_id) as ids
    from given g
    join usage.labelled_entity n on n.dimension = g.dimension and lower(n.dimension_name) = lower(g.id)
    join usage.source s on s.source_id = n.source_id and s.slug = coalesce(g.source, s.slug)
    where not exists (
      select from usage.entity e where e.dimension = g.dimension and usage.shown_id(e.external_id) = g.id
    )
    group by 1, 2, 3 order by 1, 2
  `;
}

export interface OwnedPart {
  readonly source: string;
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  /** Null: the rest of the workspace, which has no id. */
  readonly dimension: OwnedDimension | null;
  readonly id: string;
  readonly name: string | null;
  /** Exact decimal. Null for deployments and sandboxes, and if traces are not loaded. */
  readonly traces: string | null;
  readonly costs: Readonly<Record<string, string>>;
  readonly lines: readonly number[];
  readonly tags: readonly Tag[];
}

/** The highest cost comes first, then the most traces. */
export async function ownedParts(
  db: Database,
  { source, owner, from, to, top }: Days & { source: string | null; owner: string; top: number },
): Promise<OwnedPart[]> {
  const isIn = sql`owner = ${owner} and usage_date >= ${from}::date and usage_date < ${to}::date
    and ${isIfGiven("slug", source)}`;
  return query<OwnedPart>(db)`
    with part as materialized (
      select slug, workspace_id, dimension, dimension_id, max(workspace_name) as workspace_name, max(dimension_name) as dimension_name,
             array_agg(distinct rule_number) as rules, null as currency, sum(traces) as amount
      from usage.owned_usage where ${isIn} group by 1, 2, 3, 4
      union all
      select slug, workspace_id, dimension, dimension_id, max(workspace_name), max(dimension_name), array_agg(distinct rule_number), currency,
             sum(cost)
      from usage.owned_cost where ${isIn} group by 1, 2, 3, 4, currency
    ),
    -- A join, because look-ups for a list of thousands take quadratic time.
    line as (
      select p.slug, p.workspace_id, p.dimension, p.dimension_id, array_agg(distinct r.line order by r.line) as lines
      from part p cross join unnest(p.rules) n join usage.owner_rule r on r.rule_number = n
      group by 1, 2, 3, 4
    ),
    tag as (
      select s.slug, usage.shown_id(w.external_id) as workspace_id, t.dimension, usage.shown_id(t.external_id) as dimension_id,
             jsonb_agg(jsonb_build_object('key', t.tag_key, 'value', t.tag_value) order by t.tag_key) as tags
      from usage.resource_tag t
      join usage.entity w on w.entity_id = t.workspace_id
      join usage.source s on s.source_id = w.source_id
      where t.valid_to is null
      group by 1, 2, 3, 4
    )
    select p.slug as source, p.workspace_id as "workspaceId", max(p.workspace_name) as "workspaceName",
           nullif(p.dimension, '') as dimension, p.dimension_id as id, max(p.dimension_name) as name,
           trim_scale(sum(p.amount) filter (where p.currency is null))::text as traces,
           coalesce(jsonb_object_agg(p.currency, trim_scale(p.amount)::text) filter (where p.currency is not null), '{}') as costs,
           coalesce(l.lines, '{}') as lines, coalesce(t.tags, '[]') as tags
    from part p
    left join line l using (slug, workspace_id, dimension, dimension_id)
    left join tag t using (slug, workspace_id, dimension, dimension_id)
    where p.amount <> 0
    group by p.slug, p.workspace_id, p.dimension, p.dimension_id, l.lines, t.tags
    order by max(p.amount) filter (where p.currency is not null) desc nulls last,
             sum(p.amount) filter (where p.currency is null) desc nulls last, p.workspace_id, p.dimension_id
    limit ${top}
  `;
}

/** Costs of an owner by month. Exact decimals. `source` null: of all sources. */
export async function ownerMonths(
  db: Database,
  { source, owner, from, to }: Days & { source: string | null; owner: string },
): Promise<{ readonly monthStart: string; readonly currency: string; readonly cost: string }[]> {
  return query<{ monthStart: string; currency: string; cost: string }>(db)`
    select date_trunc('month', usage_date)::date::text as "monthStart", currency, trim_scale(sum(cost))::text as cost
    from usage.owned_cost
    where owner = ${owner} and usage_date >= ${from}::date and usage_date < ${to}::date and ${isIfGiven("slug", source)}
    group by 1, 2 order by 1, 2
  `;
}

export async function ownersOfParts(
  db: Database,
  parts: readonly { n: number; source: string; workspaceId: string; day: string; by: string; id: string }[],
): Promise<ReadonlyMap<number, string>> {
  if (parts.length === 0) return new Map();
  const rows = await query<{ n: number; owner: string }>(db)`
    select distinct on (p.n) p.n, o.owner
    from jsonb_to_recordset(${JSON.stringify(parts)}::jsonb) p (n integer, source text, "workspaceId" text, day date, by text, id text)
    join usage.owned_days o
      on o.slug = p.source and o.workspace_id = p."workspaceId" and o.dimension = p.by and o.dimension_id = p.id and o.days @> p.day
    order by p.n, o.share desc, o.owner
  `;
  return new Map(rows.map(({ n, owner }) => [n, owner]));
}

export interface OwnedState {
  /** Days x workspaces on which traces or priced usage is not loaded. */
  readonly daysMissing: number;
  /** Days x workspaces that are loaded only by workspace: all of their usage is the rest. */
  readonly daysUndivided: number;
  readonly open: readonly string[];
}

/** Days without usage are included, because a zero may change too. */
export async function ownedState(
  db: Database,
  { source, range }: { source: string; range: Days },
): Promise<OwnedState> {
  return queryOne<OwnedState>(db)`
    with cell as materialized (
      select workspace_entity_id, group_by, expected, loaded, final from usage.trace_cell
      where slug = ${source} and group_by in ('workspace', (select dimension from usage.owned_dimension))
      union all
      -- Other usage of today may come tomorrow.
      select c.workspace_entity_id, 'priced', c.expected * datemultirange(daterange(null, (now() at time zone 'UTC')::date)), c.loaded, c.final
      from usage.bill_cell c join usage.source s using (source_id)
      where s.slug = ${source} and c.meter <> 'traces'
        and c.meter in (select unnest(usage.meters_of_measure(p.meter)) from usage.priced_meter p)
    ),
    span as (
      select datemultirange(daterange(${range.from}, ${range.to})) as days
    ),
    workspace as materialized (
      select range_agg(s.days * c.expected - c.loaded) filter (where c.group_by in ('workspace', 'priced')) as missing,
             range_agg(s.days * c.expected - c.loaded) filter (where c.group_by not in ('workspace', 'priced'))
               - range_agg(s.days * c.expected - c.loaded) filter (where c.group_by = 'workspace') as undivided,
             range_agg(s.days * c.expected - c.final) as open
      from cell c cross join span s group by c.workspace_entity_id
    )
    select coalesce(sum(usage.count_days(missing)), 0)::integer as "daysMissing",
           coalesce(sum(usage.count_days(undivided)), 0)::integer as "daysUndivided",
           array(select d::text from usage.days_of(range_agg(open)) d) as open
    from workspace
  `;
}
