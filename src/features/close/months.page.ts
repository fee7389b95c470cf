import { counted } from "../../core/base/printable.ts";
import {
  type CalendarMonth,
  daysOfMonth,
  daysWithin,
  monthBefore,
  monthTitle,
} from "../../core/domain/months/month.ts";
import { describeRestatements } from "../../core/domain/proof/restatement.ts";
import { amountOf } from "../../core/domain/usage/amount.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import type { ListedSource, SourceWithWorkspaces } from "../../core/store/activity/overview.ts";
import type { Database } from "../../core/store/db/database.ts";
import { type Close, closedMonths } from "../../core/store/months/closes.ts";
import { maskedActor } from "../../core/store/work/operator-actions.ts";
import {
  address,
  type Cell,
  card,
  count,
  dimensionTitle,
  type Html,
  html,
  instant,
  joined,
  money,
  name,
  numberHead,
  postForm,
  sign,
  signed,
  table,
} from "../../web/parts.ts";
import { type ClosedCost, closedCosts } from "../costs/closed-costs.store.ts";
import {
  type Adjustments,
  adjustmentsOf,
  type Changed,
  countAdjusted,
} from "../costs/month-adjustments.store.ts";
import { costColumn, figuresByMonth } from "../figures/statement.ts";
import { openDaysOf } from "./open-days.store.ts";
import { inShort } from "./open-month.ts";

const ON_A_PAGE = 12;
/** Most daily figures that a page may check: finding open days reads every unproved figure. */
const MOST_DAYS = 40_000;
const DAYS_OF_A_MONTH = 30;

interface Row {
  readonly month: CalendarMonth;
  readonly what: Html;
  readonly since: Html | "";
}

export async function monthList(
  db: Database,
  {
    source,
    newest,
    now,
    masked,
  }: { source: SourceWithWorkspaces; newest: CalendarMonth; now: number; masked: boolean },
): Promise<Html> {
  const listed: CalendarMonth[] = [];
  for (
    let month = newest;
    month.end > source.dataStart && listed.length < ON_A_PAGE;
    month = monthBefore(month)
  ) {
    listed.push(month);
  }
  const [last] = listed.slice(-1);
  if (last === undefined)
    return html`<p>The data of ${source.source} starts on ${source.dataStart}, after this month.</p>`;
  const closes = await closedMonths(db, { sourceId: source.sourceId, from: last.start, to: newest.end });
  const closed = new Map(closes.map((one) => [one.name, one]));
  const isOpen = ({ name, end }: CalendarMonth) => !closed.has(name) && Date.parse(end) <= now;
  const shown = fitting(listed, isOpen, source.workspaceIds.length);
  const oldest = shown.at(-1) ?? last;
  const open = shown.filter(isOpen);
  const ranges = open.map((month) => daysWithin(month, source.dataStart));
  const [openDays, adjusted, figures] = await Promise.all([
    ranges.length === 0 ? [] : openDaysOf(db, { sourceId: source.sourceId, ranges }),
    countAdjusted(
      db,
      closes.map(({ closeId }) => closeId),
    ),
    figuresByMonth(db, { source: source.source, from: monthBefore(oldest).start, to: newest.end, now }),
  ]);
  const rows = shown.map((month): Row => {
    const close = closed.get(month.name);
    if (close !== undefined) return { month, ...ofClosed(close, adjusted.get(close.closeId), masked) };
    const days = openDays[open.indexOf(month)];
    if (days === undefined) return { month, what: html`<span class="quiet">under way</span>`, since: "" };
    return { month, what: ofOpen(days.open.length === 0, inShort(days.open)), since: "" };
  });
  const older = monthBefore(oldest);
  const hasClosed = shown.some(({ name }) => closed.has(name));
  const months = table({
    label: "Months",
    kind: "cards",
    caption: `Months of ${source.source} since ${source.dataStart}, the newest first. Numbers in brackets count daily figures. A cost lacks what has no price or is not reported: the page of the month names it.`,
    heads: [
      "Month",
      numberHead("Traces"),
      numberHead("Change"),
      ...figures.currencies.map((currency) => numberHead(costColumn(currency))),
      "State of traces",
      "Closed, or what keeps it open",
      ...(hasClosed ? ["Changed since the close"] : []),
    ],
    rows: rows.map(({ month, what, since }) => {
      const { name, start } = month;
      const to = address(`/months/${name}`, { source: source.source });
      const changed = since === "" ? "" : html`<a href="${to}#adjustments">${since}</a>`;
      const unknown = ["Traces", "Change", ...figures.currencies.map(costColumn), "State of traces"];
      return card(html`<a href="${to}">${monthTitle(month)}</a>`, [
        ...(figures.cells.get(start) ?? unknown.map((column): Cell => [column, "–"])),
        ["Closed, or what keeps it open", what],
        ...(hasClosed ? [["Changed since the close", changed] as const] : []),
      ]);
    }),
  });
  return html`${months}
    ${older.end > source.dataStart && html`<p><a href="${address("/months", { source: source.source, newest: older.name })}">Older months</a></p>`}`;
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

const CLOSED = sign("ok", "■", "closed");

function ofClosed(close: Close, changed: Changed | undefined, masked: boolean) {
  const { closedAt, costsClosedAt, traces, without } = close;
  const what = html`${CLOSED} ${instant(closedAt)}${closer(close, masked)}:
    ${count(traces)} traces${without.length > 0 && html`, without ${counted(without.length, "workspace")}`}${costsClosedAt === null && traces > 0 && ", without costs"}`;
  const { totals = 0, netTraces = 0, others = [], costs = [] } = changed ?? {};
  const changes = [
    ...(totals === 0 ? [] : [html`${counted(totals, "count")}, ${signed(netTraces)} traces`]),
    ...(others.length === 0 ? [] : [html`${describeRestatements(others)}`]),
    ...costs.map(
      ({ currency, more }) => html`${amountOf(more) > 0n && "+"}${money(amountOf(more))} ${currency}`,
    ),
  ];
  return { what, since: changes.length === 0 ? html`nothing` : joined(changes) };
}

function ofOpen(isReady: boolean, inWords: string): Html {
  return isReady
    ? html`${sign("provisional", "□", "open")}: it can be closed`
    : html`${sign("missing", "□", "open")}: ${inWords}`;
}

function closer({ by }: Pick<Close, "by">, masked: boolean): string {
  if (by === null) return "";
  const how = by.via === "page" ? "on a page" : "by a command";
  return by.name === null ? `, ${how}` : ` by ${masked ? maskedActor(by.name) : by.name} (${how})`;
}

const MOST = 50;

export function closedLine(closed: Close, masked: boolean): Html {
  return html`<p>${CLOSED} ${instant(closed.closedAt)}${closer(closed, masked)}.</p>`;
}

export async function closedPage(
  db: Database,
  given: {
    month: CalendarMonth;
    source: ListedSource;
    closed: Close;
    masked: boolean;
    csrf: string | undefined;
  },
): Promise<Html> {
  const { month, source, closed, masked } = given;
  const [adjustments, costs] = await Promise.all([
    adjustmentsOf(db, { closeId: closed.closeId, most: MOST, masked }),
    closedCosts(db, {
      closeId: closed.closeId,
      sourceId: source.sourceId,
      monthStart: month.start,
      most: MOST,
    }),
  ]);
  const range = { source: source.source, ...daysOfMonth(month) };
  return html`<h2>The close</h2>
    <dl class="facts">
      <dt>Traces</dt><dd>${count(closed.traces)}, in ${count(closed.totals)} totals by dimension, workspace and id</dd>
      <dt>Left out</dt><dd>${
        closed.without.length === 0
          ? "no workspace"
          : html`<ul>${closed.without.map((id) => html`<li>${name(id)}</li>`)}</ul>`
      }</dd>
      <dt>Accepted</dt><dd>${
        closed.accepted === 0
          ? "no day on which the platform contradicts itself"
          : html`${count(closed.accepted)} daily figures on which the platform contradicts itself:
            <a href="${address("/differences", range)}">both numbers</a>`
      }</dd>
      <dt>Final after</dt><dd>${closed.settleAfterSeconds / 86_400} days (USAGE_SETTLE_AFTER at that time)</dd>
    </dl>
    <h2 id="adjustments">Traces that changed since the close</h2>
    ${adjustmentTable(adjustments)}
    ${adjustments.others.length > 0 && html`<p>Other usage that changed: ${describeRestatements(adjustments.others)}.</p>`}
    ${adjustments.totals + adjustments.others.length > 0 && html`<p><a href="${address("/differences", { ...range, says: "restatement" })}">When each change came</a></p>`}
    <h2>Costs</h2>
    ${closed.costsClosedAt === null && closed.traces > 0 ? costlessMonth(given) : costTable(costs)}`;
}

const CHANGE_HEADS = ["Closed", "Adjusted by", "Now"].map((label) => numberHead(label));

function adjustmentTable({ totals, netTraces, largest }: Adjustments): Html {
  if (totals === 0) return html`<p>None: every count is as it was closed.</p>`;
  const shown =
    largest.length < totals
      ? ` The first ${largest.length} of them; reporting_detail.fct_close has all.`
      : "";
  return html`<p>${counted(totals, "total")} ${totals === 1 ? "is" : "are"} not as closed. The workspaces have ${signed(netTraces)} traces.</p>
    ${table({
      label: "Adjustments",
      caption: `The same changes by each dimension: do not add up its rows with those of another.${shown}`,
      heads: ["Dimension", "Workspace", "Id", ...CHANGE_HEADS],
      rows: largest.map(
        (one) => html`<tr><th scope="row">${dimensionTitle(one.groupBy)}</th>
          <td title="${one.workspaceId}">${name(one.workspaceName ?? one.workspaceId)}</td>
          <td title="${one.dimensionId}">${name(one.dimensionName ?? one.dimensionId)}</td>
          <td class="number">${count(one.closedTraces)}</td>
          <td class="number">${signed(one.currentTraces - one.closedTraces)}</td>
          <td class="number">${count(one.currentTraces)}</td></tr>`,
      ),
    })}`;
}

function costlessMonth({ month, source, csrf }: Parameters<typeof closedPage>[1]): Html {
  const fields = { source: source.source, costs: "closed" };
  const form =
    csrf &&
    postForm(`/months/${month.name}/close`, {
      csrf,
      label: `Close the costs of ${monthTitle(month)}`,
      fields,
    });
  return html`<p>None: ${monthTitle(month)} was closed without costs, so no cost is shown for it. Once prices for it are imported, its costs can be closed too.</p>
    ${form ?? html`<p>An operator can close them.</p>`}`;
}

function costTable({ rows, total }: { rows: readonly ClosedCost[]; total: number }): Html {
  if (rows.length === 0) return html`<p>None: it was closed without traces.</p>`;
  const isWhole = rows.length === total;
  const shown = isWhole
    ? ""
    : ` The first ${rows.length} of ${total}; reporting_detail.fct_close_cost has all.`;
  const sums = isWhole ? [...Map.groupBy(rows, ({ currency }) => currency)] : [];
  return table({
    label: "Closed costs",
    caption: `Estimated costs, by workspace, SKU and price. Later prices and counts adjust them.${shown}`,
    heads: ["Workspace", "SKU", numberHead("Unit price"), ...CHANGE_HEADS],
    rows: rows.map(
      (
        one,
      ) => html`<tr><th scope="row" title="${one.workspaceId}">${name(one.workspaceName ?? one.workspaceId)}</th>
          <td>${name(one.sku)}</td><td class="number">${one.unitPrice} ${one.currency}</td>
          ${[one.closedCost, one.adjustmentCost, one.currentCost].map((cost) => html`<td class="number">${money(amountOf(cost))}</td>`)}</tr>`,
    ),
    foot: html`${sums.map(
      ([currency, all]) =>
        html`<tr><th scope="row" colspan="3">Total, ${currency}</th>${(["closedCost", "adjustmentCost", "currentCost"] as const).map((of) => html`<td class="number">${money(all.reduce((sum, one) => sum + amountOf(one[of]), 0n))}</td>`)}</tr>`,
    )}`,
  });
}
