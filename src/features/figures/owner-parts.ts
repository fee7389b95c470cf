import { daysText } from "../../core/domain/months/month.ts";
import type { Days } from "../../core/domain/time/days.ts";
import { type Amount, amountCut, amountShown } from "../../core/domain/usage/amount.ts";
import type { Database } from "../../core/store/db/database.ts";
import { DIMENSIONS } from "../../core/store/db/dimensions.ts";
import {
  capital,
  type Html,
  html,
  money,
  name,
  numberHead,
  otherId,
  plainName,
  table,
  twin,
} from "../../web/parts.ts";
import { type OwnedDimension, ruleFor, UNALLOCATED } from "../owners/owner.ts";
import { type OwnedPart, ownedParts } from "../owners/owners.store.ts";

const MOST_LISTED = 200;

export async function partsTable(
  db: Database,
  { source, range }: { source: string; range: Days },
  { owner, masked }: { owner: string; masked: boolean },
): Promise<Html> {
  const found = await ownedParts(db, { source, owner, ...range, top: MOST_LISTED + 1 });
  const parts = found.slice(0, MOST_LISTED);
  const isNobody = owner === UNALLOCATED;
  if (parts.length === 0) {
    return html`<p>${isNobody ? `Nothing that is loaded in ${daysText(range)} has usage and no owner.` : `${plainName(owner)} has nothing that is loaded in ${daysText(range)}.`}</p>`;
  }
  const currencies = [...new Set(parts.flatMap(({ costs }) => Object.keys(costs)))].sort();
  const hasTraces = parts.some(({ traces }) => traces !== null);
  const all = isNobody
    ? "the command below lists all"
    : "reporting_detail.owner_assignment has the ids of all";
  const isCut = found.length > parts.length;
  const most = isCut ? ` The first ${MOST_LISTED}; ${all}.` : "";
  const listed = table({
    label: "What it is made of",
    caption: `${isNobody ? "What has usage and no owner" : "What it is made of"}, ${daysText(range)}.${most}`,
    heads: [
      "Workspace",
      "What",
      ...(hasTraces ? [numberHead("Traces")] : []),
      ...currencies.map((one) => numberHead(`Estimated cost, ${one}`)),
      isNobody ? "A rule that would give it to a team" : "Given by the rule on line … of the owner file",
    ],
    rows: parts.map(
      (
        one,
      ) => html`<tr><th scope="row">${name(one.workspaceName ?? one.workspaceId)}</th><td>${whatIs(one, { masked })}</td>
        ${hasTraces && html`<td class="number">${one.traces === null ? "–" : amountShown(amountCut(one.traces))}</td>`}
        ${currencies.map((currency) => html`<td class="number">${money(amountCut(one.costs[currency]))}</td>`)}
        <td>${isNobody ? html`<code>- ${ruleFor(one)}</code>` : one.lines.join(", ")}</td></tr>`,
    ),
    ...(isCut
      ? {}
      : {
          foot: html`<tr><th scope="row" colspan="2">Total</th>
        ${hasTraces && html`<td class="number">${amountShown(sumOf(parts.map(({ traces }) => traces)))}</td>`}
        ${currencies.map((currency) => html`<td class="number">${money(sumOf(parts.map(({ costs }) => costs[currency])))}</td>`)}<td></td></tr>`,
        }),
  });
  if (!isCut || !isNobody) return listed;
  return html`${listed}${twin(`usage-etl owners suggest --from ${range.from} --to ${range.to} --json`)}`;
}

function sumOf(amounts: readonly (string | null | undefined)[]): Amount {
  return amounts.reduce((sum, one) => sum + amountCut(one), 0n);
}

function whatIs({ dimension, id, name: called }: OwnedPart, { masked }: { masked: boolean }): Html {
  if (dimension === null) return html`the rest: what no id has`;
  const shown = dimension === "user" && masked ? null : called;
  const word = capital(DIMENSIONS[dimension satisfies OwnedDimension].title);
  return shown === null || shown === id
    ? html`${word} ${name(id)}`
    : html`${word} ${name(shown)} ${otherId(id)}`;
}
