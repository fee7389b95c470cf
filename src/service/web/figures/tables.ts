import { daysText } from "../../../domain/months/month.ts";
import { addDays, type Days, daysBetween } from "../../../domain/time/days.ts";
import type { Interval } from "../../../domain/time/window.ts";
import { amountDrawn, amountShown, percentOf } from "../../../domain/usage/amount.ts";
import { bucketShown } from "../../../pipeline/export/table-file.ts";
import type { Database } from "../../../store/db/database.ts";
import { hourlyUsage } from "../../../store/figures/buckets.ts";
import type { UsageOf } from "../../../store/figures/records.ts";
import { type ChartPoint, MOST_PARTS, sparkline, timeChart, UNUSUAL_NOTE } from "../chart.ts";
import { rangeText } from "../coverage/query.ts";
import {
  address,
  badge,
  capital,
  count,
  type Html,
  html,
  idBeside,
  money,
  name,
  notice,
  numberHead,
  percent,
  plainName,
  sign,
  table,
  UNPROVED,
} from "../parts.ts";
import { bucketsOf, LoadedTime } from "./loaded-time.ts";
import { addressOf, COUNTED_WORDS, findForm, idWord, MOST_DAYS, type Question, rowsOf } from "./question.ts";
import type { Figure, Line, Report } from "./report.ts";

/** What the figures are counts of. */
export function unitOf({ question: { measure, currency } }: Report): string {
  return measure === "cost" ? (currency ?? "") : COUNTED_WORDS[measure];
}

/** The whole of a report, with what it can claim and how it changed. `asClosed`: costs of a closed month, which stay. */
export function headline(report: Report, { asClosed = false } = {}): Html {
  const { total, question } = report;
  const { range, ended, before } = question;
  const without = ended.to < range.to ? "without today, " : "";
  const what = question.measure === "cost" ? `Estimated cost, ${unitOf(report)}` : capital(unitOf(report));
  const change = total.isComparable
    ? html`<br><small>${changeOf(total)} ${without}against ${daysText(before)}${perDay(report)}</small>`
    : "";
  return html`<div><dt>${what}</dt><dd><strong class="headline">${figureShown(total.sum, report)}</strong> ${asClosed && total.sum.isComplete ? AS_CLOSED : stateBadge(total.sum)}${change}</dd></div>`;
}

const AS_CLOSED = sign("ok", "■", "as closed");

/** The change of the average day, where one range has more days than the other. */
function perDay({ total, question }: Report): string {
  const [days, daysBefore] = [daysBetween(question.ended), daysBetween(question.before)];
  if (days === daysBefore) return "";
  const [now, before] = [total.compared * BigInt(daysBefore), total.before.amount * BigInt(days)];
  const change = percentOf(now - before, before);
  return change === null ? "" : `, which has ${daysBefore} days: ${percent(change, { signed: true })} a day`;
}

function numberCell(figure: Figure, report: Report): Html {
  return html`<td class="number">${figureShown(figure, report)}</td>`;
}

/** By how much a figure is more than an earlier one, where both are whole. */
export function changeSince(before: Figure | undefined, figure: Figure): string {
  const isWhole = before?.isComplete === true && figure.isComplete && !figure.isUnderWay;
  return percent(isWhole ? percentOf(figure.amount - before.amount, before.amount) : null, { signed: true });
}

/** The ids of a range: the first ones, those without an id, the rest and the total. `costs`: of the same ids, in a column beside. */
export function idTable(report: Report, costs?: Report, { asClosed = false } = {}): Html {
  const { question, lines, total } = report;
  const { range, ended, before, find } = question;
  const one = idWord(question);
  const without = ended.to < range.to ? ", without today" : "";
  const since = before.from < before.to ? html`<br><small>since ${daysText(before)}${without}</small>` : "";
  const hasRest = lines.some(({ kind }) => kind === "rest");
  const word = stateWord(total.sum);
  // What is final of all lines is said once. Of another state, a part may be final.
  const isAlike = total.sum.isFinal && lines.every(({ sum }) => stateWord(sum) === word);
  const ofTraces = costs === undefined ? "" : ` of ${unitOf(report)}`;
  const isFound = find === undefined || lines.some(({ kind }) => kind === "id");
  return html`${hasRest || find !== undefined ? findForm(question, one) : ""}
  ${isFound ? "" : notice("info", `No ${one} has “${find}” in its name.`)}${table({
    kind: "usage-ids",
    label: `By ${one}`,
    caption: `By ${one}, ${daysText(range)}${isAlike ? `. All of it: ${word}` : ""}`,
    heads: [
      capital(one),
      sortedHead(question, "amount", html`${capital(unitOf(report))}`),
      ...(isAlike ? [] : ["State"]),
      ...(costs === undefined
        ? []
        : [numberHead(`Estimated cost${asClosed ? " as closed" : ""}, ${unitOf(costs)}`)]),
      numberHead(`Share${ofTraces}`, "spare"),
      sortedHead(question, "growth", html`Change${ofTraces}`, since),
      html`<th scope="col" class="course">Course</th>`,
    ],
    rows: lines.map((line, n) => idRow(line, report, { isAlike, n, costs })),
    foot: idRow(total, report, { isAlike, costs }),
  })}`;
}

/** The head of a column by which the ids can be sorted. */
function sortedHead(question: Question, sort: Question["sort"], label: Html, below: Html | "" = ""): Html {
  if (question.sort === sort)
    return html`<th scope="col" class="number" aria-sort="descending">${label} <span aria-hidden="true">↓</span>${below}</th>`;
  const title = sort === "growth" ? "Sort by what grew most" : "Sort by what there is most of";
  return html`<th scope="col" class="number"><a href="${addressOf(question, { sort })}" title="${title}">${label}</a>${below}</th>`;
}

/** `n`: its place among the lines, by which it has the colour of its part of the chart. */
function idRow(
  line: Line,
  report: Report,
  { isAlike, n, costs }: { isAlike: boolean; n?: number; costs: Report | undefined },
): Html {
  const colour = n === undefined ? "" : html`<span class="swatch ${colourOf(line, n)}"></span> `;
  const figure = html`${numberCell(line.sum, report)}${isAlike ? "" : html`<td>${stateBadge(line.sum)}</td>`}`;
  return html`<tr><th scope="row">${colour}${titleOf(line, report)}</th>${figure}${costs === undefined ? "" : html`<td class="number">${costShown(line, report, costs)}</td>`}<td class="number spare">${percent(line.share)}</td><td class="number">${growthOf(line, report)}${changeOf(line)}</td>
    <td class="course">${sparkline(pointsOf(line.course, report))}</td></tr>`;
}

/** What the ids of a line cost: those of the rest, what the others leave of the total. */
function costShown(line: Line, { lines }: Report, costs: Report): Html {
  if (line.kind === "total") return figureShown(costs.total.sum, costs);
  const costOf = ({ kind, id }: Line) => costs.lines.find((one) => one.kind === kind && one.id === id)?.sum;
  const named = lines.filter(({ kind }) => kind !== "rest").map((one) => costOf(one)?.amount ?? 0n);
  const rest = named.reduce((left, one) => left - one, costs.total.sum.amount);
  const own = line.kind === "rest" ? { ...costs.total.sum, amount: rest } : costOf(line);
  return own === undefined ? count(null, "no cost is known") : figureShown(own, costs);
}

/** The colour of a line in the chart: the first ids and what has no id are told apart, the other lines together are the rest. */
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
  const id = line.name === null || line.name === line.id ? "" : html` ${idBeside(line.id)}`;
  if (question.by !== "workspace") return html`${shown}${id}`;
  return html`<a href="${addressOf(question, { workspace: line.id, by: "project", find: undefined })}">${shown}</a>${id}`;
}

/** By how much it grew, before how much that is of what it was. */
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

/** Where a figure stands: as sign and word. */
export function stateBadge(figure: Figure): Html {
  const word = stateWord(figure);
  if (word === "missing" || word === "provisional") return badge(word);
  const [glyph, kind, about] = SIGNS[word];
  return html`<span class="status ${kind}" title="${about}"><span aria-hidden="true">${glyph}</span> <span class="word">${word}</span></span>`;
}

function pointsOf(course: readonly Figure[], { buckets }: Pick<Report, "buckets">): ChartPoint[] {
  return buckets.map(({ at }, n) => pointOf(at, course[n] as Figure));
}

function pointOf(at: string, figure: Figure): ChartPoint {
  const drawn = amountDrawn(figure.amount);
  return figure.isComplete
    ? { at, value: drawn, isFinal: figure.isFinal }
    : { at, value: null, atLeast: drawn, isFinal: false };
}

/** The course of the total as bars of the first lines, beside that of the earlier range, and the same figures as a table. */
export function course(report: Report): Html {
  const { question, lines, total, buckets, courseBefore, restated, unusual } = report;
  const { range, before } = question;
  const unit = unitOf(report);
  const label = `${capital(unit)} per ${question.per}, ${daysText(range)}`;
  const parts = lines.flatMap((line, n) => {
    const kind = colourOf(line, n);
    const name = line.kind === "id" ? plainName(line.name ?? line.id ?? "") : lineTitle(line, question);
    return kind === "rest"
      ? []
      : [{ kind, name, values: line.course.map(({ amount }) => amountDrawn(amount)) }];
  });
  const isWeeks = question.per === "day" && buckets.length >= 2 * WEEK;
  const shift = isWeeks ? toSameWeekday(before.from, range.from) : 0;
  const isOpen = total.course.some(({ isComplete, isFinal }) => isComplete && !isFinal);
  const notes = [
    ...(isOpen
      ? [html`<li><span class="swatch open"></span> hatched: provisional, it may still change</li>`]
      : []),
    ...(total.course.some(({ isComplete, amount }) => !isComplete && amount !== 0n)
      ? [html`<li><span aria-hidden="true">▵</span> at least: a part is not loaded</li>`]
      : []),
    ...(lines.some((line, n) => colourOf(line, n) === "rest" && line.sum.amount !== 0n)
      ? [html`<li><span class="swatch rest"></span> all others</li>`]
      : []),
    ...(restated.size === 0
      ? []
      : [
          html`<li><span class="restated" aria-hidden="true">▾</span> a count of it changed when it was final (<a href="${address("/differences", { source: question.source.slug, says: "restatement" })}">which</a>)</li>`,
        ]),
    ...(buckets.some(({ at }) => unusual.has(at)) ? [UNUSUAL_NOTE] : []),
    ...(courseBefore.length === 0
      ? []
      : [
          html`<li><span class="swatch ghost"></span> grey line: ${daysText(before)}${shift === 0 ? "" : `, moved by ${Math.abs(shift)} ${Math.abs(shift) === 1 ? "day" : "days"} so that weekdays match`}</li>`,
        ]),
  ];
  return html`<p class="quiet">${label}</p><div class="scroll" role="region" tabindex="0" aria-label="${label}">
      ${timeChart({
        points: pointsOf(total.course, report).map((point) => ({
          ...point,
          isRestated: restated.has(point.at),
          unusual: unusual.get(point.at),
        })),
        parts: parts.length > 1 ? parts : [],
        before: buckets.map((_, n) => {
          const figure = courseBefore[n + shift];
          return figure === undefined ? { at: "", value: null, isFinal: true } : pointOf(figure.at, figure);
        }),
        zoom: addressOf(question, { from: undefined, to: undefined, per: undefined, against: undefined }),
        end: range.to,
        width: 960,
        height: 260,
        label,
        unit,
        isMoney: question.measure === "cost",
      })}
    </div>
    ${notes.length === 0 ? "" : html`<ul class="chart-notes">${notes}</ul>`}
    <details class="figures"><summary>The figures of this chart</summary>
    ${table({
      label: "Figures of the chart",
      caption: label,
      heads: [capital(question.per), numberHead(capital(unit)), "State"],
      rows: buckets.map(({ at }, n) => {
        const figure = total.course[n] as Figure;
        return html`<tr><th scope="row">${bucketShown(at, question.per)}</th>${numberCell(figure, report)}<td>${stateBadge(figure)}</td></tr>`;
      }),
    })}</details>
    <script type="module" src="/assets/chart.js"></script>`;
}

const WEEK = 7;

/** By how many days, at most three, the first day moves to be the weekday of the second. */
function toSameWeekday(first: string, second: string): number {
  const later = daysBetween({ from: first, to: second }) % WEEK;
  return later > WEEK / 2 ? later - WEEK : later;
}

const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"] as const;
/** Classes of colour; the figure stands in the cell too. */
const SHADES = 6;

interface Cell {
  /** Traces of its hours that are loaded. */
  readonly traces: number;
  readonly loaded: number;
  /** Hours that have ended. */
  readonly hours: number;
}

export interface HeatMap {
  readonly range: Days;
  /** By weekday, Monday first, then hour. */
  readonly cells: readonly (readonly Cell[])[];
}

/** Traces of all workspaces by weekday and hour (UTC), over the last days of the range. */
export async function heatMapOf(
  db: Database,
  question: Question,
  { now }: { now: number },
): Promise<HeatMap> {
  const { source, range, workspace } = question;
  const of: UsageOf = {
    sourceId: source.sourceId,
    source: source.slug,
    by: "workspace",
    workspaceId: workspace?.key ?? null,
    byHours: false,
  };
  const days = Math.min(MOST_DAYS.hour, daysBetween(range));
  const shown = { from: addDays(range.to, -days), to: range.to };
  const { totals, loaded } = await hourlyUsage(db, of, shown);
  const traces = new Map(totals.map((one) => [one.bucket, one.traces]));
  const time = new LoadedTime(loaded, { now, per: "hour" });
  const cells = WEEKDAYS.map(() => Array.from({ length: 24 }, () => ({ traces: 0, loaded: 0, hours: 0 })));
  for (const bucket of bucketsOf(shown, "hour")) {
    const { isComplete, isUnderWay } = time.stateOf(bucket);
    if (isUnderWay) continue;
    const at = new Date(bucket.start);
    const cell = cells[(at.getUTCDay() + 6) % 7]?.[at.getUTCHours()];
    if (cell === undefined) continue;
    cell.hours++;
    if (!isComplete) continue;
    cell.loaded++;
    cell.traces += traces.get(bucket.at) ?? 0;
  }
  return { range: shown, cells };
}

/** As a table: each cell has the average of its loaded hours, and a shade. Hours that are not loaded are not zero. */
export function heatMap({ range, cells }: HeatMap): Html {
  const most = Math.max(...cells.flat().map((cell) => averageOf(cell) ?? 0));
  const sum = (of: (cell: Cell) => number) => cells.flat().reduce((all, cell) => all + of(cell), 0);
  const [loaded, hours] = [sum((cell) => cell.loaded), sum((cell) => cell.hours)];
  if (loaded === 0) {
    return html`<h2>Hours of the week</h2>
    <p class="quiet">No hour of ${daysText(range)} is loaded for all workspaces. Hours are kept up to date for USAGE_HOURLY_FOR; a backfill with the stride hour loads older ones.</p>`;
  }
  return html`<h2>Hours of the week</h2>
    <p class="quiet">${loaded.toLocaleString("en-US")} of ${hours.toLocaleString("en-US")} hours are loaded for all workspaces. Only these count.</p>
    ${table({
      kind: "heat",
      label: "Hours of the week",
      caption: `Traces per hour of all workspaces by weekday and hour, on average, ${daysText(range)}`,
      heads: ["Day", ...Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, "0"))],
      rows: WEEKDAYS.map(
        (day, n) =>
          html`<tr><th scope="row">${day}</th>${cells[n]?.map((cell) => heatCell(cell, most))}</tr>`,
      ),
    })}`;
}

function heatCell(cell: Cell, most: number): Html {
  const average = averageOf(cell);
  if (average === null)
    return html`<td class="heat-none" title="not loaded">–<span class="visually-hidden"> not loaded</span></td>`;
  const shade = most === 0 ? 0 : Math.ceil((average / most) * SHADES);
  const whole = cell.loaded === cell.hours ? `${cell.loaded} hours` : `${cell.loaded} of ${cell.hours} hours`;
  return html`<td class="heat-${shade}" title="${cell.traces.toLocaleString("en-US")} traces in ${whole}">${Math.round(average).toLocaleString("en-US")}</td>`;
}

function averageOf({ traces, loaded }: Cell): number | null {
  return loaded === 0 ? null : traces / loaded;
}

/** How a line without an id of its own is called. */
export function lineTitle({ kind, ids }: Line, question: Pick<Question, "by" | "measure">): string {
  const one = idWord(question);
  if (kind === "none") return `Without ${one === "API key" ? "an" : "a"} ${one}`;
  if (kind === "adjustment") return "Changed since the close";
  if (kind === "unloaded") return `Not loaded by ${one}`;
  if (kind === "rest") return `The rest: ${ids.toLocaleString("en-US")} ${one}${ids === 1 ? "" : "s"}`;
  return kind === "total" ? "Total" : "";
}

/** A sum in words: what is loaded of it where a part is missing, never zero in its place. */
export function figureShown(figure: Figure, { question }: Report): Html {
  const shown = question.measure === "cost" ? money(figure.amount) : html`${amountShown(figure.amount)}`;
  if (figure.isComplete) return html`${shown}${figure.isUnderWay ? " so far" : ""}`;
  if (figure.amount === 0n) return html`${figure.isUnpriced ? "no price" : "not loaded"}`;
  return html`at least ${shown}`;
}

/** What to think of a sum, in one word of the views. */
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

/** Days, or hours, that a list of intervals holds, as people write them: the last one included. */
export function intervalsShown(intervals: readonly Interval[]): string {
  const named = intervals.slice(0, MOST_NAMED).map(rangeText);
  const left = intervals.length - named.length;
  return named.join(", ") + (left > 0 ? ` and ${left} more parts` : "");
}
