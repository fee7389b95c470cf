import { counted } from "../../core/base/printable.ts";
import { daysText } from "../../core/domain/months/month.ts";
import { daysBetween } from "../../core/domain/time/days.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { type Amount, amountDrawn, amountShown, roundedParts } from "../../core/domain/usage/amount.ts";
import type { ShownKey } from "../../core/store/catalog/listed-keys.ts";
import { type ChartPoint, MOST_PARTS, sparkline, timeChart, UNUSUAL_NOTE } from "../../web/chart.ts";
import {
  address,
  badge,
  capital,
  count,
  fact,
  type Html,
  html,
  instant,
  joined,
  money,
  name,
  notice,
  numberHead,
  otherId,
  percent,
  plainName,
  scroll,
  sign,
  table,
  UNPROVED,
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

export function headline(report: Report, { asClosed = false } = {}): Html {
  const { total, question } = report;
  const { range, ended, before } = question;
  const without = ended.to < range.to ? "without today, " : "";
  const change = total.isComparable
    ? html`<br><small>${changeOf(total)} ${without}against ${daysText(before)}</small>`
    : "";
  return fact(
    measureOf(report),
    html`<strong class="headline">${figureShown(total.sum, report)}</strong> ${asClosed && total.sum.isComplete ? AS_CLOSED : stateBadge(total.sum)}${change}`,
  );
}

const AS_CLOSED = sign("ok", "■", "as closed");

function numberCell(figure: Figure, report: Report, rounded?: Amount): Html {
  return html`<td class="number">${figureShown(figure, report, rounded)}</td>`;
}

/** Costs in whole cents that add up to the rounded total. Counts, and lines that are not the whole table, stay as they are. */
function inCents(figures: readonly (Figure | undefined)[], of: Report): (Amount | undefined)[] {
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
  const since = before.from < before.to ? html`<br><small>since ${daysText(before)}${without}</small>` : "";
  const hasRest = lines.some(({ kind }) => kind === "rest");
  const word = stateWord(total.sum);
  // If the total and all lines are final, the state is shown once.
  const isAlike = total.sum.isFinal && lines.every(({ sum }) => stateWord(sum) === word);
  const ofUnit = beside.length === 0 ? "" : ` of ${unitOf(report)}`;
  const own = inCents(
    lines.map(({ sum }) => sum),
    report,
  );
  const others = beside.map((other) => othersShown(report, other));
  const isFound = find === undefined || lines.some(({ kind }) => kind === "id");
  return html`${(hasRest || find !== undefined) && findForm(question, one)}
  ${!isFound && notice("info", `No ${one} has “${find}” in its name.`)}${table({
    kind: "usage-ids",
    label: `By ${one}`,
    caption: `By ${one}, ${daysText(range)}${isAlike ? `. All of it: ${word}` : ""}`,
    heads: [
      capital(one),
      sortedHead(question, "amount", html`${measureOf(report)}`),
      ...(isAlike ? [] : ["State"]),
      ...beside.map((one) => numberHead(`${measureOf(one)}${asClosed ? ", as closed" : ""}`)),
      numberHead(`Share${ofUnit}`, "spare"),
      sortedHead(question, "growth", html`Change${ofUnit}`, since),
      html`<th scope="col" class="trend">Trend</th>`,
    ],
    rows: lines.map((line, n) =>
      idRow(line, report, { isAlike, n, rounded: own[n], beside: others.map((column) => column[n] ?? "") }),
    ),
    foot: idRow(total, report, {
      isAlike,
      beside: beside.map((other) => figureShown(other.total.sum, other)),
    }),
  })}`;
}

function sortedHead(question: Question, sort: Question["sort"], label: Html, below: Html | "" = ""): Html {
  if (question.sort === sort)
    return html`<th scope="col" class="number" aria-sort="descending">${label} <span aria-hidden="true">↓</span>${below}</th>`;
  const title = sort === "growth" ? "Sort by growth" : "Sort by amount";
  return html`<th scope="col" class="number"><a href="${addressOf(question, { sort })}" title="${title}">${label}</a>${below}</th>`;
}

function idRow(
  line: Line,
  report: Report,
  given: { isAlike: boolean; n?: number; rounded?: Amount | undefined; beside: readonly (Html | "")[] },
): Html {
  const { isAlike, n, rounded, beside } = given;
  const colour = n === undefined ? "" : html`<span class="swatch ${colourOf(line, n)}"></span> `;
  const figure = html`${numberCell(line.sum, report, rounded)}${!isAlike && html`<td>${stateBadge(line.sum)}</td>`}`;
  return html`<tr><th scope="row">${colour}${titleOf(line, report)}</th>${figure}${beside.map((one) => html`<td class="number">${one}</td>`)}<td class="number spare">${percent(line.share)}</td><td class="number">${growthOf(line, report)}${changeOf(line)}</td>
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

function colourOf({ kind }: Line, n: number): string {
  if (kind === "none") return "none";
  return kind === "id" && n < MOST_PARTS ? `s${n + 1}` : "rest";
}

function titleOf(line: Line, report: Report): Html {
  const { question } = report;
  if (line.kind === "rest" && question.find === undefined) {
    const rows = rowsOf(question).find((one) => one > question.rows);
    const more =
      rows === undefined
        ? ""
        : html` <a href="${addressOf(question, { rows: String(rows) })}">Show ${rows}</a>`;
    return html`${lineTitle(line, question)}${more}`;
  }
  if (line.kind !== "id" || line.id === null) return html`${lineTitle(line, question)}`;
  const shown = name(line.name ?? line.id);
  const id = line.name === null || line.name === line.id ? "" : html` ${otherId(line.id)}`;
  if (question.by === "owner") {
    const to = address("/owners", {
      source: question.source.slug,
      month: question.requested.from.slice(0, 7),
      owner: line.id,
    });
    // An owner's name is the cost centre.
    return html`<a href="${to}">${name(line.id)}</a>${line.name !== null && html` <small>${name(line.name)}</small>`}`;
  }
  if (question.by !== "workspace") return html`${shown}${id}${keyFacts(report.keys.get(line.id))}`;
  return html`<a href="${addressOf(question, { workspace: line.id, by: "project", find: undefined })}">${shown}</a>${id}`;
}

function keyFacts(key: ShownKey | undefined): Html | "" {
  if (key === undefined) return "";
  const { lastUsedAt, expiresAt, createdBy } = key;
  const facts = [
    lastUsedAt !== null && html`last used ${instant(lastUsedAt)}`,
    expiresAt !== null && html`expires ${instant(expiresAt)}`,
    createdBy !== null && html`created by ${name(createdBy)}`,
  ].filter((fact) => fact !== false);
  return facts.length === 0 ? "" : html` <small>${joined(facts)}</small>`;
}

function growthOf({ isComparable, compared, before }: Line, { question }: Report): Html | "" {
  const growth = compared - before.amount;
  if (!isComparable || growth === 0n) return "";
  const size = growth < 0n ? -growth : growth;
  return html`<span class="spare">${growth < 0n ? "−" : "+"}${question.measure === "cost" ? money(size) : amountShown(size)} </span>`;
}

function changeOf({ isComparable, change, before, compared }: Line): Html {
  if (!isComparable)
    return html`<span class="none" title="only where this range and the earlier one are complete">–</span>`;
  if (change === null) return html`${compared === 0n ? "no usage in both" : "new"}`;
  return html`<span title="before: ${amountShown(before.amount)}">${percent(change, { signed: true })}</span>`;
}

const SIGNS = {
  "under way": ["◔", "provisional", "it grows until its time ends"],
  "final, not proved": [
    UNPROVED.glyph,
    "unproved",
    "it changes only by a restatement, and is not compared with the export or totals yet",
  ],
  "no price": [
    "○",
    "missing",
    "some of its usage has no price, or its month was closed without the cost of it",
  ],
  "final and proved": ["●", "ok", "it changes only by a restatement, and equals the export or totals"],
} as const;

function stateBadge(figure: Figure): Html {
  const word = stateWord(figure);
  if (word === "missing" || word === "provisional") return badge(word);
  const [glyph, kind, about] = SIGNS[word];
  return html`<span class="status ${kind}" title="${about}"><span aria-hidden="true">${glyph}</span> <span class="word">${word}</span></span>`;
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
  const { range, before } = question;
  const unit = unitOf(report);
  const label = `${capital(unit)} per ${question.per}, ${daysText(range)}`;
  const parts = lines.flatMap((line, n) => {
    const kind = colourOf(line, n);
    const name = line.kind === "id" ? plainName(line.name ?? line.id ?? "") : lineTitle(line, question);
    return kind === "rest"
      ? []
      : [{ kind, name, values: line.trend.map(({ amount }) => amountDrawn(amount)) }];
  });
  const isWeeks = question.per === "day" && buckets.length >= 2 * WEEK;
  const shift = isWeeks ? toSameWeekday(before.from, range.from) : 0;
  const isOpen = total.trend.some(({ isComplete, isFinal }) => isComplete && !isFinal);
  const notes = [
    isOpen && html`<li><span class="swatch s1 open"></span> hatched: provisional, it may still change</li>`,
    total.trend.some(({ isComplete, amount }) => !isComplete && amount !== 0n) &&
      html`<li><span aria-hidden="true">▵</span> at least: a part is not loaded</li>`,
    lines.some((line, n) => colourOf(line, n) === "rest" && line.sum.amount !== 0n) &&
      html`<li><span class="swatch rest"></span> all others</li>`,
    restated.size > 0 &&
      html`<li><span class="restated" aria-hidden="true">▾</span> a count of it changed when it was final (<a href="${address("/differences", { source: question.source.slug, says: "restatement" })}">which</a>)</li>`,
    buckets.some(({ at }) => unusual.has(at)) && UNUSUAL_NOTE,
    trendBefore.length > 0 &&
      html`<li><span class="swatch ghost"></span> grey line: ${daysText(before)}${shift !== 0 && `, moved by ${counted(Math.abs(shift), "day")} so that weekdays match`}</li>`,
  ].filter((note) => note !== false);
  const chart = timeChart({
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
    zoom: addressOf(question, { from: undefined, to: undefined, per: undefined, against: undefined }),
    end: range.to,
    width: 960,
    height: 260,
    label,
    unit,
    isMoney: question.measure === "cost",
  });
  return html`<p class="quiet">${label}</p>${scroll(label, chart)}
    ${notes.length > 0 && html`<ul class="chart-notes">${notes}</ul>`}
    <details class="figures"><summary>The figures of this chart</summary>
    ${table({
      label: "Figures of the chart",
      caption: label,
      heads: [capital(question.per), numberHead(capital(unit)), "State"],
      rows: buckets.map(({ at }, n) => {
        const figure = total.trend[n] as Figure;
        return html`<tr><th scope="row">${bucketShown(at, question.per)}</th>${numberCell(figure, report)}<td>${stateBadge(figure)}</td></tr>`;
      }),
    })}</details>
    <script type="module" src="/assets/chart.js"></script>`;
}

const WEEK = 7;

function toSameWeekday(first: string, second: string): number {
  const later = daysBetween({ from: first, to: second }) % WEEK;
  return later > WEEK / 2 ? later - WEEK : later;
}

export function lineTitle({ kind, ids }: Line, question: Pick<Question, "by" | "measure">): string {
  const one = idWord(question);
  if (kind === "none") return `Without ${one === "API key" || one === "owner" ? "an" : "a"} ${one}`;
  if (kind === "adjustment") return "Changed since the close";
  if (kind === "unloaded") return `Not loaded by ${one}`;
  if (kind === "rest") return `The rest: ${counted(ids, one)}`;
  return kind === "total" ? "Total" : "";
}

/** If a part is missing, shows the loaded amount, but never zero. */
export function figureShown(figure: Figure, { question }: Report, rounded = figure.amount): Html {
  const shown =
    question.measure === "cost"
      ? money(rounded, question.currency, figure.amount)
      : html`${amountShown(figure.amount)}`;
  if (figure.isComplete) return html`${shown}${figure.isUnderWay && " so far"}`;
  if (figure.amount === 0n) return html`${figure.isUnpriced ? "no price" : "not loaded"}`;
  return html`at least ${shown}`;
}

export function stateWord({
  isComplete,
  isFinal,
  isProved,
  isUnderWay,
  isUnpriced = false,
}: Figure): "no price" | "missing" | "under way" | "provisional" | "final, not proved" | "final and proved" {
  if (isUnpriced) return "no price";
  if (!isComplete) return "missing";
  if (isUnderWay) return "under way";
  if (!isFinal) return "provisional";
  return isProved ? "final and proved" : "final, not proved";
}

const MOST_NAMED = 6;

export function intervalsShown(intervals: readonly Interval[]): string {
  const named = intervals.slice(0, MOST_NAMED).map(rangeText);
  const left = intervals.length - named.length;
  return named.join(", ") + (left > 0 ? ` and ${left} more parts` : "");
}
