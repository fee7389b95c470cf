import { sql } from "kysely";
import type { DividingDimension, OwnerFile, OwnerRule } from "../../domain/bill/owner.ts";
import type { Database } from "../db/database.ts";

/** Keeps others from changing owners until the transaction ends. They can still read them. */
export async function lockOwners(db: Database): Promise<void> {
  await sql`lock table usage.owner_file in share row exclusive mode`.execute(db);
}

/** Puts the rules of a file in the place of those that were applied last. */
export async function replaceOwners(db: Database, { content, divideBy, rules }: OwnerFile): Promise<void> {
  await sql`delete from usage.owner_rule`.execute(db);
  await sql`
    insert into usage.owner_file (content, divide_by) values (${content}, ${divideBy})
    on conflict (is_only) do update set content = excluded.content, divide_by = excluded.divide_by, applied_at = now()
  `.execute(db);
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
  // Statements after this one join with all of them: without figures the planner takes them for a few.
  await sql`analyze usage.owner_rule, usage.owner_share`.execute(db);
}

function rowOf({ line, source, workspace, of, name, tag, from, to }: OwnerRule, at: number) {
  return {
    ...{ n: at + 1, line, source, workspace, name, from, to },
    ...{ dimension: of?.dimension ?? null, id: of?.id ?? null },
    ...{ tagKey: tag?.key ?? null, tagValue: tag?.value ?? null },
  };
}

export interface AppliedOwners {
  readonly content: string;
  readonly divideBy: DividingDimension;
  readonly rules: number;
  readonly appliedAt: Date;
}

/** The file that was applied last; undefined if none was. */
export async function appliedOwners(db: Database): Promise<AppliedOwners | undefined> {
  const { rows } = await sql<AppliedOwners>`
    select content, divide_by as "divideBy", applied_at as "appliedAt", (select count(*)::integer from usage.owner_rule) as rules
    from usage.owner_file
  `.execute(db);
  return rows[0];
}

/** Lines of rules that decide nothing: what they name is not known, or earlier rules have all of it. */
export async function idleRules(db: Database): Promise<number[]> {
  const { rows } = await sql<{ line: number }>`
    select line from usage.owner_rule where rule_number not in (select rule_number from usage.ruled_days) order by line
  `.execute(db);
  return rows.map(({ line }) => line);
}

/** What an owner has of a month: traces, or costs in one currency. */
export interface OwnerAmount {
  readonly source: string;
  /** Such as 2026-03. */
  readonly month: string;
  readonly owner: string;
  readonly costCenter: string;
  /** Null: traces. */
  readonly currency: string | null;
  /** An exact decimal. */
  readonly amount: string;
}

const AMOUNTS = sql`
  select source_id as source, to_char(usage_date, 'YYYY-MM') as month, owner, cost_center, null as currency, sum(traces) as amount
  from reporting.fct_usage_owner_daily where traces is not null group by 1, 2, 3, 4
  union all
  select source_id, to_char(usage_date, 'YYYY-MM'), owner, cost_center, currency, sum(estimated_cost)
  from reporting.fct_cost_owner_daily group by 1, 2, 3, 4, 5`;

/** Of all months. */
export async function ownerAmounts(db: Database): Promise<OwnerAmount[]> {
  const { rows } = await sql<OwnerAmount>`
    select source, month, owner, cost_center as "costCenter", currency, trim_scale(amount)::text as amount from (${AMOUNTS}) a
  `.execute(db);
  return rows;
}

/** What an owner had of a month, and has now. */
export interface OwnerChange extends Omit<OwnerAmount, "amount"> {
  readonly before: string;
  readonly after: string;
  /** Of `after` less `before`. */
  readonly change: string;
  /** Whether the month is closed: then what was told of it is not true any more. */
  readonly isClosed: boolean;
}

/** What is not as it was. */
export async function ownerChanges(db: Database, before: readonly OwnerAmount[]): Promise<OwnerChange[]> {
  const { rows } = await sql<OwnerChange>`
    select source, month, owner, cost_center as "costCenter", currency, trim_scale(coalesce(b.amount, 0))::text as before,
           trim_scale(coalesce(a.amount, 0))::text as after, trim_scale(coalesce(a.amount, 0) - coalesce(b.amount, 0))::text as change,
           exists (
             select from usage.month_close c join usage.source s using (source_id) where s.slug = source and to_char(c.month_start, 'YYYY-MM') = month
           ) as "isClosed"
    from (
      select source, month, owner, cost_center, coalesce(currency, '') as currency, amount from (${AMOUNTS}) a
    ) a
    full join (
      select source, month, owner, "costCenter" as cost_center, coalesce(currency, '') as currency, amount
      from jsonb_to_recordset(${JSON.stringify(before)}::jsonb)
        b (source text, month text, owner text, "costCenter" text, currency text, amount numeric)
    ) b using (source, month, owner, cost_center, currency)
    where coalesce(a.amount, 0) <> coalesce(b.amount, 0)
    order by source, month, currency <> '', currency, abs(coalesce(a.amount, 0) - coalesce(b.amount, 0)) desc, owner, cost_center
  `.execute(db);
  return rows.map(({ currency, ...row }) => ({ ...row, currency: currency === "" ? null : currency }));
}

/** What has usage and no owner. */
export interface Unallocated {
  readonly source: string;
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  /** Null: the rest of the workspace, which no id has. */
  readonly dimension: "project" | "user" | "api_key" | "deployment" | "sandbox" | null;
  readonly id: string;
  readonly name: string | null;
  /** An exact decimal; null of a deployment or sandbox. */
  readonly traces: string | null;
  /** By currency. */
  readonly costs: Readonly<Record<string, string>>;
  /** Tags that it has now, `Application=search`. */
  readonly tags: readonly string[];
}

/** Of the days from `from` on, until `to` (not included): what costs most comes first, then what has most traces. */
export async function unallocatedUsage(
  db: Database,
  { from, to, top }: { from: string; to: string; top: number },
): Promise<Unallocated[]> {
  const isIn = sql`owner = '(unallocated)' and usage_date >= ${from}::date and usage_date < ${to}::date`;
  const { rows } = await sql<Unallocated>`
    with part as (
      select slug, workspace_id, dimension, dimension_id, max(workspace_name) as workspace_name, max(dimension_name) as dimension_name,
             null as currency, sum(traces) as amount
      from usage.owned_usage where ${isIn} group by 1, 2, 3, 4
      union all
      select slug, workspace_id, dimension, dimension_id, max(workspace_name), max(dimension_name), currency, sum(cost)
      from usage.owned_cost where ${isIn} group by 1, 2, 3, 4, currency
    )
    select p.slug as source, p.workspace_id as "workspaceId", max(p.workspace_name) as "workspaceName",
           nullif(p.dimension, '') as dimension, p.dimension_id as id, max(p.dimension_name) as name,
           trim_scale(sum(p.amount) filter (where p.currency is null))::text as traces,
           coalesce(jsonb_object_agg(p.currency, trim_scale(p.amount)::text) filter (where p.currency is not null), '{}') as costs,
           array(
             select t.tag_key || '=' || t.tag_value
             from usage.resource_tag t
             join usage.entity w on w.entity_id = t.workspace_id
             join usage.source s on s.source_id = w.source_id
             where s.slug = p.slug and usage.shown_id(w.external_id) = p.workspace_id and t.dimension = p.dimension
               and usage.shown_id(t.external_id) = p.dimension_id and t.valid_to is null
             order by 1
           ) as tags
    from part p
    where p.amount <> 0
    group by p.slug, p.workspace_id, p.dimension, p.dimension_id
    order by max(p.amount) filter (where p.currency is not null) desc nulls last,
             sum(p.amount) filter (where p.currency is null) desc nulls last, p.workspace_id, p.dimension_id
    limit ${top}
  `.execute(db);
  return rows;
}
