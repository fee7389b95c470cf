import { addDays, type Days, dayOf, daysBetween } from "../../../domain/time/days.ts";
import { DAY_MS } from "../../../domain/time/stride.ts";
import type { Interval } from "../../../domain/time/window.ts";
import { amountDrawn, amountShown } from "../../../domain/usage/amount.ts";
import type { Database } from "../../../store/db/database.ts";
import { hourlyUsage } from "../../../store/figures/hours.ts";
import type { Per, UsageOf } from "../../../store/figures/records.ts";
import { type ChartPoint, sparkline, timeChart } from "../chart.ts";
import {
  badge,
  capital,
  type Html,
  html,
  money,
  name,
  numberHead,
  percent,
  shortId,
  table,
} from "../parts.ts";
import { addressOf, COUNTED_WORDS, idWord, MOST_DAYS, type Question } from "./question.ts";
import { bucketsOf, type Figure, type Line, LoadedTime, type Report } from "./report.ts";

/** What the figures are counts of. */
export function unitOf({ question: { measure, currency } }: Report): string {
  return measure === "cost" ? (currency ?? "") : COUNTED_WORDS[measure];
}

/** The whole of a report, with what it can claim and how it changed. */
export function headline(report: Report): Html {
  const { total, before, question } = report;
  const what = question.measure === "cost" ? `Estimated cost, ${unitOf(report)}` : capital(unitOf(report));
  const change = total.isComparable
    ? html`<br><small>${changeOf(total)} against ${before.from} to ${addDays(before.to, -1)}</small>`
    : "";
  return html`<div><dt>${what}</dt><dd><strong class="headline">${figureShown(total.sum, report)}</strong> ${stateBadge(total.sum)}${change}</dd></div>`;
}

/** Cells for a figure and its state. */
export function figureCells(figure: Figure, report: Report): Html {
  return html`<td class="number">${figureShown(figure, report)}</td><td>${stateBadge(figure)}</td>`;
}

/** The ids of a range: the first ones, those without an id, the rest and the total. */
export function idTable(report: Report): Html {
  const { question, lines, total, before } = report;
  const { range } = question;
  const one = idWord(question);
  const unit = unitOf(report);
  const since = before.from < before.to ? html`<br><small>since ${before.from} to ${before.to}</small>` : "";
  return table({
    kind: "usage-ids",
    label: `By ${one}`,
    caption: `By ${one}, ${range.from} to ${range.to} (not included)`,
    heads: [
      capital(one),
      sortedHead(question, "amount", html`${capital(unit)}`),
      "State",
      numberHead("Share"),
      sortedHead(question, "growth", html`Change`, since),
      "Course",
    ],
    rows: lines.map((line) => idRow(line, report)),
    foot: idRow(total, report),
  });
}

/** The head of a column by which the ids can be sorted. */
function sortedHead(question: Question, sort: Question["sort"], label: Html, below: Html | "" = ""): Html {
  if (question.measure === "cost") return html`<th scope="col" class="number">${label}${below}</th>`;
  if (question.sort === sort)
    return html`<th scope="col" class="number" aria-sort="descending">${label} <span aria-hidden="true">↓</span>${below}</th>`;
  const title = sort === "growth" ? "Sort by what grew most" : "Sort by what there is most of";
  return html`<th scope="col" class="number"><a href="${addressOf(question, { sort })}" title="${title}">${label}</a>${below}</th>`;
}

function idRow(line: Line, report: Report): Html {
  return html`<tr><th scope="row">${titleOf(line, report)}</th>${figureCells(line.sum, report)}<td class="number">${percent(line.share)}</td><td class="number">${growthOf(line, report)}${changeOf(line)}</td>
    <td>${sparkline(pointsOf(line, report))}</td></tr>`;
}

function titleOf(line: Line, report: Report): Html {
  const { question } = report;
  if (line.kind !== "id" || line.id === null) return html`${lineTitle(line, question)}`;
  const shown = name(line.name ?? line.id);
  const id =
    line.name === null || line.name === line.id
      ? ""
      : html` <small class="id" title="${line.id}">${shortId(line.id)}</small>`;
  if (question.by !== "workspace") return html`${shown}${id}`;
  return html`<a href="${addressOf(question, { workspace: line.id, by: "project" })}">${shown}</a>${id}`;
}

/** By how much it grew, before how much that is of what it was. */
function growthOf({ isComparable, sum, before }: Line, { question }: Report): Html | "" {
  const growth = sum.amount - before.amount;
  if (!isComparable || growth === 0n) return "";
  const size = growth < 0n ? -growth : growth;
  return html`${growth < 0n ? "−" : "+"}${question.measure === "cost" ? money(size) : amountShown(size)} `;
}

function changeOf({ isComparable, change, before, sum }: Line): Html {
  if (!isComparable)
    return html`<span class="none" title="only where this range and the one before are complete">–</span>`;
  if (change === null) return html`${sum.amount === 0n ? "no usage in both" : "new"}`;
  return html`<span title="before: ${amountShown(before.amount)}">${percent(change, { signed: true })}</span>`;
}

const SIGNS = {
  "under way": ["◔", "provisional", "it grows until its time ends"],
  "final, not proved": [
    "◉",
    "final",
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
function stateBadge(figure: Figure): Html {
  const word = stateWord(figure);
  if (word === "missing" || word === "provisional") return badge(word);
  const [glyph, kind, about] = SIGNS[word];
  return html`<span class="status ${kind}" title="${about}"><span aria-hidden="true">${glyph}</span> <span class="word">${word}</span></span>`;
}

function pointsOf(line: Line, { buckets }: Report): ChartPoint[] {
  return buckets.map(({ at }, n) => {
    const figure = line.course[n] as Figure;
    const drawn = amountDrawn(figure.amount);
    return figure.isComplete
      ? { at, value: drawn, isFinal: figure.isFinal }
      : { at, value: null, atLeast: drawn, isFinal: false };
  });
}

/** The course of the total, and the same figures as a table. */
export function course(report: Report): Html {
  const { question, total, buckets } = report;
  const unit = unitOf(report);
  const label = `${capital(unit)} per ${question.per}, ${question.range.from} to ${question.range.to}`;
  return html`<div class="scroll" role="region" tabindex="0" aria-label="${label}">
      ${timeChart({ points: pointsOf(total, report), width: 960, height: 260, label, unit })}
    </div>
    <details class="figures"><summary>The figures of this chart</summary>
    ${table({
      label: "Figures of the chart",
      caption: label,
      heads: [capital(question.per), numberHead(capital(unit)), "State"],
      rows: buckets.map(({ at }, n) => {
        const figure = total.course[n] as Figure;
        return html`<tr><th scope="row">${bucketShown(at, question.per)}</th>${figureCells(figure, report)}</tr>`;
      }),
    })}</details>`;
}

export function bucketShown(at: string, per: string): string {
  if (per === "month") return at.slice(0, 7);
  return per === "hour" ? `${at.slice(0, 10)} ${at.slice(11, 16)}` : at;
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
    <p class="quiet">No hour of ${range.from} to ${range.to} is loaded for all workspaces. Hours are kept up to date for USAGE_HOURLY_FOR; a backfill with the stride hour loads older ones.</p>`;
  }
  return html`<h2>Hours of the week</h2>
    <p class="quiet">${loaded.toLocaleString("en-US")} of ${hours.toLocaleString("en-US")} hours are loaded for all workspaces. Only these count.</p>
    ${table({
      kind: "heat",
      label: "Hours of the week",
      caption: `Traces per hour of all workspaces by weekday and hour, on average, ${range.from} to ${range.to} (not included)`,
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
  if (kind === "none") return "(none)";
  if (kind === "adjustment") return "Changed since the close";
  if (kind === "unloaded") return `Not loaded by ${one}`;
  if (kind === "rest") return `The rest: ${ids.toLocaleString("en-US")} ${one}${ids === 1 ? "" : "s"}`;
  return kind === "total" ? "Total" : "";
}

/** A sum in words: what is loaded of it where a part is missing, never zero in its place. */
function figureShown(figure: Figure, { question }: Report): Html {
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
export function intervalsShown(intervals: readonly Interval[], per: Per): string {
  const named = intervals
    .slice(0, MOST_NAMED)
    .map((one) => (per === "hour" ? hoursShown(one) : daysShown(one)));
  const left = intervals.length - named.length;
  return named.join(", ") + (left > 0 ? ` and ${left} more parts` : "");
}

function daysShown({ start, end }: Interval): string {
  const [first, last] = [dayOf(start), dayOf(end - 1)];
  return first === last ? first : `${first} to ${last}`;
}

function hoursShown({ start, end }: Interval): string {
  const shown = (at: number) => new Date(at).toISOString().slice(0, 16).replace("T", " ");
  if (end - start >= DAY_MS && start % DAY_MS === 0 && end % DAY_MS === 0) return daysShown({ start, end });
  return `${shown(start)} until ${shown(end)}`;
}
