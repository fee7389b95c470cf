import type { CalendarMonth } from "../../../../domain/months/month.ts";
import type { ListedSource } from "../../../../store/activity/overview.ts";
import type { Database } from "../../../../store/db/database.ts";
import { type ClosedCost, closedCosts } from "../../../../store/months/closed-costs.ts";
import type { ClosedMonth } from "../../../../store/months/closed-months.ts";
import { type Adjustments, adjustmentsOf } from "../../../../store/months/month-adjustments.ts";
import { type Html, html } from "../../html.ts";
import { count, instant, name } from "../../parts/text.ts";
import { address } from "./links.ts";
import { closer, signed } from "./list.ts";

/** Adjusted totals and costs that are listed. The views have all of them. */
const MOST = 50;

/** A closed month: what it was closed with, and what changed since. */
export async function closedPage(
  db: Database,
  given: { month: CalendarMonth; source: ListedSource; closed: ClosedMonth; masked: boolean },
): Promise<Html> {
  const { month, source, closed, masked } = given;
  const [adjustments, costs] = await Promise.all([
    adjustmentsOf(db, { closeId: closed.closeId, most: MOST, masked }),
    closedCosts(db, {
      ...{ closeId: closed.closeId, sourceId: source.sourceId },
      ...{ monthStart: month.start, most: MOST },
    }),
  ]);
  const range = { source: source.source, from: month.start, to: month.end };
  return html`<p><span class="status ok"><span aria-hidden="true">■</span> closed</span> ${instant(closed.closedAt)}${closer(closed)}.
      A closed month is never rewritten.</p>
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
          : html`${count(closed.accepted)} days x dimensions x workspaces on which the platform contradicts itself:
            <a href="${address("/differences", range)}">both numbers</a>`
      }</dd>
      <dt>Final after</dt><dd>${
        closed.settleAfterSeconds === null
          ? "not kept: an older release closed it"
          : `${closed.settleAfterSeconds / 86_400} days (USAGE_SETTLE_AFTER at that time)`
      }</dd>
    </dl>
    <h2 id="adjustments">Adjustments since the close</h2>
    ${adjustmentTable(adjustments)}
    ${adjustments.totals === 0 ? "" : html`<p><a href="${address("/differences", { ...range, says: "restatement" })}">When each change came</a></p>`}
    <h2>Costs</h2>
    ${costTable(costs)}`;
}

function adjustmentTable({ totals, netTraces, largest }: Adjustments): Html {
  if (totals === 0) return html`<p>None: every total is as it was closed.</p>`;
  const shown =
    largest.length < totals
      ? ` The first ${largest.length} of them; reporting.usage_month_close has all.`
      : "";
  return html`<p>${count(totals)} ${totals === 1 ? "total is" : "totals are"} not as closed. The workspaces have ${signed(netTraces)} traces.</p>
    <div class="scroll" role="region" tabindex="0" aria-label="Adjustments">
    <table><caption>Never add up over dimensions.${shown}</caption>
      <thead><tr><th scope="col">Dimension</th><th scope="col">Workspace</th><th scope="col">Id</th>
        <th scope="col" class="number">Closed</th><th scope="col" class="number">Adjusted by</th><th scope="col" class="number">Now</th></tr></thead>
      <tbody>${largest.map(
        (one) => html`<tr><th scope="row">${one.groupBy}</th>
          <td title="${one.workspaceId}">${name(one.workspaceName ?? one.workspaceId)}</td>
          <td title="${one.dimensionId}">${name(one.dimensionName ?? one.dimensionId)}</td>
          <td class="number">${count(one.closedTraces)}</td>
          <td class="number">${signed(one.currentTraces - one.closedTraces)}</td>
          <td class="number">${count(one.currentTraces)}</td></tr>`,
      )}</tbody></table></div>`;
}

function costTable({ rows, total }: { rows: readonly ClosedCost[]; total: number }): Html {
  if (rows.length === 0)
    return html`<p>No costs were kept: without prices at the time of the close there are none.</p>`;
  const shown =
    rows.length < total
      ? ` The first ${rows.length} of ${total}; reporting.usage_month_close_cost has all.`
      : "";
  return html`<div class="scroll" role="region" tabindex="0" aria-label="Closed costs">
    <table><caption>Estimated costs, by workspace, SKU and price. Later prices and counts adjust them.${shown}</caption>
      <thead><tr><th scope="col">Workspace</th><th scope="col">SKU</th><th scope="col" class="number">Unit price</th>
        <th scope="col" class="number">Closed</th><th scope="col" class="number">Adjusted by</th><th scope="col" class="number">Now</th></tr></thead>
      <tbody>${rows.map(
        (
          one,
        ) => html`<tr><th scope="row" title="${one.workspaceId}">${name(one.workspaceName ?? one.workspaceId)}</th>
          <td>${name(one.sku)}</td><td class="number">${one.unitPrice} ${one.currency}</td>
          <td class="number">${one.closedCost}</td><td class="number">${one.adjustmentCost}</td><td class="number">${one.currentCost}</td></tr>`,
      )}</tbody></table></div>`;
}
