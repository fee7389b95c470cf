import { counted } from "../../core/base/printable.ts";
import { daysTitle } from "../../core/domain/months/month.ts";
import {
  FIGURE_STATUS,
  type FigureStatus,
  figureStatus,
  MONTH_STATUS,
} from "../../core/domain/proof/statuses.ts";
import { type Days, dayOf, daysBetween } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { type Amount, amountDrawn, amountShown, roundedParts } from "../../core/domain/usage/amount.ts";
import type { ShownKey } from "../../core/store/catalog/listed-keys.ts";
import {
  type ChartPoint,
  chartKeys,
  chartLegend,
  MOST_PARTS,
  sparkline,
  timeChart,
} from "../../web/chart.ts";
import {
  address,
  box,
  capital,
  change,
  count,
  type Html,
  html,
  instant,
  joined,
  type Kpi,
  money,
  name,
  notice,
  numberHead,
  otherId,
  pill,
  plainName,
  share,
  sortHead,
  table,
} from "../../web/parts.ts";
import { rangeText } from "../../web/query.ts";
import { bucketShown } from "../export/table-file.ts";
import { addressOf, COUNTED_WORDS, findForm, idWord, type Question, rowsOf } from "./question.ts";
import type { Figure, Line, Report } from "./report.ts";

export function unitOf({ question: { measure, currency } }: Report): string {
  return measure === "cost" ? (currency ?? "") : COUNTED_WORDS[measure];
}

function measureOf(report: Report): string {
  return report.question.measure === "cost" ? `Estimated cost, ${unitOf(report)}` : capital(unitOf(report));
}

/** The card of a total. `figure`: another one in its place. */
export function headline(
  report: Report,
  {
    asClosed = false,
    figure = report.total.sum,
    note,
    isStated = true,
  }: { asClosed?: boolean; figure?: Figure; note?: Html | string; isStated?: boolean } = {},
): Kpi {
  const { total, question } = report;
  const { range, ended, before } = question;
  const without = ended.to < range.to ? ", without today" : "";
  const status =
    asClosed && figure.isComplete ? pill({ ...MONTH_STATUS.closed, word: "As closed" }) : stateBadge(figure);
  return {
    label: question.measure === "cost" ? "Estimated cost" : measureOf(report),
    value: figureShown(figure, report),
    ...(question.measure === "cost" && { unit: unitOf(report) }),
    note: html`${isStated && status}${total.isComparable && html`<span>${change(total.change)} vs ${daysTitle(before)}${without}</span>`}${note}`,
  };
}

function numberCell(figure: Figure, report: Report): Html {
  return html`<td class="number">${figureShown(figure, report)}</td>`;
}

/** Costs in whole cents that add up to the rounded total. Counts, and lines that are not the whole table, stay as they are. */
export function inCents(figures: readonly (Figure | undefined)[], of: Report): (Amount | undefined)[] {
  const { question, total } = of;
  const amounts = figures.map((figure) => figure?.amount ?? 0n);
  const left = amounts.reduce((rest, amount) => rest - amount, total.sum.amount);
  const isCut = left <= amounts.length && left >= -amounts.length;
  if (question.measure !== "cost" || question.currency === undefined || !isCut)
    return figures.map((figure) => figure?.amount);
  return roundedParts(question.currency, amounts, total.sum.amount);
}

export function idTable(report: Report, beside: readonly Report[] = [], { asClosed = false } = {}): Html {
  const { question, lines, total } = report;
  const { range, ended, before, find } = question;
  const one = idWord(question);
  const without = ended.to < range.to ? ", without today" : "";
  const hasRest = lines.some(({ kind }) => kind === "rest");
  const status = statusOf(total.sum);
  // If the total and all lines have one status, it is shown once.
  const isAlike = total.sum.isFinal && lines.every(({ sum }) => statusOf(sum) === status);
  const ofUnit = beside.length === 0 ? "" : ` of ${unitOf(report)}`;
  const own = inCents(
    lines.map(({ sum }) => sum),
    report,
  );
  const others = beside.map((other) => othersShown(report, other));
  const isFound = find === undefined || lines.some(({ kind }) => kind === "id");
  const since = before.from < before.to;
  return html`${(hasRest || find !== undefined) && findForm(question, one)}
  ${!isFound && notice("info", `No ${one} has “${find}” in its name.`)}${table({
    kind: "two",
    id: "table",
    label: `By ${one}`,
    caption: `By ${one}, ${daysTitle(range)}${isAlike ? `. All: ${FIGURE_STATUS[status].word}` : ""}`,
    heads: [
      capital(one),
      sortedHead(question, "amount", html`${measureOf(report)}`),
      ...(isAlike ? [] : [html`<th scope="col" class="opt">Status</th>`]),
      ...beside.map((one) => numberHead(`${measureOf(one)}${asClosed ? ", as closed" : ""}`, "opt")),
      html`<th scope="col">Share${ofUnit}</th>`,
      ...(since
        ? [
            html`<th scope="col" class="number opt" title="${daysTitle(before)}${without}">${shortTitle(before)}</th>`,
          ]
        : []),
      sortedHead(question, "growth", html`Change${ofUnit}`),
      html`<th scope="col" class="trend">Trend</th>`,
    ],
    rows: lines.map((line, n) =>
      idRow(line, report, {
        isAlike,
        n,
        since,
        rounded: own[n],
        beside: others.map((column) => column[n] ?? ""),
      }),
    ),
    foot: idRow(total, report, {
      isAlike,
      since,
      beside: beside.map((other) => figureShown(other.total.sum, other)),
    }),
  })}`;
}

/** A range in the head of a column: `October`, or `1–28 Oct`. */
function shortTitle(range: Days): string {
  return daysTitle(range).replace(/ \d{4}$/, "");
}

function sortedHead(question: Question, by: "amount" | "growth", label: Html): Html {
  const [now, way] = question.sort.split("_");
  return sortHead(label, {
    sorted: now !== by ? undefined : way === "up" ? "ascending" : "descending",
    to: (order) => addressOf(question, { sort: order === "ascending" ? `${by}_up` : by }),
    kind: by === "growth" ? "change" : "",
  });
}

function idRow(
  line: Line,
  report: Report,
  given: {
    isAlike: boolean;
    n?: number;
    since: boolean;
    rounded?: Amount | undefined;
    beside: readonly (Html | "")[];
  },
): Html {
  const { isAlike, n, since, rounded, beside } = given;
  const colour = n === undefined ? "" : html`<span class="swatch ${colourOf(report.lines, n)}"></span> `;
  const { before } = line;
  return html`<tr><th scope="row">${colour}${titleOf(line, report)}</th><td class="number lead">${figureShown(line.sum, report, rounded)}</td>${!isAlike && html`<td class="opt">${stateBadge(line.sum)}</td>`}${beside.map((one) => html`<td class="number opt">${one}</td>`)}<td class="share">${share(line.share)}</td>${since && html`<td class="number opt">${before.isComplete ? figureShown(before, report) : count(null, "not loaded")}</td>`}<td class="number change">${changeOf(line)}</td>
    <td class="trend">${sparkline(pointsOf(line.trend, report))}</td></tr>`;
}

function othersShown({ lines }: Report, other: Report): Html[] {
  const figureOf = ({ kind, id, name }: Line) =>
    other.lines.find((one) => one.kind === kind && one.id === id && (kind !== "id" || one.name === name))
      ?.sum;
  const named = lines.filter(({ kind }) => kind !== "rest").map((one) => figureOf(one)?.amount ?? 0n);
  const rest = named.reduce((left, one) => left - one, other.total.sum.amount);
  const figures = lines.map((line) =>
    line.kind === "rest" ? { ...other.total.sum, amount: rest } : figureOf(line),
  );
  const rounded = inCents(figures, other);
  return figures.map((figure, n) =>
    figure === undefined ? html`${count(null, "nothing is known")}` : figureShown(figure, other, rounded[n]),
  );
}

/** The first five ids have a colour. What has no team or project never has one, so that it is the same everywhere. */
function colourOf(lines: readonly Line[], n: number): string {
  const before = lines.slice(0, n).filter(({ kind }) => kind === "id").length;
  return lines[n]?.kind === "id" && before < MOST_PARTS ? `s${before + 1}` : "rest";
}

function titleOf(line: Line, report: Report): Html {
  const { question } = report;
  if (line.kind === "rest" && question.find === undefined && line.ids > 0) {
    const rows = rowsOf(question).find((one) => one > question.rows);
    const more =
      rows === undefined
        ? ""
        : html` <a href="${addressOf(question, { rows: String(rows) })}#table">Show ${rows}</a>`;
    return html`${lineTitle(line, question)}${more}`;
  }
  if (line.kind !== "id" || line.id === null) return html`${lineTitle(line, question)}`;
  if (question.by === "owner") {
    const to = address("/owners", {
      source: question.source.slug,
      month: question.requested.from.slice(0, 7),
      owner: line.id,
    });
    // An owner's name is the cost centre.
    return html`<a href="${to}">${name(line.id)}</a>${second(line.name)}`;
  }
  const shown = name(line.name ?? line.id);
  const id = line.name === null || line.name === line.id ? "" : html` ${otherId(line.id)}`;
  if (question.by !== "workspace")
    return html`${shown}${question.by === "api_key" && id}${second(report.workspaceOf.get(line.id))}${keyFacts(report.keys.get(line.id))}`;
  return html`<a href="${addressOf(question, { workspace: line.id, by: "project", find: undefined })}">${shown}</a>`;
}

/** The second line of a name: its workspace or cost centre. */
function second(text: string | null | undefined): Html | "" {
  return text == null ? "" : html`<br><small>${name(text)}</small>`;
}

function keyFacts(key: ShownKey | undefined): Html | "" {
  if (key === undefined) return "";
  const { lastUsedAt, expiresAt, createdBy } = key;
  const facts = [
    lastUsedAt !== null && html`last used ${instant(lastUsedAt)}`,
    expiresAt !== null && html`expires ${instant(expiresAt)}`,
    createdBy !== null && html`created by ${name(createdBy)}`,
  ].filter((fact) => fact !== false);
  return facts.length === 0 ? "" : html`<br><small>${joined(facts)}</small>`;
}

function changeOf(line: Line): Html {
  const { isComparable, before, compared } = line;
  if (!isComparable) return change(null, "Needs two complete periods");
  if (line.change === null) return compared === 0n ? change(null, "No usage in either period") : html`new`;
  return change(line.change, `Before: ${amountShown(before.amount)}`);
}

export function statusOf(figure: Figure): FigureStatus {
  return figureStatus({ ...figure, isFinal: figure.isFinal && !figure.isUnderWay });
}

function stateBadge(figure: Figure): Html {
  return pill(FIGURE_STATUS[statusOf(figure)]);
}

function pointsOf(trend: readonly Figure[], { buckets }: Pick<Report, "buckets">): ChartPoint[] {
  return buckets.map(({ at }, n) => pointOf(at, trend[n] as Figure));
}

function pointOf(at: string, figure: Figure): ChartPoint {
  const drawn = amountDrawn(figure.amount);
  return figure.isComplete
    ? { at, value: drawn, isFinal: figure.isFinal }
    : { at, value: null, atLeast: drawn, isFinal: false };
}

export function trend(report: Report): Html {
  const { question, lines, total, buckets, trendBefore, restated, unusual } = report;
  const { range, before, measure, by } = question;
  const unit = unitOf(report);
  const label = `${capital(unit)} per ${question.per}, ${daysTitle(range)}`;
  const named = lines.flatMap((line, n) => {
    const kind = colourOf(lines, n);
    if (kind === "rest" && line.kind !== "none") return [];
    const name =
      line.kind === "id"
        ? plainName((by === "owner" ? line.id : (line.name ?? line.id)) ?? "")
        : lineTitle(line, question);
    return { kind, name, values: line.trend.map(({ amount }) => amountDrawn(amount)) };
  });
  const parts = named.toSorted((a, b) => Number(a.kind === "rest") - Number(b.kind === "rest"));
  const isWeeks = question.per === "day" && buckets.length >= 2 * WEEK;
  const shift = isWeeks ? toSameWeekday(before.from, range.from) : 0;
  const drawn = {
    points: pointsOf(total.trend, report).map((point) => ({
      ...point,
      isRestated: restated.has(point.at),
      unusual: unusual.get(point.at),
    })),
    parts: parts.length > 1 ? parts : [],
    before: buckets.map((_, n) => {
      const figure = trendBefore[n + shift];
      return figure === undefined ? { at: "", value: null, isFinal: true } : pointOf(figure.at, figure);
    }),
  };
  const chart = timeChart({
    ...drawn,
    zoom: addressOf(question, { from: undefined, to: undefined, per: undefined, against: undefined }),
    end: range.to,
    label,
    unit,
    isMoney: measure === "cost",
  });
  const others = lines.some(
    (line, n) =>
      line.sum.amount !== 0n &&
      line.kind !== "none" &&
      line.kind !== "total" &&
      colourOf(lines, n) === "rest",
  );
  return box({
    title: `${measure === "cost" ? "Cost" : capital(unit)} by ${idWord({ by, measure })}`,
    note: html`${unit} per ${question.per}`,
    links: chartLegend(
      chartKeys(drawn, {
        before: `${daysTitle(before)}${shift === 0 ? "" : ", aligned by weekday"}`,
        rest: others ? "All others" : undefined,
      }),
    ),
    body: html`${chart}<p class="quiet readout" aria-live="polite"></p>
    <details class="figures"><summary>Figures</summary>
    ${table({
      label: "Figures of the chart",
      caption: label,
      heads: [capital(question.per), numberHead(capital(unit)), "Status"],
      rows: buckets.map(({ at }, n) => {
        const figure = total.trend[n] as Figure;
        return html`<tr><th scope="row">${bucketShown(at, question.per)}</th>${numberCell(figure, report)}<td>${stateBadge(figure)}</td></tr>`;
      }),
    })}</details>
    <script type="module" src="/assets/chart.js"></script>`,
  });
}

const WEEK = 7;

export function toSameWeekday(first: string, second: string): number {
  const later = daysBetween({ from: first, to: second }) % WEEK;
  return later > WEEK / 2 ? later - WEEK : later;
}

export function lineTitle({ kind, ids }: Line, question: Pick<Question, "by" | "measure">): string {
  const one = idWord(question);
  if (kind === "none") return question.by === "owner" ? "No team" : `No ${one}`;
  if (kind === "adjustment") return "Changed since the close";
  if (kind === "unloaded") return `Not loaded by ${one}`;
  if (kind === "rest") return ids === 0 ? "No longer used" : `The rest: ${counted(ids, one)}`;
  return kind === "total" ? "Total" : "";
}

/** If a part is missing, shows the loaded amount, but never zero. */
export function figureShown(figure: Figure, { question }: Report, rounded = figure.amount): Html {
  const shown =
    question.measure === "cost"
      ? money(rounded, question.currency, figure.amount)
      : html`${amountShown(figure.amount)}`;
  if (figure.isComplete) return html`${shown}`;
  if (figure.amount === 0n) return html`${figure.isUnpriced ? "no price" : "not loaded"}`;
  return html`≥ ${shown}`;
}

const MOST_NAMED = 6;

export function intervalsShown(intervals: readonly Interval[]): string {
  const named = intervals
    .slice(0, MOST_NAMED)
    .map((one) =>
      one.start % DAY_MS === 0 && one.end % DAY_MS === 0
        ? daysTitle({ from: dayOf(one.start), to: dayOf(one.end) })
        : rangeText(one),
    );
  const left = intervals.length - named.length;
  return named.join(", ") + (left > 0 ? ` and ${left} more parts` : "");
}
