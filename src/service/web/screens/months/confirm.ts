import type { MonthLook } from "../../../../pipeline/months/look.ts";
import type { ListedSource } from "../../../../store/activity/overview.ts";
import type { Database } from "../../../../store/db/database.ts";
import { digestOfClose } from "../../../../store/months/close-digest.ts";
import { totalsToClose } from "../../../../store/months/month-totals.ts";
import { type Html, html } from "../../html.ts";
import { postForm } from "../../parts/form.ts";
import { notice } from "../../parts/notice.ts";
import { count, name, twin } from "../../parts/text.ts";
import { address } from "./links.ts";

/** Rows of workspaces that are listed. */
const MOST = 100;

/** What a close would keep, and the form that closes exactly that. */
export async function confirmation(
  db: Database,
  given: {
    look: MonthLook;
    source: ListedSource;
    without: readonly string[];
    accepts: boolean;
    csrf: string;
  },
): Promise<Html> {
  const { look, source, without, accepts, csrf } = given;
  const { month, required, accepted } = look;
  const totals = await totalsToClose(db, {
    ...{ sourceId: source.sourceId, monthStart: month.start },
    workspaces: required.map(({ entityId }) => entityId),
  });
  const digest = digestOfClose({ required, without, kept: totals });
  const traces = totals.dimensions.find(({ groupBy }) => groupBy === "workspace")?.traces ?? 0;
  const listed = totals.workspaces.slice(0, MOST);
  const hidden = totals.workspaces.length - listed.length;
  const { start: from, end: to } = month;
  const differences = address("/differences", { source: source.source, from, to });
  const acceptFlags = accepts ? " --accept-disagreements" : "";
  const withoutFlags = without.map((id) => ` --without ${id}`).join("");
  const fields = html`<input type="hidden" name="source" value="${source.source}">
    <input type="hidden" name="digest" value="${digest}">
    ${accepts ? html`<input type="hidden" name="accept" value="yes">` : ""}
    ${without.map((id) => html`<input type="hidden" name="without" value="${id}">`)}`;
  return html`<p>These totals of ${source.source} are kept for good. <strong>A month closes once.</strong> What changes later becomes an adjustment beside them.</p>
    <dl class="facts">
      <dt>Traces</dt><dd>${count(traces)}</dd>
      <dt>Totals</dt><dd><ul>${totals.dimensions.map(
        (one) =>
          html`<li>${one.groupBy}: ${count(one.totals)} ${one.totals === 1 ? "id" : "ids"}, ${count(one.traces)} traces</li>`,
      )}</ul></dd>
      <dt>Estimated costs</dt><dd>${
        totals.costs.length === 0
          ? "none: no price is valid in this month"
          : totals.costs.map(({ cost, currency }) => html`${cost} ${currency} `)
      }</dd>
      <dt>Left out</dt><dd>${without.length === 0 ? "no workspace" : without.map((id) => html`${name(id)} `)}</dd>
      <dt>Accepted</dt><dd>${accepted === 0 ? "nothing" : html`${count(accepted)} days x dimensions x workspaces on which the platform contradicts itself: <a href="${differences}">both numbers of each</a>`}</dd>
    </dl>
    <div class="scroll" role="region" tabindex="0" aria-label="Workspaces of the close">
    <table><caption>Traces by workspace${hidden > 0 ? `: the ${MOST} largest, and ${hidden} more` : ""}</caption>
      <thead><tr><th scope="col">Workspace</th><th scope="col" class="number">Traces</th></tr></thead>
      <tbody>${listed.map(
        (one) =>
          html`<tr><th scope="row" title="${one.workspaceId}">${name(one.name ?? one.workspaceId)}</th><td class="number">${count(one.traces)}</td></tr>`,
      )}</tbody></table></div>
    ${notice("warn", "If any of this changes before you send the form, or another difference is found, nothing is closed.")}
    ${postForm(`/months/${month.name}/close`, { csrf, label: `Close ${month.name}`, body: fields })}
    ${twin(`usage-etl close ${month.name}${acceptFlags}${withoutFlags} --expect ${digest}`)}`;
}
