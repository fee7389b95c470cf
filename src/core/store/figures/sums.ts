import { type RawBuilder, sql } from "kysely";
import type { Days } from "../../domain/time/days.ts";
import { type Database, query } from "../db/query.ts";
import { cellsOf, contains, nameOf, sumsIn, type UsageOf, type UsageRange } from "./records.ts";

export interface UsageSum {
  readonly kind: "id" | "none" | "rest";
  readonly key: number | null;
  readonly id: string | null;
  readonly name: string | null;
  readonly ids: number;
  readonly traces: number;
  readonly tracesBefore: number;
}

export interface Listing {
  readonly before: Days;
  readonly top: number;
  readonly find?: string | undefined;
  readonly masked: boolean;
  /** `_up`: the smallest first. */
  readonly sort: "amount" | "growth" | "amount_up" | "growth_up";
}

/**
 * Returns sums of a range and an earlier one: the first `top` ids, the traces without an id, and the rest. They total the sum
 * of the view of days, or of hours.
 */
export async function usageSums(
  db: Database,
  of: UsageOf,
  { range, before, top, find, masked, sort }: Listing & { readonly range: UsageRange },
): Promise<UsageSum[]> {
  const amount = sort.startsWith("growth") ? sql`(t.traces - t.traces_before)` : sql`t.traces`;
  const first = sort.endsWith("_up") ? sql`-${amount}` : amount;
  const isFound =
    find === undefined
      ? sql`true`
      : sql`(${contains(sql`usage.shown_id(e.external_id)`, find)} or coalesce(${contains(nameOf(of, masked), find)}, false))`;
  return query<UsageSum>(db)`
    with ${cellsOf(of)},
    part as (
      ${sumsIn(of, { range, before })}
      ${of.by === "workspace" ? sql`union all select workspace_id, 0, 0 from cell` : sql``}
    ),
    total as (
      select key, coalesce(sum(traces), 0)::bigint as traces, coalesce(sum(before), 0)::bigint as traces_before
      from part group by key
    ),
    placed as (
      select t.*, e.external_id = '' as is_none, ${isFound} as is_found,
             row_number() over (order by e.external_id = '', not ${isFound}, ${first} desc, e.external_id collate "C") as place
      from total t join usage.entity e on e.entity_id = t.key
      ${find === undefined ? sql`` : currentName(sql`t.key`)}
      where t.traces > 0 or t.traces_before > 0 or ${of.by === "workspace"}
    ),
    line as (
      select case when is_none then 'none' when is_found and place <= ${top} and (traces > 0 or ${of.by === "workspace"}) then 'id' else 'rest' end
               as kind, *
      from placed
    ),
    folded as (
      select kind, case when kind = 'id' then place end as place, case when kind <> 'rest' then min(key) end as key,
             count(*) filter (where traces > 0 or ${of.by === "workspace"})::integer as ids,
             sum(traces)::bigint as traces, sum(traces_before)::bigint as traces_before
      from line group by 1, 2
    )
    select f.kind, f.key, usage.shown_id(e.external_id) as id, ${nameOf(of, masked)} as name,
           f.ids, f.traces, f.traces_before as "tracesBefore"
    from folded f
    left join usage.entity e on e.entity_id = f.key
    ${currentName(sql`f.key`)}
    order by array_position('{id,none,rest}', f.kind), f.place
  `;
}

function currentName(key: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`left join lateral (
      select n.name from usage.entity_name n where n.entity_id = ${key}
      order by n.fetch_number desc limit 1
    ) n on true`;
}
