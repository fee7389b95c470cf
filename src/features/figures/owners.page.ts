import { z } from "zod";
import { counted } from "../../core/base/printable.ts";
import {
  type CalendarMonth,
  daysText,
  monthAt,
  monthBefore,
  monthNamed,
  monthTitle,
} from "../../core/domain/months/month.ts";
import { type Days, dayOf } from "../../core/domain/time/days.ts";
import type { Database } from "../../core/store/db/database.ts";
import { DIMENSIONS } from "../../core/store/db/dimensions.ts";
import { type UsageSource, usageSources } from "../../core/store/figures/sources.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  choice,
  type Html,
  html,
  notice,
  optional,
  plainName,
  sourceField,
  twin,
} from "../../web/parts.ts";
import { namedSource } from "../../web/query.ts";
import type { Context, Web } from "../../web/routes.ts";
import { monthBill } from "../costs/bill-lines.store.ts";
import { withoutCost } from "../costs/bill-table.ts";
import { currentBudgets, monthBudgets } from "../owners/budgets.ts";
import { UNALLOCATED } from "../owners/owner.ts";
import { appliedOwners } from "../owners/owners.store.ts";
import { budgetTable } from "./budget-list.ts";
import { noteShown, notesOf } from "./notes.ts";
import { partsTable } from "./owner-parts.ts";
import { monthReports } from "./statement.ts";
import { headline, idTable, trend } from "./tables.ts";
import { downloads } from "./usage.page.ts";

const QUERY = z.object({
  source: optional(z.string().max(63)),
  month: optional(
    z.string().refine((text) => monthNamed(text) !== undefined, "it is not a month such as 2026-03"),
  ),
  owner: optional(z.string().max(1000)),
});
type Query = z.output<typeof QUERY>;

const MONTHS_CHOSEN = 13;

export function addOwners(web: Web): void {
  web.page("/owners", { query: QUERY, oneInstant: true, header: { month: true } }, show);
}

async function show({ db, query, now, masked }: Context<Query>): Promise<Page> {
  const sources = await usageSources(db);
  const source = namedSource(sources, query.source);
  if (source === undefined) return { title: "Owners", body: html`<p>No usage is loaded yet.</p>` };
  const month = monthNamed(query.month ?? "") ?? monthAt(now);
  const form = monthForm({ source, month }, { query, sources, now });
  const reports = await monthReports(db, { source, month: month.name, by: "owner", now, masked });
  if (reports === undefined)
    return { title: "Owners", body: html`${form}<p>No day of ${monthTitle(month)} is loaded.</p>` };
  const { traces, priced } = reports;
  // Costs come first, since owners pay them. Usage without a price has only traces.
  const [main = traces, ...beside] = [...priced, traces];
  const notes = (await notesOf(db, main)).map(noteShown);
  const { range } = main.question;
  const of = { source: source.slug, range };
  if (query.owner !== undefined) {
    const title = `${query.owner === UNALLOCATED ? "Without an owner" : plainName(query.owner)}, ${monthTitle(month)}`;
    const back = address("/owners", { source: source.slug, month: month.name });
    const body = html`${form}<p class="back"><a href="${back}">All owners of ${monthTitle(month)}</a></p>
      ${notes}${await partsTable(db, of, { owner: query.owner, masked })}`;
    return { title, body };
  }
  const applied = await appliedOwners(db);
  if (applied === undefined)
    return { title: "Owners", body: html`${form}${notes}${await withoutFile(db, of, { masked })}` };
  const bill = await monthBill(db, { source: source.slug, monthStart: month.start });
  const { budgets } =
    month.start === monthAt(now).start
      ? await currentBudgets(db)
      : { budgets: await monthBudgets(db, { month, now }) };
  const body = html`${form}${withoutCost(bill)}
    <dl class="facts">${[main, ...beside].map((one) => headline(one))}</dl>
    ${notes}
    ${trend(main)}
    ${idTable(main, beside)}
    <p class="quiet">Who pays for ${daysText(range)}: traces are divided by ${DIMENSIONS[applied.divideBy].title}, by the owner file that was applied on ${dayOf(applied.appliedAt.getTime())} (${counted(applied.rules, "rule")}). All rows add up to the total of ${source.slug}, but for rounding to cents.</p>
    ${budgetTable(budgets, month)}
    ${downloads(main.question)}`;
  return { title: "Owners", body };
}

function monthForm(
  { source, month }: { source: UsageSource; month: CalendarMonth },
  { query, sources, now }: { query: Query; sources: readonly UsageSource[]; now: number },
): Html {
  const months = [monthAt(now)];
  while (months.length < MONTHS_CHOSEN && (months.at(-1)?.start ?? "") > source.dataStart) {
    months.push(monthBefore(months.at(-1) as CalendarMonth));
  }
  if (!months.some(({ name }) => name === month.name)) months.push(month);
  return html`<form class="row" method="get" action="/owners">
    ${sourceField(
      sources.map(({ slug }) => slug),
      source.slug,
    )}
    ${choice(
      "Month",
      "month",
      months.map((one) => ({ value: one.name, text: monthTitle(one) })),
      month.name,
    )}
    ${query.owner !== undefined && html`<input type="hidden" name="owner" value="${query.owner}">`}
    <button>Show</button>
  </form>`;
}

async function withoutFile(
  db: Database,
  of: { source: string; range: Days },
  { masked }: { masked: boolean },
): Promise<Html> {
  return html`${notice(
    "info",
    html`<p>Nothing has an owner yet. An owner file says which team pays for what: by project, tag, name or workspace.</p>
      <p>Write one from the rules below, see what it would change, and apply it.</p>`,
  )}${twin(`usage-etl owners plan owners.yaml`, `usage-etl owners apply owners.yaml`)}
    ${await partsTable(db, of, { owner: UNALLOCATED, masked })}`;
}
