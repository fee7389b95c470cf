import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Days } from "../../core/domain/time/days.ts";
import { amountText } from "../../core/domain/usage/amount.ts";
import { type Database, query, queryOne } from "../../core/store/db/query.ts";
import { IS_NOT_EXPECTED } from "../costs/bill-terms.store.ts";
import type { Explanation } from "./explain.ts";
import type { InvoiceStatus } from "./invoice.ts";
import {
  billedDays,
  keyOf,
  type MatchedInvoice,
  type MatchInputs,
  type StoredLine,
  targetOf,
} from "./match-inputs.ts";
import { type InvoiceRule, monthOf, SHIPPED_RULES } from "./rule.ts";
import { storedRules } from "./rules.store.ts";

interface Read
  extends Pick<
    MatchInputs,
    "charges" | "prices" | "changes" | "upgrades" | "openDays" | "unread" | "workspaces"
  > {}

/** Reads what a match follows from. Usage is read by month, workspace and price from the stored charges, never by record. */
export async function readMatchInputs(db: Database, invoiceId: number): Promise<MatchInputs> {
  const invoice = await queryOne<MatchedInvoice & { sourceId: number }>(db)`
    select invoice_id as "invoiceId", source_id as "sourceId", issuer, number, status, issued_on::text as "issuedOn", currency,
           corrects_number as corrects, trim_scale(total)::text as total
    from usage.invoice where invoice_id = ${invoiceId}
  `;
  const { sourceId, ...shown } = invoice;
  const rules = [...(await storedRules(db)), ...SHIPPED_RULES];
  const lines = await linesOf(db, invoiceId);
  const about = { invoice: shown, rules };
  const targets = lines.map((line) => targetOf(line, about));
  const periods = unique(targets.flatMap((target) => ("why" in target ? [] : [target.period])));
  // A line that no rule matches is compared with the usage of its period, to suggest a rule.
  const unruled = lines.flatMap((line, at) => {
    const target = targets[at];
    if (target === undefined || !("why" in target) || target.why !== "no_rule") return [];
    const month = monthOf("previous_month", invoice.issuedOn);
    return line.periodStart !== null && line.periodEnd !== null
      ? [{ from: line.periodStart, to: line.periodEnd }]
      : (month ?? []);
  });
  const billed = unique([...periods, ...unruled].map(billedDays));
  const whole = new Set(billed.map(keyOf));
  const asked = [
    ...billed.map((days) => ({ ...days, isBill: true })),
    ...periods.filter((days) => !whole.has(keyOf(days))).map((days) => ({ ...days, isBill: false })),
  ];
  return {
    ...about,
    lines,
    ...(await readUsage(db, { invoice, asked, periods })),
    ...(await otherInvoices(db, { invoice, rules, billed: unique(periods.map(billedDays)) })),
  };
}

function unique(all: readonly Days[]): Days[] {
  return [...new Map(all.map((days) => [keyOf(days), days])).values()].sort((a, b) =>
    keyOf(a) < keyOf(b) ? -1 : 1,
  );
}

/** Lines that charge something: the sum rows above them are texts. */
async function linesOf(db: Database, invoiceId: number): Promise<StoredLine[]> {
  return query<StoredLine>(db)`
    select l.line_number as "lineNumber", l.line_text as text, s.line_text as "sumText", l.kind,
           trim_scale(l.quantity)::text as quantity, l.unit, trim_scale(l.unit_price)::text as "unitPrice",
           trim_scale(l.amount)::text as amount, l.period_start::text as "periodStart", l.period_end::text as "periodEnd", l.workspace
    from usage.invoice_line l
    left join usage.invoice_line s on s.invoice_id = l.invoice_id and s.line_number = l.part_of
    where l.invoice_id = ${invoiceId} and not l.is_sum
    order by l.line_number
  `;
}

async function readUsage(
  db: Database,
  given: {
    invoice: { sourceId: number; issuedOn: string | null };
    asked: readonly (Days & { isBill: boolean })[];
    periods: readonly Days[];
  },
): Promise<Read> {
  const { sourceId, issuedOn } = given.invoice;
  const days = (all: readonly Days[]) =>
    sql`json_to_recordset(${JSON.stringify(all)}::json) d ("from" date, "to" date, "isBill" boolean)`;
  const shown = sql`d."from"::text as "from", d."to"::text as "to"`;
  const charges = await query<Read["charges"][number]>(db)`
    select ${shown}, d."isBill", usage.shown_id(e.external_id) as "workspaceId", c.measure, c.sku, c.price_id as "priceId",
           c.from_quantity::text as "fromQuantity", trim_scale(c.unit_price)::text as "unitPrice", c.currency, trim_scale(c.quantity)::text as quantity
    from ${days(given.asked)}
    cross join lateral (
      select workspace_id, measure, sku, price_id, from_quantity, unit_price, currency, sum(quantity) as quantity
      from (
        select c.workspace_id, c.measure, c.sku, c.price_id, c.from_quantity, c.unit_price, c.currency, c.quantity
        from usage.open_charge c
        where c.source_id = ${sourceId} and c.month_start >= date_trunc('month', d."from")::date and c.month_start < d."to"
          and c.usage_date >= d."from" and c.usage_date < d."to" and not usage.is_on_no_invoice(c.measure, c.usage_date)
          and not exists (
            select from usage.close m where m.source_id = c.source_id and m.month_start = c.month_start and m.costs_closed_at is not null
          )
        union all
        select c.workspace_id, c.measure, c.sku, c.price_id, c.from_quantity, c.unit_price, c.currency, c.quantity
        from usage.close m join usage.closed_charge c using (close_id)
        where m.source_id = ${sourceId} and m.costs_closed_at is not null and c.usage_date >= d."from" and c.usage_date < d."to"
          and not usage.is_on_no_invoice(c.measure, c.usage_date)
      ) c
      group by 1, 2, 3, 4, 5, 6, 7
    ) c
    join usage.entity e on e.entity_id = c.workspace_id
    order by 1, 2, 3, 4, c.sku collate "C", c.price_id, c.from_quantity
  `;
  const prices = await query<Read["prices"][number]>(db)`
    select p.price_id as "priceId", k.name as sku, k.measure, p.currency,
           concat_ws(' ', (p.source_id is not null)::integer, k.name, p.source_id, p.workspace_id) as scope,
           p.workspace_id is not null as "isOfWorkspace", p.counted_over as "countedOver", p.valid_from::text as "validFrom",
           p.valid_to::text as "validTo", (
             select json_agg(json_build_object('from', t.from_quantity::text, 'price', trim_scale(t.unit_price)::text) order by t.from_quantity)
             from usage.volume_tier t where t.price_id = p.price_id
           ) as tiers
    from usage.price p join usage.sku k using (sku_id)
    where (p.source_id is null or p.source_id = ${sourceId}) and exists (
      select from ${days(given.asked)} where p.valid_from < d."to" and (p.valid_to is null or p.valid_to > d."from")
    )
    order by p.price_id
  `;
  const issued = sql`(${issuedOn}::date + 1)::timestamp at time zone 'UTC'`;
  const net = sql`coalesce(t.new_traces, 0) - coalesce(t.old_traces, 0)`;
  // Restatements of final days by workspace, and whether the bill has them: that of a closed month has none after its close.
  const restated = sql`
    select c.workspace_id, k.measure, (t.bucket_start at time zone 'UTC')::date as day, t.restated_at,
           usage.amount_of(s.measure, ${net}) * k.sign as quantity, coalesce(t.restated_at <= m.costs_closed_at, true) as is_billed
    from usage.scope c
    join usage.series s using (scope_id)
    join usage.restatement t using (series_id)
    cross join lateral (
      select usage.meter_of(c.kind, c.trace_tier) as measure, 1 as sign where c.kind = 'traces'
      union all
      select 'shortlived', case c.trace_tier when 'all' then 1 else -1 end where c.kind = 'traces'
      union all
      select s.measure, 1 where c.kind <> 'traces'
    ) k
    -- Measures without a price are compared with nothing.
    join (select distinct measure from usage.sku) p on p.measure = k.measure
    left join usage.close m on m.source_id = c.source_id and m.costs_closed_at is not null
      and m.month_start = usage.month_of((t.bucket_start at time zone 'UTC')::date)
    where c.source_id = ${sourceId} and c.group_by = 'workspace' and c.stride = 'day' and (c.kind <> 'traces' or c.trace_tier <> 'shortlived')
      and t.bucket_start >= ${given.periods[0]?.from ?? null}::date - 62`;
  const changes = await query<Read["changes"][number] & { cause: "changes" | "upgrades" }>(db)`
    with restated as materialized (${restated})
    select ${shown}, usage.shown_id(e.external_id) as "workspaceId", r.measure, r.cause, trim_scale(sum(r.quantity))::text as quantity
    from ${days(given.periods)}
    cross join lateral (
      -- The bill as it was on the day of issue, less the bill as it is.
      select workspace_id, measure, 'changes' as cause, case when is_billed then -quantity else quantity end as quantity
      from restated where day >= d."from" and day < d."to" and is_billed = (restated_at >= ${issued})
      union all
      select workspace_id, measure, 'upgrades', quantity from restated
      where measure = 'longlived' and day < d."from" and restated_at >= d."from"::timestamp at time zone 'UTC'
        and restated_at < d."to"::timestamp at time zone 'UTC'
      union all
      select workspace_id, measure, 'upgrades', -quantity from restated
      where measure = 'longlived' and day >= d."from" and day < d."to" and is_billed
        and restated_at >= d."to"::timestamp at time zone 'UTC' and restated_at < ${issued}
    ) r
    join usage.entity e on e.entity_id = r.workspace_id
    group by 1, 2, 3, 4, 5 having sum(r.quantity) <> 0 order by 1, 2, 3, 4, 5
  `;
  const openDays = await query<Read["openDays"][number]>(db)`
    select ${shown}, usage.shown_id(e.external_id) as "workspaceId", k.measure, max(n.not_loaded)::integer as "daysNotLoaded",
           max(n.not_final)::integer as "daysNotFinal"
    from ${days(given.periods)}
    cross join usage.bill_cell b
    join usage.entity e on e.entity_id = b.workspace_entity_id
    join (select distinct measure from usage.sku) k on b.meter = any (usage.meters_of_measure(k.measure))
    cross join lateral (
      select usage.count_days((b.expected - b.loaded) * datemultirange(daterange(d."from", d."to"))) as not_loaded,
             usage.count_days((b.loaded - b.final) * datemultirange(daterange(d."from", d."to"))) as not_final
    ) n
    where b.source_id = ${sourceId} and (n.not_loaded > 0 or n.not_final > 0)
    group by 1, 2, 3, 4 order by 1, 2, 3, 4
  `;
  const unread = await query<Read["unread"][number]>(db)`
    select ${shown}, u.workspace as "workspaceId", max(u.name) as name, u.measure, trim_scale(sum(u.quantity))::text as quantity
    from ${days(given.periods)}
    cross join lateral (
      select workspace, max(name) as name, measure, month_start, max(quantity) as quantity
      from (
        select source_id, month_start, workspace, name, 'traces' as measure, traces::numeric as quantity from usage.unloaded_workspace
        union all
        select source_id, month_start, workspace, null, meter, value from usage.provider_total
        where outcome = 'unknown_workspace' and meter is not null and workspace <> '' and value > 0
      ) u
      where u.source_id = ${sourceId} and u.month_start >= d."from" and (u.month_start + interval '1 month')::date <= d."to" and ${IS_NOT_EXPECTED}
      group by workspace, measure, month_start
    ) u
    group by 1, 2, 3, 5 order by 1, 2, 3, 5
  `;
  const workspaces = await query<Read["workspaces"][number]>(db)`
    select w.workspace_id as id, w.workspace_name as name
    from usage.shown_workspace w join usage.required_workspace r on r.workspace_id = w.entity_id
    where w.source_id = ${sourceId} and exists (
      select from ${days(given.asked)} where r.days && daterange(d."from", d."to")
    )
    order by 1
  `;
  const ofCause = (cause: string) =>
    changes.flatMap(({ cause: own, ...one }) => (own === cause ? [one] : []));
  return {
    charges,
    prices,
    changes: ofCause("changes"),
    upgrades: ofCause("upgrades"),
    openDays,
    unread,
    workspaces,
  };
}

/** What other invoices charge of the same periods, and whether an earlier one of them is compared with the same bill. */
async function otherInvoices(
  db: Database,
  given: {
    invoice: MatchedInvoice & { sourceId: number };
    rules: readonly InvoiceRule[];
    billed: readonly Days[];
  },
): Promise<Pick<MatchInputs, "elsewhere" | "isFirst">> {
  const { invoice, rules, billed } = given;
  const wanted = new Set(billed.map(keyOf));
  const lines = await query<StoredLine & Pick<MatchedInvoice, "invoiceId" | "issuedOn" | "number">>(db)`
    select distinct on (i.invoice_id, l.line_text, s.line_text, l.kind, l.unit, l.period_start, l.period_end)
           i.invoice_id as "invoiceId", i.issued_on::text as "issuedOn", i.number, l.line_number as "lineNumber", l.line_text as text,
           s.line_text as "sumText", l.kind, null as quantity, l.unit, null as "unitPrice", '0' as amount,
           l.period_start::text as "periodStart", l.period_end::text as "periodEnd", null as workspace
    from usage.invoice i
    join usage.invoice_line l using (invoice_id)
    left join usage.invoice_line s on s.invoice_id = l.invoice_id and s.line_number = l.part_of
    where i.source_id = ${invoice.sourceId} and i.invoice_id <> ${invoice.invoiceId} and i.replaced_at is null and i.status <> 'voided'
      and i.corrects_number is null and i.currency = ${invoice.currency} and not l.is_sum and l.kind = 'usage'
      and (i.issuer, i.number) <> (${invoice.issuer}, ${invoice.number})
  `;
  const elsewhere = lines.flatMap((line) => {
    const target = targetOf(line, { rules, invoice: { ...invoice, ...line, corrects: null } });
    if ("why" in target) return [];
    const days = billedDays(target.period);
    return wanted.has(keyOf(days)) ? [{ ...days, measure: target.measure, line }] : [];
  });
  const place = ({ issuedOn, number }: Pick<MatchedInvoice, "issuedOn" | "number">) =>
    `${issuedOn} ${number}`;
  return {
    elsewhere: [
      ...new Map(elsewhere.map(({ line: _, ...one }) => [`${keyOf(one)} ${one.measure}`, one])).values(),
    ].sort((a, b) => (`${keyOf(a)} ${a.measure}` < `${keyOf(b)} ${b.measure}` ? -1 : 1)),
    isFirst: elsewhere.every(({ line }) => place(line) > place(invoice)),
  };
}

/** Stores a match with its inputs. The same inputs are stored once. Returns its number. */
export async function keepMatch(db: Database, inputs: MatchInputs, found: Explanation): Promise<number> {
  const text = JSON.stringify(inputs);
  const digest = createHash("sha256").update(text).digest();
  const { invoiceId } = inputs.invoice;
  const [total, bill, remainder] = [found.total, found.bill, found.remainder].map(amountText);
  const { matchId, isNew } = await queryOne<{ matchId: number; isNew: boolean }>(db)`
    insert into usage.invoice_match (invoice_id, inputs, inputs_digest, total, bill, remainder)
    values (${invoiceId}, ${text}::jsonb, ${digest}, ${total}::numeric, ${bill}::numeric, ${remainder}::numeric)
    on conflict on constraint invoice_match_once do update set confirmed_at = clock_timestamp()
    returning match_id as "matchId", xmax = 0 as "isNew"
  `;
  if (!isNew) return matchId;
  const amount = (value: bigint | null) => (value === null ? null : amountText(value));
  const lines = found.lines.map((one, place) => ({
    ...{ match_id: matchId, place: place + 1, line_number: one.lineNumber, state: one.state, why: one.why },
    ...{ measure: one.measure, sku: one.sku, workspace: one.workspaceId },
    ...{
      period_start: one.period?.from,
      period_end: one.period?.to,
      billed_start: one.billed?.from,
      billed_end: one.billed?.to,
      divide: one.rule?.divide,
      quantity_here: amount(one.quantityHere),
    },
    ...{ unit_price_here: amount(one.unitPriceHere), cost_here: amount(one.costHere) },
  }));
  const causes = [
    ...found.causes.map((one) => ({ ...one, why: null, isTolerated: false })),
    ...found.unexplained.map((one) => ({ ...one, cause: "unexplained", days: null })),
  ].map((one, place) => ({
    ...{
      match_id: matchId,
      place: place + 1,
      cause: one.cause,
      why: one.why,
      amount: amountText(one.amount),
    },
    ...{
      sku: one.sku,
      period_start: one.period?.from,
      period_end: one.period?.to,
      workspace: one.workspaceId,
    },
    ...{ quantity: amount(one.quantity), line_number: one.lineNumber },
    ...{
      days_not_loaded: one.days?.notLoaded,
      days_not_final: one.days?.notFinal,
      is_tolerated: one.isTolerated,
    },
  }));
  await sql`
    insert into usage.invoice_match_line
    select * from json_populate_recordset(null::usage.invoice_match_line, ${JSON.stringify(lines)}::json)
  `.execute(db);
  await sql`
    insert into usage.invoice_cause
    select * from json_populate_recordset(null::usage.invoice_cause, ${JSON.stringify(causes)}::json)
  `.execute(db);
  return matchId;
}

export interface FoundInvoice {
  readonly invoiceId: number;
  readonly sourceId: number;
  readonly source: string;
  readonly issuer: string;
  readonly number: string;
  readonly status: InvoiceStatus;
  readonly currency: string;
  readonly issuedOn: string | null;
}

/** The current versions of all invoices, the newest first. `isOpen`: only issued ones that nobody has settled. */
export async function findInvoices(
  db: Database,
  { source = null, isOpen = false }: { source?: string | null | undefined; isOpen?: boolean } = {},
): Promise<FoundInvoice[]> {
  return query<FoundInvoice>(db)`
    select i.invoice_id as "invoiceId", i.source_id as "sourceId", s.slug as source, i.issuer, i.number, i.status, i.currency,
           i.issued_on::text as "issuedOn"
    from usage.invoice i join usage.source s using (source_id)
    where i.replaced_at is null and (${source}::text is null or s.slug = ${source}) and (not ${isOpen}::boolean or (
      i.status = 'issued' and not exists (select from usage.invoice_settlement t where t.invoice_id = i.invoice_id)
    ))
    order by i.issued_on desc nulls last, s.slug, i.number
  `;
}
