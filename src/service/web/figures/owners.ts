import { z } from "zod";
import { NO_COST_CENTER, UNALLOCATED } from "../../../domain/bill/owner.ts";
import {
  type CalendarMonth,
  daysText,
  monthAt,
  monthBefore,
  monthNamed,
  monthTitle,
} from "../../../domain/months/month.ts";
import { addDays, type Days, dayOf, daysBetween } from "../../../domain/time/days.ts";
import { type Amount, amountCut, amountDrawn, amountShown, percentOf } from "../../../domain/usage/amount.ts";
import { budgetsOf, currentBudgets, type MonthBudget, monthBudgets } from "../../../pipeline/bill/budgets.ts";
import { asCsv, type Cell, decimalCell } from "../../../pipeline/export/table-file.ts";
import { counted } from "../../../printable.ts";
import { monthBill } from "../../../store/bill/bill-lines.ts";
import {
  type AppliedOwners,
  appliedOwners,
  type OwnedState,
  type OwnerFigure,
  type OwnersOfRange,
  ownedState,
  ownersOf,
} from "../../../store/bill/owners.ts";
import type { Database } from "../../../store/db/database.ts";
import { DIMENSIONS } from "../../../store/db/dimensions.ts";
import { inSnapshot } from "../../../store/db/snapshot.ts";
import { type UsageSource, usageSources } from "../../../store/figures/sources.ts";
import { closedMonth } from "../../../store/months/closed-months.ts";
import { MOST_PARTS, timeChart } from "../chart.ts";
import type { Page } from "../layout.ts";
import { withoutCost } from "../months/bill.ts";
import {
  address,
  choice,
  type Html,
  html,
  joined,
  money,
  name,
  notice,
  numberHead,
  optional,
  percent,
  plainName,
  sourceField,
  table,
  twin,
} from "../parts.ts";
import type { Context, Web } from "../routes.ts";
import { budgetTable } from "./budgets.ts";
import { partsTable } from "./owner-parts.ts";
import { beforeOf, shownOf, sourceOf } from "./question.ts";
import { nothingToWrite } from "./usage.ts";

const QUERY = z.object({
  source: optional(z.string().max(63)),
  month: optional(
    z.string().refine((text) => monthNamed(text) !== undefined, "it is not a month such as 2026-03"),
  ),
  /** Of one owner. */
  owner: optional(z.string().max(1000)),
});
type Query = z.output<typeof QUERY>;

/** Months to choose from. */
const MONTHS_CHOSEN = 13;

interface Asked {
  readonly source: UsageSource;
  readonly month: CalendarMonth;
  /** Of the month, the days since the data start, up to today. */
  readonly range: Days;
  /** Those of them that are over, and as many days of the month before: today would be compared with a whole day. */
  readonly ended: Days;
  readonly before: Days;
}

/** Who pays for a month: each owner with traces, costs and the change, and what an owner has. */
export function addOwners(web: Web): void {
  web.page("/owners", { query: QUERY, oneInstant: true }, show);
  web.file("/owners.csv", { query: QUERY }, async ({ query, now, reply, ...context }) => {
    const { text, file } = await inSnapshot(context.db, async (db) => {
      const { asked } = await askedOf(db, query, now);
      if (asked === undefined) throw nothingToWrite();
      return { text: await csvOf(db, asked), file: `owners-${asked.source.slug}-${asked.month.name}.csv` };
    });
    return reply
      .type("text/csv; charset=utf-8")
      .header("content-disposition", `attachment; filename="${file}"`)
      .send(`\uFEFF${text}`);
  });
}

async function askedOf(
  db: Database,
  query: Query,
  now: number,
): Promise<{ sources: readonly UsageSource[]; asked: Asked | undefined }> {
  const sources = await usageSources(db);
  const source = sourceOf(query.source, sources);
  if (source === undefined) return { sources, asked: undefined };
  const month = monthNamed(query.month ?? "") ?? monthAt(now);
  const range = shownOf(
    { from: month.start, to: month.end },
    { dataStart: source.dataStart, today: dayOf(now) },
  );
  const today = dayOf(now);
  const ended = { from: range.from, to: range.from <= today && today < range.to ? today : range.to };
  return {
    sources,
    asked: { source, month, range, ended, before: beforeOf(ended, undefined, source.dataStart) },
  };
}

async function show({ db, query, now, who }: Context<Query, unknown>): Promise<Page> {
  const { sources, asked } = await askedOf(db, query, now);
  if (asked === undefined) return { title: "Owners", body: html`<p>No usage is loaded yet.</p>` };
  const masked = who.role === "viewer";
  const form = monthForm(asked, { query, sources, now });
  const applied = await appliedOwners(db);
  if (daysBetween(asked.range) <= 0)
    return { title: "Owners", body: html`${form}<p>No day of ${monthTitle(asked.month)} is loaded.</p>` };
  const { range, before } = asked;
  const state = await ownedState(db, { source: asked.source.slug, range, before });
  const said = stateOf(state, {
    range,
    by: DIMENSIONS[applied?.divideBy ?? "project"].title,
    month: address(`/months/${asked.month.name}`, { source: asked.source.slug }),
  });
  if (query.owner !== undefined) {
    const title = `${query.owner === UNALLOCATED ? "Without an owner" : plainName(query.owner)}, ${monthTitle(asked.month)}`;
    return { title, body: html`${form}${await oneOwner(db, asked, { owner: query.owner, said, masked })}` };
  }
  const bill = await monthBill(db, { source: asked.source.slug, monthStart: asked.month.start });
  const body =
    applied === undefined
      ? html`${said}${await withoutFile(db, asked, { masked })}`
      : await allOwners(db, asked, { applied, state, said, now, sources });
  return { title: "Owners", body: html`${form}${withoutCost(bill)}${body}` };
}

function monthForm(
  { source, month }: Asked,
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
    ${query.owner === undefined ? "" : html`<input type="hidden" name="owner" value="${query.owner}">`}
    <button>Show</button>
  </form>`;
}

/** What to do first, and what there is to give to somebody. */
async function withoutFile(db: Database, asked: Asked, { masked }: { masked: boolean }): Promise<Html> {
  return html`${notice(
    "info",
    html`<p>Nothing has an owner yet. An owner file says which team pays for what: by project, tag, name or workspace.</p>
      <p>Write one from the rules below, see what it would change, and apply it.</p>`,
  )}${twin(`usage-etl owners plan owners.yaml`, `usage-etl owners apply owners.yaml`)}
    ${await partsTable(db, { source: asked.source.slug, range: asked.range }, { owner: UNALLOCATED, masked })}`;
}

async function allOwners(
  db: Database,
  asked: Asked,
  {
    applied,
    state,
    said,
    now: at,
    sources,
  }: {
    applied: AppliedOwners;
    state: OwnedState;
    said: Html;
    now: number;
    sources: readonly UsageSource[];
  },
): Promise<Html> {
  const { source, month, range, ended, before } = asked;
  const { figures, days } = await ownersOf(db, { source: source.slug, range, ended, before });
  const currencies = currenciesIn(figures);
  const isUnderWay = month.start === monthAt(at).start;
  const budgets = isUnderWay
    ? (await currentBudgets(db)).budgets
    : await monthBudgets(db, { month, now: at });
  // Only a month that is over is closed.
  const closed = isUnderWay
    ? undefined
    : await closedMonth(db, { sourceId: source.sourceId, monthStart: month.start });
  const [currency] = currencies;
  // Days that are not loaded would look like a change.
  const hasBefore = daysBetween(before) > 0 && state.daysMissing === 0 && state.daysMissingBefore === 0;
  const hasCenters = figures.some(({ costCenter }) => costCenter !== NO_COST_CENTER);
  const total = totalOf(figures);
  const least = state.daysMissing > 0 ? "at least " : "";
  const change = currency ?? "traces";
  const rows = figures.filter((one) => amounts(one, currencies).some((amount) => amount !== 0n));
  const owners = [...new Set(rows.map(({ owner }) => owner))];
  return html`<dl class="facts">
      <div><dt>Traces</dt><dd>${least}<strong class="headline">${amountShown(total.traces)}</strong></dd></div>
      ${currencies.map((one) => html`<div><dt>Estimated cost, ${one}</dt><dd>${least}<strong class="headline">${money(total.costs(one))}</strong></dd></div>`)}
      <div><dt>Without an owner</dt><dd>${unallocatedShare(figures, currencies)}</dd></div>
    </dl>
    ${said}
    ${closed === undefined ? "" : notice("info", `${monthTitle(month)} is closed. ${closed.costsClosedAt === null ? "Its costs and traces are those of now." : "Its costs are those of the close, its traces those of now."} It is divided by the rules of now, which may be others than at the close.`)}
    ${course(asked, { owners, days, state, currency })}
    ${table({
      label: "Owners",
      caption: `Who pays for ${daysText(range)}. All rows add up to the total of ${source.slug}, but for rounding to cents. Traces are divided by ${DIMENSIONS[applied.divideBy].title}.${hasBefore ? ` The change is that of ${daysText(ended)} against ${daysText(before)}.` : ""}`,
      heads: [
        "Owner",
        ...(hasCenters ? [html`<th scope="col" class="spare">Cost centre</th>`] : []),
        numberHead("Traces"),
        ...currencies.map((one) => numberHead(`Estimated cost, ${one}`)),
        numberHead(`Share of ${change === "traces" ? change : "cost"}`, "spare"),
        ...(hasBefore ? [numberHead(`Change of ${change === "traces" ? change : "cost"}`)] : []),
      ],
      rows: rows.map((one) => {
        const now = currency === undefined ? tracesOf(one) : costOf(one.costs, currency);
        const whole = currency === undefined ? total.traces : total.costs(currency);
        const to = address("/owners", { source: source.slug, month: month.name, owner: one.owner });
        const center = one.costCenter === NO_COST_CENTER ? undefined : name(one.costCenter);
        return html`<tr><th scope="row"><span class="swatch ${colourOf(owners.indexOf(one.owner))}"></span> <a href="${to}">${name(one.owner)}</a>${center === undefined ? "" : html`<br class="on-phone"><small class="on-phone">${center}</small>`}</th>
          ${hasCenters ? html`<td class="spare">${center ?? "–"}</td>` : ""}
          <td class="number">${amountShown(tracesOf(one))}</td>
          ${currencies.map((each) => html`<td class="number">${money(costOf(one.costs, each))}</td>`)}
          <td class="number spare">${percent(percentOf(now, whole))}</td>
          ${hasBefore ? html`<td class="number">${changeIn([one], currency)}</td>` : ""}</tr>`;
      }),
      foot: html`<tr><th scope="row">Total</th>${hasCenters ? html`<td class="spare"></td>` : ""}<td class="number">${least}${amountShown(total.traces)}</td>
        ${currencies.map((one) => html`<td class="number">${least}${money(total.costs(one))}</td>`)}<td class="spare"></td>${hasBefore ? html`<td class="number">${changeIn(rows, currency)}</td>` : ""}</tr>`,
    })}
    ${budgetTable(budgetsOf(budgets, source.slug), month)}
    ${budgetsElsewhere(budgets, asked, sources)}
    <p>Download: <a href="${address("/owners.csv", { source: source.slug, month: month.name })}">CSV of this table</a></p>
    <p class="quiet">From the owner file that was applied on ${dayOf(applied.appliedAt.getTime())}: ${counted(applied.rules, "rule")}.</p>
    ${twin(`usage-etl owners export`, `usage-etl owners suggest`, `usage-etl export --view fct_cost_owner_daily --from ${range.from} --to ${range.to} --where source_id=${source.slug}`)}`;
}

/** Where the budgets are that count nothing of this source. */
function budgetsElsewhere(
  budgets: readonly MonthBudget[],
  { source, month }: Asked,
  sources: readonly UsageSource[],
): Html {
  const others = sources.filter(
    ({ slug }) => slug !== source.slug && budgets.some((one) => one.source === slug),
  );
  if (others.length === 0) return html``;
  const links = others.map(
    ({ slug }) => html`<a href="${address("/owners", { source: slug, month: month.name })}">${slug}</a>`,
  );
  return html`<p class="quiet">Other sources have budgets of their own: ${joined(links)}.</p>`;
}

/** Currencies that something has a cost in. */
function currenciesIn(figures: readonly OwnerFigure[]): string[] {
  const used = figures.flatMap(({ costs, costsBefore }) => [
    ...Object.keys(costs),
    ...Object.keys(costsBefore),
  ]);
  return [...new Set(used)].sort();
}

const tracesOf = ({ traces }: OwnerFigure) => amountCut(traces);
const costOf = (costs: Readonly<Record<string, string>>, currency: string) => amountCut(costs[currency]);

function amounts(one: OwnerFigure, currencies: readonly string[]): Amount[] {
  return [
    tracesOf(one),
    amountCut(one.tracesBefore),
    ...currencies.flatMap((currency) => [costOf(one.costs, currency), costOf(one.costsBefore, currency)]),
  ];
}

function totalOf(figures: readonly OwnerFigure[]) {
  const sum = (of: (one: OwnerFigure) => Amount) => figures.reduce((all, one) => all + of(one), 0n);
  return { traces: sum(tracesOf), costs: (currency: string) => sum(({ costs }) => costOf(costs, currency)) };
}

/** How much of a month nobody owns, of its cost where that is something, or else of its traces, which may cost nothing. */
function unallocatedShare(figures: readonly OwnerFigure[], currencies: readonly string[]): Html {
  const total = totalOf(figures);
  const none = totalOf(figures.filter(({ owner }) => owner === UNALLOCATED));
  const measures = [
    ...currencies.map((one) => ({
      part: none.costs(one),
      whole: total.costs(one),
      what: currencies.length === 1 ? "the cost" : `the cost in ${one}`,
    })),
    { part: none.traces, whole: total.traces, what: "the traces" },
  ];
  const found = measures.find(({ part }) => part !== 0n);
  if (found === undefined) return html`<strong class="headline">nothing</strong>`;
  return html`<strong class="headline">${percent(percentOf(found.part, found.whole))}</strong> of ${found.what}`;
}

/** What may be claimed of all rows. */
function stateOf(state: OwnedState, { range, by, month }: { range: Days; by: string; month: string }): Html {
  const { workspaces, daysMissing, daysUndivided, open } = state;
  if (workspaces === 0) return notice("warn", "No workspace is known yet, so nothing is loaded.");
  const daysOf = (many: number) =>
    `${many.toLocaleString("en-US")} ${many === 1 ? "day of a workspace is" : "days of workspaces are"}`;
  const parts = [
    daysMissing > 0 &&
      notice(
        "warn",
        `${daysOf(daysMissing)} not loaded in ${daysText(range)}: what is missing counts in no row, and is not known.`,
      ),
    daysUndivided > 0 &&
      notice(
        "warn",
        `${daysOf(daysUndivided)} not loaded by ${by}: there, all traces count for who has the rest of the workspace.`,
      ),
  ].filter((one) => one !== false);
  if (parts.length > 0) return html`${parts}`;
  return open.length === 0
    ? html`<p>All of it is final. The <a href="${month}">page of the month</a> says whether it is proved, and what the cost lacks.</p>`
    : html`<p>Some of it is provisional: it may still change.</p>`;
}

/** The first owners are told apart in the chart; the others together are the rest. */
function colourOf(n: number): string {
  return n < MOST_PARTS ? `s${n + 1}` : "rest";
}

/** Of costs in a currency, or of traces. */
function changeIn(some: readonly OwnerFigure[], currency: string | undefined): Html | string {
  const sum = (of: (one: OwnerFigure) => Amount) => some.reduce((all, one) => all + of(one), 0n);
  return currency === undefined
    ? changeOf(
        sum((one) => amountCut(one.tracesEnded)),
        sum((one) => amountCut(one.tracesBefore)),
      )
    : changeOf(
        sum((one) => costOf(one.costsEnded, currency)),
        sum((one) => costOf(one.costsBefore, currency)),
      );
}

function changeOf(now: Amount, then: Amount): Html | string {
  if (then < 0n) return "–";
  if (then === 0n) return now === 0n ? "–" : "new";
  return html`<span title="before: ${amountShown(then)}">${percent(percentOf(now - then, then), { signed: true })}</span>`;
}

/** Each day's bar, made of the owners in the order of the table. */
function course(
  { range }: Asked,
  {
    owners,
    days: found,
    state,
    currency,
  }: Pick<OwnersOfRange, "days"> & {
    owners: readonly string[];
    state: OwnedState;
    currency: string | undefined;
  },
): Html {
  const days = Array.from({ length: daysBetween(range) }, (_, n) => addDays(range.from, n));
  const byDay = Map.groupBy(
    found.filter((one) => one.currency === (currency ?? null)),
    ({ day }) => day,
  );
  const [missing, open] = [new Set(state.missing), new Set(state.open)];
  const unit = currency ?? "traces";
  const label = `${currency === undefined ? "Traces" : `Estimated cost, ${currency},`} by owner and day, ${daysText(range)}`;
  const sumOf = (day: string, owner?: string) =>
    (byDay.get(day) ?? []).reduce(
      (all, one) => (owner === undefined || one.owner === owner ? all + amountCut(one.amount) : all),
      0n,
    );
  return html`<p class="quiet">${label}</p><div class="scroll" role="region" tabindex="0" aria-label="${label}">${timeChart(
    {
      points: days.map((day) => {
        const value = amountDrawn(sumOf(day));
        return missing.has(day)
          ? { at: day, value: null, atLeast: value, isFinal: false }
          : { at: day, value, isFinal: !open.has(day) };
      }),
      parts: owners.slice(0, MOST_PARTS).map((owner, n) => ({
        kind: colourOf(n),
        name: plainName(owner),
        values: days.map((day) => amountDrawn(sumOf(day, owner))),
      })),
      end: range.to,
      width: 960,
      height: 220,
      label,
      unit,
      isMoney: currency !== undefined,
    },
  )}</div>`;
}

async function oneOwner(
  db: Database,
  asked: Asked,
  { owner, said, masked }: { owner: string; said: Html; masked: boolean },
): Promise<Html> {
  const back = address("/owners", { source: asked.source.slug, month: asked.month.name });
  return html`<p class="back"><a href="${back}">All owners of ${monthTitle(asked.month)}</a></p>
    ${said}
    ${await partsTable(db, { source: asked.source.slug, range: asked.range }, { owner, masked })}`;
}

/**
 * The rows of the table with every digit, and what they had in the range before, where all of that is loaded. Whether it is final, and
 * how many days of workspaces are not loaded, is said of all of it: a day of zero may change too, and has no row.
 */
async function csvOf(db: Database, { source, range, ended, before }: Asked): Promise<string> {
  const { figures } = await ownersOf(db, { source: source.slug, range, ended, before });
  const state = await ownedState(db, { source: source.slug, range, before });
  const currencies = currenciesIn(figures);
  const isFinal = state.workspaces > 0 && state.open.length === 0;
  const earlier = (text: string | null | undefined) =>
    state.daysMissingBefore > 0 ? null : decimalCell(text);
  return asCsv({
    header: [
      ...["source_id", "from", "to", "owner", "cost_center", "traces", "is_final", "days_missing"],
      ...currencies.map((one) => `estimated_cost_${one.toLowerCase()}`),
      ...["before_from", "before_to", "before_traces"],
      ...currencies.map((one) => `before_estimated_cost_${one.toLowerCase()}`),
    ],
    rows: figures.map((one) => [
      source.slug,
      ...[range.from, range.to].map((at): Cell => ({ at, per: "day" })),
      ...[one.owner, one.costCenter, decimalCell(one.traces), String(isFinal), state.daysMissing],
      ...currencies.map((currency) => decimalCell(one.costs[currency])),
      ...[before.from, before.to].map((at): Cell => ({ at, per: "day" })),
      earlier(one.tracesBefore),
      ...currencies.map((currency) => earlier(one.costsBefore[currency])),
    ]),
  });
}
