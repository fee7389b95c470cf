import { counted } from "../../core/base/printable.ts";
import {
  type CalendarMonth,
  daysOfMonth,
  monthBefore,
  monthTitle,
  shortDay,
} from "../../core/domain/months/month.ts";
import { describeProviderMonth } from "../../core/domain/months/provider.ts";
import { describeRestatements } from "../../core/domain/proof/restatement.ts";
import {
  FIGURE_STATUS,
  type FigureStatus,
  figureStatus,
  MONTH_STATUS,
  monthStatus,
} from "../../core/domain/proof/statuses.ts";
import {
  type Amount,
  amountCut,
  amountDrawn,
  amountOf,
  amountShown,
  percentOf,
  roundedParts,
  roundedTo,
  roundShown,
} from "../../core/domain/usage/amount.ts";
import { METER_NAME } from "../../core/domain/usage/meter.ts";
import type { SourceWithWorkspaces } from "../../core/store/activity/overview.ts";
import type { Database } from "../../core/store/db/database.ts";
import type { UsageSource } from "../../core/store/figures/sources.ts";
import type { Close } from "../../core/store/months/closes.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  box,
  button,
  capital,
  change,
  columns,
  count,
  type Html,
  html,
  type Kpi,
  kpis,
  money,
  name,
  notice,
  numberHead,
  percent,
  pill,
  postForm,
  prose,
  share,
  signed,
  type Todo,
  table,
  todos,
} from "../../web/parts.ts";
import { type Bill, billTotals, costsText, gapsOf } from "../costs/bill.ts";
import { monthBillByOwner } from "../costs/bill-lines.store.ts";
import { billLines, otherLines } from "../costs/bill-table.ts";
import { changesOfMonth, describeLoggedChanges } from "../costs/logged-changes.ts";
import { adjustmentsOf, countAdjusted } from "../costs/month-adjustments.store.ts";
import { closeDoes, describeAbsent, type KnownUsage, withFigures } from "../costs/other-usage.ts";
import type { BillByOwner } from "../costs/owner-bill.ts";
import { totalWorth } from "../costs/worth.store.ts";
import type { Report } from "../figures/report.ts";
import { monthReports } from "../figures/statement.ts";
import { figureShown, trend } from "../figures/tables.ts";
import { NO_COST_CENTER, UNALLOCATED } from "../owners/owner.ts";
import { checklist, openItemsOf, unloadedTodos } from "./checklist.ts";
import type { MonthLook } from "./close-preview.ts";
import { adjustmentTable, closedCostTable, closer } from "./months.page.ts";
import { type CloseRequest, openPointsOf } from "./open-days.ts";
import type { OpenDifference } from "./open-differences.store.ts";
import { mayBeClosed, nextSteps } from "./open-month.ts";

interface BillOf {
  readonly source: SourceWithWorkspaces;
  readonly month: CalendarMonth;
  readonly owned: BillByOwner;
  readonly bill: Bill;
  readonly usage: UsageSource | undefined;
  readonly earlier: readonly CalendarMonth[];
  readonly differences: readonly OpenDifference[];
  readonly nameOf: (workspaceId: string) => string;
  /** Undefined: the month is under way. */
  readonly look: MonthLook | undefined;
  readonly requested: CloseRequest | undefined;
  /** Undefined: the reader is no operator. */
  readonly csrf: string | undefined;
  readonly isJustClosed: boolean;
  readonly masked: boolean;
  readonly now: number;
}

const MOST = 50;

export async function billPage(db: Database, of: BillOf): Promise<Page> {
  const { source, month, owned, bill, usage, look, requested, now, masked } = of;
  const by = owned.divideBy === null ? "workspace" : "owner";
  const reports = usage && (await monthReports(db, { source: usage, month: month.name, by, now, masked }));
  const closed = look?.closed;
  const items = openItemsOf(openPointsOf(look?.open ?? []));
  const status = monthStatus({
    isClosed: closed !== undefined,
    isUnderWay: look === undefined,
    open: items.length,
  });
  const main = reports?.priced[0] ?? reports?.traces;
  const about = { source: source.source, month: month.name };
  const mayClose = look !== undefined && requested !== undefined && mayBeClosed(look, requested);
  return {
    title: `${monthTitle(month)} bill`,
    pill: pill(MONTH_STATUS[status], status === "open" ? counted(items.length, "item") : undefined),
    about: aboutOf(of, closed),
    actions: html`${main !== undefined && button(address("/usage.xlsx", { ...about, by, per: "day", measure: main.question.measure, currency: main.question.currency }), "Download Excel")}
      <button type="button" data-print>Print</button>
      ${closed === undefined && mayClose && of.csrf !== undefined && button(address(`/months/${month.name}/close`, { source: source.source }), "Review and close", "primary")}`,
    body: html`${noticesOf(of, closed)}
      ${kpis(kpisOf(of, reports, closed))}
      ${columns(
        box({ title: "Lines", span: 8, body: billLines(bill, worthByMeasure(of)) }),
        closed === undefined ? toClose(of) : await changesSince(db, of, closed),
      )}
      ${columns(await whoPays(db, of), main !== undefined && trend(main))}
      ${await folded(db, of, closed)}`,
  };
}

/** Whether the figures of the bill are those of the close. */
function isAsClosed(closed: Close | undefined): boolean {
  return closed !== undefined && (closed.costsClosedAt !== null || closed.traces === 0);
}

function isLoaded({ lines }: Bill): boolean {
  return !lines.some(
    ({ line, service }) => ["not_loaded", "not_known"].includes(line) && service !== "evaluators",
  );
}

function areFinal(bill: Bill): boolean {
  return isLoaded(bill) && bill.lines.every(({ cost, isFinal }) => cost === null || isFinal);
}

function aboutOf({ bill, look, masked }: BillOf, closed: Close | undefined): string {
  const { unproved } = gapsOf(bill);
  const states = [
    look === undefined ? "so far" : areFinal(bill) ? "all days final" : "not all days final",
    bill.lines.every(({ cost }) => cost === null)
      ? undefined
      : unproved.length > 0
        ? `${costsText(unproved)} not proved`
        : look === undefined || look.open.length > 0
          ? "not all proved"
          : "all of the total proved",
    bill.unloaded.length > 0 ? `${counted(bill.unloaded.length, "workspace")} not loaded` : undefined,
  ].filter((one) => one !== undefined);
  if (closed === undefined) return `Current figures · ${states.join(" · ")}`;
  const when = `Closed on ${shortDay(closed.closedAt)}${closer(closed, masked)}`;
  return isAsClosed(closed)
    ? `${when}. All figures are as closed.`
    : `${when}, without costs. All figures are current.`;
}

function noticesOf({ source, month, csrf, isJustClosed }: BillOf, closed: Close | undefined): Html {
  const isCostless = closed !== undefined && !isAsClosed(closed);
  const label = `Close the costs of ${monthTitle(month)}`;
  return html`${isJustClosed && closed !== undefined && notice("good", `${monthTitle(month)} is closed. Its totals are kept; later changes become adjustments.`)}
    ${source.dataStart > month.start && notice("warn", `Data starts on ${shortDay(source.dataStart)}. Earlier usage of the month is in no figure of this page.`)}
    ${
      isCostless &&
      notice(
        "warn",
        html`<p>${monthTitle(month)} was closed without costs, with ${count(closed.traces)} traces. Import prices, then close its costs.</p>
        ${csrf && postForm(`/months/${month.name}/close`, { csrf, label, fields: { source: source.source, costs: "closed" } })}`,
      )
    }`;
}

function kpisOf(
  of: BillOf,
  reports: Awaited<ReturnType<typeof monthReports>>,
  closed: Close | undefined,
): Kpi[] {
  const { bill, look } = of;
  const totals = billTotals(bill.lines);
  const { unproved, unprovedNames, missing, withoutCost } = gapsOf(bill);
  const [cost] = reports?.priced ?? [];
  const others = totals
    .slice(1)
    .map((one) => `${roundShown(roundedTo(one.currency, one.cost), one.currency)} ${one.currency}`);
  const [total] = totals;
  const part = unproved.find((one) => one.currency === total?.currency);
  const lacks = [
    bill.unloaded.length > 0 && counted(bill.unloaded.length, "workspace"),
    withoutCost.length > 0 && counted(withoutCost.length, "line"),
    "seats, taxes and others",
  ].filter(Boolean);
  const traces = reports?.traces;
  return [
    {
      label: look === undefined ? "Estimated cost so far" : "Estimated cost",
      value:
        total === undefined
          ? "Not known"
          : html`${!isLoaded(bill) && "≥ "}${money(total.cost, total.currency)}`,
      unit: total && `${total.currency}${others.length === 0 ? "" : ` and ${others.join(", ")}`}`,
      note: cost === undefined ? "No price is stored" : sinceBefore(cost, of.month),
    },
    {
      label: "Traces",
      value:
        closed !== undefined && isAsClosed(closed)
          ? count(closed.traces)
          : traces === undefined
            ? "None"
            : figureShown(traces.total.sum, traces),
      note: html`${traces !== undefined && !isAsClosed(closed) && sinceBefore(traces, of.month)} ${tracesStatus(of, closed)}`,
    },
    {
      label: "Not proved",
      value: total === undefined ? "Not known" : money(amountOf(part?.cost ?? "0"), total.currency),
      unit: total?.currency,
      note:
        part === undefined || total === undefined
          ? "of the total"
          : `${percent(percentOf(amountOf(part.cost), total.cost))} of the total: ${unprovedNames.join("; ")}`,
    },
    {
      label: "Not in this total",
      value:
        missing.length === 0
          ? "Not known"
          : html`${bill.unloaded.some(({ asIn }) => asIn !== undefined) ? "≈" : "≥"} ${missing.map(({ cost, currency }) => money(amountOf(cost), currency))}`,
      unit: missing[0]?.currency,
      note: lacks.join(", "),
    },
  ];
}

/** The change since the month before, or since its same days. */
function sinceBefore({ total, question }: Report, month: CalendarMonth): Html {
  const { from, to } = question.before;
  const before = new Date(monthBefore(month).start).toLocaleString("en-US", {
    month: "short",
    timeZone: "UTC",
  });
  if (!total.isComparable || total.change === null) return html``;
  return html`<span>${change(total.change, `before: ${amountShown(total.before.amount)}, ${from} to ${to}`)} vs ${before}</span>`;
}

function tracesStatus({ bill, look, source }: BillOf, closed: Close | undefined): Html {
  const lines = bill.lines.filter(({ service }) => service === "traces");
  const open =
    look?.open.filter(({ meter }) => meter === "traces" || meter === "longlived" || meter === "shortlived") ??
    [];
  const isDifferent =
    lines.some(({ daysDiffering }) => (daysDiffering ?? 0) > 0) ||
    open.some(({ reason }) =>
      ["open", "platform_disagrees", "total_differs", "tiers_differ", "provider_differs"].includes(reason),
    ) ||
    look?.provider.outcomes.some(
      ({ meter, outcome }) => outcome === "differs" && (meter === "traces" || meter === "longlived"),
    );
  if (lines.length === 0) return html``;
  const status: FigureStatus = figureStatus({
    isComplete: !lines.some(({ line }) => line === "not_loaded" || line === "not_known"),
    isFinal: lines.every(({ isFinal }) => isFinal),
    isProved: lines.every(({ isProved }) => isProved),
    isDifferent: isDifferent ?? false,
  });
  const known = source.workspaceIds.length;
  const of =
    bill.unloaded.length === 0 ? undefined : `${known} of ${known + bill.unloaded.length} workspaces`;
  return html`${pill(FIGURE_STATUS[status])}${of !== undefined && html`<span>${of}</span>`}${closed !== undefined && closed.accepted > 0 && html` ${count(closed.accepted)} accepted`}`;
}

function worthByMeasure({ differences }: BillOf): ReadonlyMap<string, string> {
  const by = Map.groupBy(differences, ({ measure }) => measure as string);
  return new Map(
    [...by].map(([measure, some]) => [
      measure,
      costsText(totalWorth(some.map((one) => ({ about: one, worth: one.worth })))),
    ]),
  );
}

function toClose(of: BillOf): Html {
  const { look, month, csrf, bill } = of;
  const title = `To close ${monthTitle(month).split(" ")[0]}`;
  if (look === undefined)
    return box({
      title,
      span: 4,
      body: todos([
        {
          tone: "info",
          mark: "◐",
          what: `${monthTitle(month)} has not ended`,
          details: "It can be closed once its last day is final and proved.",
        },
        ...unloadedTodos(bill),
      ]),
    });
  return box({ title, span: 4, body: todos(checklist({ ...of, look, mayClose: csrf !== undefined })) });
}

async function changesSince(db: Database, of: BillOf, closed: Close): Promise<Html> {
  const { bill } = of;
  const changed = (await countAdjusted(db, [closed.closeId])).get(closed.closeId);
  const { netTraces = 0, totals = 0, costs = [], others = [] } = changed ?? {};
  const isSame = totals + costs.length + others.length === 0;
  const all: Todo[] = isSame
    ? [{ tone: "ok", mark: "✓", what: "Nothing has changed", details: "Every figure is as it was closed." }]
    : [
        ...(totals === 0
          ? []
          : [
              {
                tone: "info",
                mark: "±",
                what: `${signed(netTraces)} traces`,
                details: html`${counted(totals, "total")} changed. <a href="#history">Show them</a>`,
              } as const,
            ]),
        ...costs.map(
          ({ currency, more }): Todo => ({
            tone: "info",
            mark: "±",
            what: html`${amountOf(more) > 0n && "+"}${money(amountOf(more), currency)} ${currency}`,
            details: "Bills of later months have it as corrections.",
          }),
        ),
        ...(others.length === 0
          ? []
          : [
              {
                tone: "info",
                mark: "±",
                what: "Other usage",
                details: describeRestatements(others),
              } as const,
            ]),
      ];
  const differs = of.look?.provider.outcomes.some(({ outcome }) => outcome === "differs");
  if (differs)
    all.push({
      tone: "bad",
      mark: "≠",
      what: "The billing provider's total differs",
      action: html`<a href="${address("/differences", { source: bill.source, says: "total" })}">View</a>`,
    });
  return box({ title: "Changes since the close", span: 4, body: todos([...all, ...unloadedTodos(bill)]) });
}

/** Cost by team. With the lines that nobody owns, it adds up to the bill. */
async function whoPays(db: Database, { source, month, owned, look }: BillOf): Promise<Html> {
  const { owners, currencies, bill, divideBy } = owned;
  const [currency] = currencies;
  const to = (fields: Record<string, string>) =>
    address("/owners", { source: source.source, month: month.name, ...fields });
  const links = html`<a href="${to({})}">${divideBy === null ? "Assign teams" : "Teams"}</a> ${(["workspace", "project", "api_key"] as const).map((by) => html`<a href="${address("/usage", { source: source.source, month: month.name, measure: currency === undefined ? "traces" : "cost", by })}">By ${by === "api_key" ? "key" : by}</a> `)}`;
  if (owners.length === 0) return box({ title: "Who pays", links, body: html`<p>No usage.</p>` });
  const before =
    look === undefined
      ? []
      : await monthBillByOwner(db, { source: source.source, month: monthBefore(month), lines: [] });
  const costOf = (costs: readonly { currency: string; cost: string }[]) =>
    costs.filter((one) => one.currency === currency).reduce((sum, { cost }) => sum + amountCut(cost), 0n);
  const hasTraces = currency === undefined || look?.closed === undefined;
  const hasCenters = owners.some(({ costCenter }) => costCenter !== NO_COST_CENTER);
  const charged = billTotals(bill.lines.filter(({ line }) => line !== "added")).find(
    (one) => one.currency === currency,
  );
  const exact = owners.map(({ costs }) => costOf(costs));
  const cents = currency === undefined ? exact : roundedParts(currency, exact, charged?.cost);
  const rows = owners.map((one, n) => {
    const earlier = before.find(
      ({ owner, costCenter }) => owner === one.owner && costCenter === one.costCenter,
    );
    const amount = exact[n] as Amount;
    const rounded = cents[n] as Amount;
    const since =
      earlier === undefined ? null : percentOf(amount - costOf(earlier.costs), costOf(earlier.costs));
    return html`<tr><th scope="row"><a href="${to({ owner: one.owner })}">${one.owner === UNALLOCATED ? "No team" : name(one.owner)}</a></th>
      ${hasCenters && html`<td class="opt">${one.costCenter === NO_COST_CENTER ? "–" : name(one.costCenter)}</td>`}
      ${hasTraces && html`<td class="number ${currency === undefined ? "lead" : "opt"}">${one.traces === null ? "–" : count(Math.round(amountDrawn(amountCut(one.traces))))}</td>`}
      ${currency !== undefined && html`<td class="number lead">${money(rounded, currency, amount)}</td>`}
      <td class="share">${share(one.sharePercent)}</td><td class="number change">${change(since, earlier && `before: ${amountShown(costOf(earlier.costs))}`)}</td></tr>`;
  });
  const added = bill.lines.filter(({ line, currency: own }) => line === "added" && own === currency);
  const total = billTotals(bill.lines).find((one) => one.currency === currency);
  const span = (hasCenters ? 1 : 0) + (hasTraces ? 1 : 0);
  const sum = (label: string, amount: bigint) =>
    html`<tr><th scope="row">${label}</th>${Array.from({ length: span }, () => html`<td class="opt"></td>`)}<td class="number lead">${money(amount, currency)}</td><td></td><td></td></tr>`;
  return box({
    title: "Who pays",
    links,
    body: table({
      label: "Who pays",
      kind: "two",
      caption: "Cost by team; all rows add up to the total of the bill",
      heads: [
        "Team",
        ...(hasCenters ? [html`<th scope="col" class="opt">Cost centre</th>`] : []),
        ...(hasTraces ? [html`<th scope="col" class="number opt">Traces</th>`] : []),
        ...(currency === undefined ? [] : [numberHead(currency)]),
        "Share",
        numberHead(`vs ${monthTitle(monthBefore(month)).split(" ")[0]}`),
      ],
      rows: [
        ...rows,
        ...(added.length === 0
          ? []
          : [
              sum(
                "Entered by hand, not divided",
                added.reduce((all, { cost }) => all + amountOf(cost ?? "0"), 0n),
              ),
            ]),
      ],
      ...(total && { foot: sum("Total", total.cost) }),
    }),
  });
}

async function folded(db: Database, of: BillOf, closed: Close | undefined): Promise<Html> {
  const { source, month, bill, look, requested, masked } = of;
  const fold = (title: string, body: Html, id?: string) =>
    html`<details class="card" ${id !== undefined && html`id="${id}"`}><summary><h2>${title}</h2></summary>${body}</details>`;
  const changes = await changesOfMonth(db, { source: source.source, month });
  const others = otherLines(bill);
  return html`${look !== undefined && requested !== undefined && look.open.length > 0 && fold("Next steps as commands", nextSteps(look, requested, of.nameOf))}
    ${closed !== undefined && fold("Close history", await history(db, of, closed), "history")}
    ${(others !== undefined || (look?.others.length ?? 0) > 0) && fold("Other usage", html`${others}${look !== undefined && look.others.length > 0 && otherUsage(look.others)}`)}
    ${look !== undefined && fold("Totals of the billing provider", html`<p>${prose(capital(describeProviderMonth(look.provider)))}</p><p><a href="${address("/differences", { source: source.source, says: "total" })}">Totals that differ</a></p>`)}
    ${
      changes.length > 0 &&
      fold(
        "Changes of settings",
        html`<ul>${describeLoggedChanges(changes).map((one) => html`<li>${prose(one)}</li>`)}</ul>
        <p class="quiet">From the platform's audit log. <a href="${address("/timeline", { source: source.source, kind: "platform_change" })}">Who made them</a></p>`,
      )
    }
    <p class="back"><a href="${address("/months", { source: source.source })}">All bills</a> · <a href="${address("/invoices", { source: source.source })}">Invoices</a>${masked && " "}</p>`;
}

async function history(
  db: Database,
  { source, month, masked, nameOf }: BillOf,
  closed: Close,
): Promise<Html> {
  const range = { source: source.source, ...daysOfMonth(month) };
  const adjustments = await adjustmentsOf(db, { closeId: closed.closeId, most: MOST, masked });
  return html`<dl class="facts">
      <dt>Closed</dt><dd>${shortDay(closed.closedAt)}${closer(closed, masked)}</dd>
      <dt>Traces</dt><dd>${count(closed.traces)}</dd>
      <dt>Left out</dt><dd>${closed.without.length === 0 ? "none" : html`<ul>${closed.without.map((id) => html`<li>${name(nameOf(id))}</li>`)}</ul>`}</dd>
      <dt>Accepted</dt><dd>${closed.accepted === 0 ? "none" : html`${count(closed.accepted)} daily figures that differ: <a href="${address("/differences", range)}">both numbers</a>`}</dd>
      <dt>Final after</dt><dd>${closed.settleAfterSeconds / 86_400} days</dd>
    </dl>
    ${adjustmentTable(adjustments)}
    ${adjustments.totals + adjustments.others.length > 0 && html`<p><a href="${address("/differences", { ...range, says: "restatement" })}">When each change came</a></p>`}
    ${closed.costsClosedAt !== null && (await closedCostTable(db, { closeId: closed.closeId, sourceId: source.sourceId, monthStart: month.start }))}`;
}

function otherUsage(others: readonly KnownUsage[]): Html {
  const days = (one: KnownUsage, number: number) =>
    html`<td class="number">${(one.state === "checked" || number > 0) && count(number)}</td>`;
  const rows = withFigures(others);
  return html`${describeAbsent(others).map((one) => html`<p>${prose(one)}</p>`)}${
    rows.length > 0 &&
    table({
      label: "Other meters",
      caption: "Other meters, in daily figures",
      heads: [
        "Meter",
        "Checked at close",
        numberHead("Final"),
        numberHead("Compared"),
        numberHead("Differences"),
      ],
      rows: rows.map(
        (
          one,
        ) => html`<tr><th scope="row">${capital(METER_NAME[one.meter])}</th><td>${one.state === "checked" ? "Yes" : closeDoes(one)}</td>
        ${[one.finalDays, one.reconciledDays, one.differences].map((number) => days(one, number))}</tr>`,
      ),
    })
  }`;
}
