import {
  type AskedClose,
  checkListOf,
  DISAGREEMENTS,
  OPEN_WORDS,
  type OpenDay,
  type OpenReason,
  stepsOf,
} from "../../../../domain/months/check-list.ts";
import { shortInstant } from "../../../../domain/time/days.ts";
import { METER_NAME } from "../../../../domain/usage/meter.ts";
import { type Html, html } from "../../html.ts";
import type { Status } from "../../parts/status.ts";
import { count, prose } from "../../parts/text.ts";
import { address, backfillOf, cellsOf } from "./links.ts";

/** The sign of a reason: that of the status it is, or of something to compare. */
const SIGNS: Readonly<Record<OpenReason, readonly [glyph: string, status: Status]>> = {
  not_available: ["∅", "not_available"],
  missing: ["○", "missing"],
  failed: ["✕", "failed"],
  unverified: ["?", "unverified"],
  provisional: ["◐", "provisional"],
  open: ["≠", "failed"],
  not_reconciled: ["◇", "missing"],
  platform_disagrees: ["≠", "failed"],
  total_differs: ["≠", "failed"],
  tiers_differ: ["≠", "failed"],
  provider_differs: ["≠", "failed"],
};

/** What keeps a month open: the points of the command `close`, each with a link to its days, and the steps that help. */
export function checkList(open: readonly OpenDay[], asked: AskedClose, source: string): Html {
  const points = checkListOf(open);
  const { name, start, end } = asked.month;
  const without = asked.without;
  return html`<div class="scroll" role="region" tabindex="0" aria-label="What keeps ${name} open">
    <table><caption>What keeps ${name} open, by dimension</caption>
      <thead><tr><th scope="col">What is open</th><th scope="col">Dimension</th>
        <th scope="col" class="number">Days x workspaces</th><th scope="col">First day</th><th scope="col">Last day</th>
        <th scope="col">Look, or do something</th></tr></thead>
      <tbody>${points.map((point) => {
        const { reason, meter, groupBy, days, first, last } = point;
        const [glyph, status] = SIGNS[reason];
        const load = backfillOf(point, source);
        const differs = reason === "open" || DISAGREEMENTS.includes(reason);
        return html`<tr><th scope="row"><span class="status ${status}"><span aria-hidden="true">${glyph}</span> ${OPEN_WORDS[reason]}</span></th>
          <td>${meter === "traces" ? "" : `${METER_NAME[meter]}, `}${groupBy}</td><td class="number">${count(days)}</td>
          <td>${shortInstant(first)}</td><td>${shortInstant(last)}</td>
          <td>${meter === "traces" ? html`<a href="${cellsOf(point, source)}">Show the days</a>` : ""}
            ${load === undefined ? "" : html` · <a href="${load}">Load them</a>`}
            ${differs ? html` · <a href="${address("/differences", { source, from: start, to: end, meter: meter === "traces" ? undefined : meter })}">Both numbers</a>` : ""}</td></tr>`;
      })}</tbody></table></div>
    <h2>What to do</h2>
    <ul class="steps">${stepsOf(open, asked).map(
      ({ text, kind, workspaceId }) =>
        html`<li>${prose(text)}
          ${kind === "accept" ? html`<a href="${address(`/months/${name}`, { source, without, accept: "yes" })}">Look at the month with these accepted</a>` : ""}
          ${workspaceId === undefined ? "" : html`<a href="${address(`/months/${name}`, { source, without: [...without, workspaceId] })}">Look at the month without this workspace</a>`}</li>`,
    )}</ul>`;
}

/** The same in a few words, for a list of months. */
export function inShort(open: readonly OpenDay[]): string {
  const points = Map.groupBy(checkListOf(open), ({ reason }) => reason);
  return [...points]
    .map(([reason, some]) => {
      const days = some.reduce((sum, one) => sum + one.days, 0);
      return `${days.toLocaleString("en-US")} ${OPEN_WORDS[reason]}`;
    })
    .join(", ");
}
