import { amountDrawn, amountShown } from "../../../domain/usage/amount.ts";
import { type Html, html } from "../html.ts";
import { type ChartPoint, sparkline, timeChart } from "../parts/chart.ts";
import { badge } from "../parts/status.ts";
import { name } from "../parts/text.ts";
import { addressOf } from "./links.ts";
import type { Figure, Line, Report } from "./report.ts";
import { COUNTED_WORDS, figureShown, idWords, lineTitle, percent, stateWord } from "./words.ts";

/** What the figures are counts of. */
export function unitOf({ question: { measure, currency } }: Report): string {
  return measure === "cost" ? (currency ?? "") : COUNTED_WORDS[measure];
}

/** The ids of a range: the first ones, those without an id, the rest and the total. */
export function idTable(report: Report): Html {
  const { question, lines, total, before } = report;
  const { range } = question;
  const { one } = idWords(question);
  const unit = unitOf(report);
  return html`<div class="scroll" role="region" tabindex="0" aria-label="By ${one}"><table class="usage-ids">
    <caption>By ${one}, ${range.from} to ${range.to} (not included)</caption>
    <thead><tr><th scope="col">${capital(one)}</th><th scope="col" class="number">${capital(unit)}</th>
      <th scope="col">State</th><th scope="col" class="number">Share</th>
      <th scope="col" class="number">Change${before.from < before.to ? html`<br><small>since ${before.from} to ${before.to}</small>` : ""}</th><th scope="col">Course</th></tr></thead>
    <tbody>${lines.map((line) => idRow(line, report))}</tbody>
    <tfoot>${idRow(total, report)}</tfoot>
  </table></div>`;
}

function idRow(line: Line, report: Report): Html {
  return html`<tr><th scope="row">${titleOf(line, report)}</th><td class="number">${figureShown(line.sum)}</td>
    <td>${stateBadge(line.sum)}</td><td class="number">${percent(line.share)}</td><td class="number">${changeOf(line)}</td>
    <td>${sparkline(pointsOf(line, report))}</td></tr>`;
}

function titleOf(line: Line, report: Report): Html {
  const { question } = report;
  if (line.kind !== "id" || line.id === null) return html`${lineTitle(line, question)}`;
  const shown = name(line.name ?? line.id);
  const id =
    line.name === null || line.name === line.id ? "" : html` <small class="id">${name(line.id)}</small>`;
  if (question.by !== "workspace") return html`${shown}${id}`;
  return html`<a href="${addressOf(question, { workspace: line.id, by: "project" })}">${shown}</a>${id}`;
}

function changeOf({ isComparable, change, before, sum }: Line): Html {
  if (!isComparable)
    return html`<span class="none" title="only where this range and the one before are complete">–</span>`;
  if (change === null) return html`${sum.amount === 0n ? "no usage in both" : "new"}`;
  return html`<span title="before: ${amountShown(before.amount)}">${percent(change, { signed: true })}</span>`;
}

/** Where a figure stands: as sign and word. */
function stateBadge(figure: Figure): Html {
  const word = stateWord(figure);
  if (word === "under way")
    return html`<span class="status provisional"><span aria-hidden="true">◔</span> <span class="word">under way</span></span>`;
  return badge(word === "final" ? "ok" : word);
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
    <div class="scroll" role="region" tabindex="0" aria-label="Figures of the chart"><table>
      <caption>${label}</caption>
      <thead><tr><th scope="col">${capital(question.per)}</th><th scope="col" class="number">${capital(unit)}</th><th scope="col">State</th></tr></thead>
      <tbody>${buckets.map(({ at }, n) => {
        const figure = total.course[n] as Figure;
        return html`<tr><th scope="row">${bucketShown(at, question.per)}</th><td class="number">${figureShown(figure)}</td><td>${stateBadge(figure)}</td></tr>`;
      })}</tbody>
    </table></div></details>`;
}

export function bucketShown(at: string, per: string): string {
  if (per === "month") return at.slice(0, 7);
  return per === "hour" ? `${at.slice(0, 10)} ${at.slice(11, 16)}` : at;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
