import { counted } from "../../core/base/printable.ts";
import { type CalendarMonth, daysWithin, monthBefore, monthTitle } from "../../core/domain/months/month.ts";
import { describeRestatements } from "../../core/domain/proof/restatement.ts";
import { MONTH_STATUS, monthStatus } from "../../core/domain/proof/statuses.ts";
import { type Amount, amountOf, amountShown, percentOf } from "../../core/domain/usage/amount.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import type { SourceWithWorkspaces } from "../../core/store/activity/overview.ts";
import type { Database } from "../../core/store/db/database.ts";
import { type UsageSource, usageSources } from "../../core/store/figures/sources.ts";
import { type Close, closedMonths } from "../../core/store/months/closes.ts";
import { maskedActor } from "../../core/store/work/operator-actions.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  change,
  count,
  dimensionTitle,
  type Html,
  html,
  joined,
  money,
  name,
  numberHead,
  pill,
  signed,
  table,
} from "../../web/parts.ts";
import { costsText } from "../costs/bill.ts";
import { type MonthTotal, monthTotals } from "../costs/bill-lines.store.ts";
import { expectedUnloaded } from "../costs/bill-terms.store.ts";
import { closedCosts } from "../costs/closed-costs.store.ts";
import { type Adjustments, type Changed, countAdjusted } from "../costs/month-adjustments.store.ts";
import { tracesByMonth } from "../figures/statement.ts";
import { figureShown } from "../figures/tables.ts";
import { itemTitle, openItemsOf } from "./checklist.ts";
import { openDaysOf } from "./open-days.store.ts";
import { openPointsOf } from "./open-days.ts";

const ON_A_PAGE = 12;
/** Most daily figures that a page may check: finding open days reads every unproved figure. */
const MOST_DAYS = 40_000;
const DAYS_OF_A_MONTH = 30;

interface Listed {
  readonly newest: CalendarMonth;
  readonly now: number;
  readonly masked: boolean;
}

/** A bill of the list: of one source. */
interface Row {
  readonly source: string;
  readonly month: CalendarMonth;
  readonly traces: Html | string;
  readonly totals: readonly MonthTotal[];
  readonly before: readonly MonthTotal[];
  readonly isUnderWay: boolean;
  readonly status: Html;
  readonly left: Html;
}

export async function monthList(
  db: Database,
  { sources, ...listed }: Listed & { readonly sources: readonly SourceWithWorkspaces[] },
): Promise<Page> {
  const lists: { readonly rows: Row[]; readonly older: CalendarMonth | undefined }[] = [];
  for (const source of sources) lists.push(await rowsOf(db, source, listed));
  const all = lists.flatMap(({ rows }) => rows);
  const isSum = sources.length > 1;
  const older = lists
    .map((one) => one.older)
    .filter((one) => one !== undefined)
    .sort((a, b) => (a.start < b.start ? 1 : -1))[0];
  const currencies = [...new Set(all.flatMap(({ totals }) => totals.map(({ currency }) => currency)))].sort();
  const months = [...Map.groupBy(all, ({ month }) => month.start)].sort(([a], [b]) => (a < b ? 1 : -1));
  const sumOf = (rows: readonly Row[], of: "totals" | "before", currency: string) =>
    rows
      .flatMap((row) => row[of])
      .filter((one) => one.currency === currency)
      .reduce<Amount | undefined>((sum, { cost }) => (sum ?? 0n) + amountOf(cost), undefined);
  const costs = (rows: readonly Row[]) =>
    currencies.map(
      (currency, n) =>
        html`<td class="number ${n === 0 ? "lead" : "opt"}">${amountShownIn(sumOf(rows, "totals", currency), currency)}</td>`,
    );
  const since = (rows: readonly Row[]) => {
    const [currency = ""] = currencies;
    const [now, before] = [sumOf(rows, "totals", currency), sumOf(rows, "before", currency)];
    const isKnown =
      now !== undefined &&
      before !== undefined &&
      rows.every(({ isUnderWay, totals, before }) => !isUnderWay && totals.length === before.length);
    return html`<td class="number change">${change(isKnown ? percentOf(now - before, before) : null, before === undefined ? undefined : `before: ${amountShown(before)}`)}</td>`;
  };
  const rowShown = (row: Row, first: string) =>
    html`<tr><th scope="row"><a href="${address(`/months/${row.month.name}`, { source: row.source })}">${first}</a></th><td class="number opt">${row.traces}</td>${costs([row])}${since([row])}<td class="share">${row.status}</td><td class="opt">${row.left}</td></tr>`;
  return {
    title: "Bills",
    about: isSum
      ? `All sources: ${sources.map(({ source }) => source).join(", ")}`
      : "Closed months are as closed, the others are current",
    actions: html`<a class="button" href="${address("/invoices", { source: isSum ? undefined : sources[0]?.source })}">Invoices</a>`,
    body:
      all.length === 0
        ? html`<p>No month has data yet.</p>`
        : html`${table({
            label: "Bills",
            kind: "two",
            caption: isSum
              ? "Bills by month and source, the newest first"
              : "Bills by month, the newest first",
            heads: [
              "Month",
              html`<th scope="col" class="number opt">Traces</th>`,
              ...currencies.map(
                (one, n) => html`<th scope="col" class="number ${n === 0 ? "" : "opt"}">${one}</th>`,
              ),
              numberHead("Change"),
              "Status",
              html`<th scope="col" class="opt">What is left</th>`,
            ],
            rows: months.flatMap(([, rows]) => {
              const [{ month }] = rows as [Row];
              if (!isSum) return rows.map((row) => rowShown(row, monthTitle(month)));
              const sum = html`<tr class="total"><th scope="row">${monthTitle(month)}</th><td class="opt"></td>${costs(rows)}${since(rows)}<td class="share">${counted(rows.length, "source")}</td><td class="opt"></td></tr>`;
              return [sum, ...rows.map((row) => rowShown(row, row.source))];
            }),
          })}
          ${older !== undefined && html`<p><a href="${address("/months", { source: isSum ? undefined : sources[0]?.source, newest: older.name })}">Older bills</a></p>`}`,
  };
}

function amountShownIn(amount: Amount | undefined, currency: string): Html {
  return amount === undefined
    ? html`<span class="none" title="no price, or no usage">–</span>`
    : money(amount, currency);
}

async function rowsOf(db: Database, source: SourceWithWorkspaces, { newest, now, masked }: Listed) {
  const listed: CalendarMonth[] = [];
  for (
    let month = newest;
    month.end > source.dataStart && listed.length < ON_A_PAGE;
    month = monthBefore(month)
  )
    listed.push(month);
  const last = listed.at(-1);
  if (last === undefined) return { rows: [], older: undefined };
  const { sourceId, source: slug } = source;
  const closes = await closedMonths(db, { sourceId, from: last.start, to: newest.end });
  const closed = new Map(closes.map((one) => [one.name, one]));
  const isOpen = ({ name, end }: CalendarMonth) => !closed.has(name) && Date.parse(end) <= now;
  const shown = fitting(listed, isOpen, source.workspaceIds.length);
  const oldest = shown.at(-1) ?? last;
  const open = shown.filter(isOpen);
  const ranges = open.map((month) => daysWithin(month, source.dataStart));
  const openDays = ranges.length === 0 ? [] : await openDaysOf(db, { sourceId, ranges });
  const adjusted = await countAdjusted(
    db,
    closes.map(({ closeId }) => closeId),
  );
  const usage = (await usageSources(db)).find((one) => one.slug === slug);
  const traces =
    usage && (await tracesByMonth(db, { source: usage, from: oldest.start, to: newest.end, now }));
  const totals = await monthTotals(db, { source: slug, from: monthBefore(oldest).start, to: newest.end });
  const rows: Row[] = [];
  for (const month of shown) {
    const close = closed.get(month.name);
    const days = openDays[open.indexOf(month)];
    const items = openItemsOf(openPointsOf(days?.open ?? []));
    const isUnderWay = close === undefined && days === undefined;
    const own = totals.filter(({ monthStart }) => monthStart === month.start);
    const unloaded = close === undefined ? await expectedUnloaded(db, { source: slug, month, now }) : [];
    const known = traces?.get(month.start);
    const status = monthStatus({ isClosed: close !== undefined, isUnderWay, open: items.length });
    const missing = unloaded.flatMap(({ costs }) => costs);
    const left = [
      ...items.map(itemTitle),
      ...own
        .filter(({ unproved }) => amountOf(unproved) !== 0n)
        .map(({ unproved, currency }) => html`${money(amountOf(unproved), currency)} ${currency} not proved`),
      ...(unloaded.length === 0
        ? []
        : [
            `${counted(unloaded.length, "workspace")} not loaded${missing.length === 0 ? "" : `, about ${costsText(missing.slice(0, 1))}`}`,
          ]),
      ...(close === undefined ? [] : changesOf(close, adjusted.get(close.closeId))),
    ];
    rows.push({
      source: slug,
      month,
      traces: close?.costsClosedAt
        ? count(close.traces)
        : known === undefined
          ? "–"
          : figureShown(known.figure, known.report),
      totals: own,
      // A month that the data start cuts is compared with nothing.
      before:
        monthBefore(month).start < source.dataStart
          ? []
          : totals.filter(({ monthStart }) => monthStart === monthBefore(month).start),
      isUnderWay,
      status: html`${pill(MONTH_STATUS[status], status === "open" ? counted(items.length, "item") : undefined)}${close !== undefined && html` <small class="opt">${closer(close, masked)}</small>`}`,
      left: html`<div>${joined(left, html`<br>`)}</div>`,
    });
  }
  const older = monthBefore(oldest);
  return { rows, older: older.end > source.dataStart ? older : undefined };
}

/** Counts what keeps each month open, by its name. Has no number for months that are too many to check. */
export async function openItemCounts(
  db: Database,
  {
    source: { sourceId, dataStart, workspaces },
    months,
  }: {
    source: Pick<UsageSource, "sourceId" | "dataStart" | "workspaces">;
    /** Months that have ended and are not closed, the newest first. */
    months: readonly CalendarMonth[];
  },
): Promise<Map<string, number>> {
  const open = fitting(months, () => true, Math.max(1, workspaces.length));
  if (open.length === 0) return new Map();
  const ranges = open.map((month) => daysWithin(month, dataStart));
  const days = await openDaysOf(db, { sourceId, ranges });
  return new Map(open.map((month, n) => [month.name, openItemsOf(openPointsOf(days[n]?.open ?? [])).length]));
}

/** The first months with as many open ones as a page may check, at least one. */
function fitting(
  months: readonly CalendarMonth[],
  isOpen: (month: CalendarMonth) => boolean,
  workspaces: number,
): CalendarMonth[] {
  const most = Math.max(1, Math.floor(MOST_DAYS / (DAYS_OF_A_MONTH * GROUPINGS.length * workspaces)));
  const end = months.filter(isOpen)[most];
  return months.slice(0, end === undefined ? months.length : months.indexOf(end));
}

function changesOf(close: Close, changed: Changed | undefined): Html[] {
  const { totals = 0, netTraces = 0, others = [], costs = [] } = changed ?? {};
  return [
    ...(close.without.length > 0 ? [html`without ${counted(close.without.length, "workspace")}`] : []),
    ...(close.costsClosedAt === null && close.traces > 0 ? [html`without costs`] : []),
    ...(totals === 0 ? [] : [html`${signed(netTraces)} traces since the close`]),
    ...(others.length === 0 ? [] : [html`${describeRestatements(others)} since the close`]),
    ...costs.map(
      ({ currency, more }) =>
        html`${amountOf(more) > 0n && "+"}${money(amountOf(more), currency)} ${currency} since the close`,
    ),
  ];
}

export function closer({ by }: Pick<Close, "by">, masked: boolean): string {
  if (by === null) return "";
  const how = by.via === "page" ? "on a page" : "by a command";
  return by.name === null ? ` ${how}` : ` by ${masked ? maskedActor(by.name) : by.name}, ${how}`;
}

const CHANGE_HEADS = ["Closed", "Adjusted by", "Now"].map((label) => numberHead(label));

export function adjustmentTable({ totals, largest }: Adjustments): Html {
  if (totals === 0) return html`<p>No count has changed since the close.</p>`;
  const shown =
    largest.length < totals ? `. The first ${largest.length}; reporting_detail.fct_close has all` : "";
  return table({
    label: "Adjustments",
    caption: `Traces that changed since the close, by each dimension: do not add them up${shown}`,
    heads: ["Dimension", "Workspace", "Id", ...CHANGE_HEADS],
    rows: largest.map(
      (one) => html`<tr><th scope="row">${dimensionTitle(one.groupBy)}</th>
          <td title="${one.workspaceId}">${name(one.workspaceName ?? one.workspaceId)}</td>
          <td title="${one.dimensionId}">${name(one.dimensionName ?? one.dimensionId)}</td>
          <td class="number">${count(one.closedTraces)}</td>
          <td class="number">${signed(one.currentTraces - one.closedTraces)}</td>
          <td class="number">${count(one.currentTraces)}</td></tr>`,
    ),
  });
}

const MOST = 50;

export async function closedCostTable(
  db: Database,
  close: { closeId: number; sourceId: number; monthStart: string },
): Promise<Html> {
  const { rows, total } = await closedCosts(db, { ...close, most: MOST });
  if (rows.length === 0) return html``;
  const isWhole = rows.length === total;
  const shown = isWhole
    ? ""
    : `. The first ${rows.length} of ${total}; reporting_detail.fct_close_cost has all`;
  const sums = isWhole ? [...Map.groupBy(rows, ({ currency }) => currency)] : [];
  return table({
    label: "Closed costs",
    caption: `Closed costs by workspace, SKU and price${shown}`,
    heads: ["Workspace", "SKU", numberHead("Unit price"), ...CHANGE_HEADS],
    rows: rows.map(
      (
        one,
      ) => html`<tr><th scope="row" title="${one.workspaceId}">${name(one.workspaceName ?? one.workspaceId)}</th>
          <td>${name(one.sku)}</td><td class="number">${one.unitPrice} ${one.currency}</td>
          ${[one.closedCost, one.adjustmentCost, one.currentCost].map((cost) => html`<td class="number">${money(amountOf(cost), one.currency)}</td>`)}</tr>`,
    ),
    foot: html`${sums.map(
      ([currency, all]) =>
        html`<tr><th scope="row" colspan="3">Total, ${currency}</th>${(
          ["closedCost", "adjustmentCost", "currentCost"] as const
        ).map(
          (of) =>
            html`<td class="number">${money(
              all.reduce((sum, one) => sum + amountOf(one[of]), 0n),
              currency,
            )}</td>`,
        )}</tr>`,
    )}`,
  });
}
