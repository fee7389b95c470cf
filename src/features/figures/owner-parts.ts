import { type Amount, amountCut, amountShown, roundedParts } from "../../core/domain/usage/amount.ts";
import { DIMENSIONS } from "../../core/store/db/dimensions.ts";
import { capital, type Html, html, money, name, numberHead, otherId, table } from "../../web/parts.ts";
import type { Table } from "../export/table-file.ts";
import { decimalCell } from "../export/table-file.ts";
import { type OwnedDimension, ruleFor } from "../owners/owner.ts";
import type { OwnedPart } from "../owners/owners.store.ts";

export const MOST_LISTED = 200;

/**
 * What a team, or nobody, has: by name, with the workspace below. `isNobody`: each has a rule that assigns it. `whole`: its cost in
 * cents in the table of all teams, to which the rows add up.
 */
export function partsTable(
  parts: readonly OwnedPart[],
  {
    isNobody,
    masked,
    isCut,
    whole,
  }: {
    isNobody: boolean;
    masked: boolean;
    isCut: boolean;
    whole?: { readonly currency: string | undefined; readonly cents: Amount } | undefined;
  },
): Html {
  const currencies = currenciesOf(parts);
  const hasTraces = parts.some(({ traces }) => traces !== null);
  const lead = (n: number) => (n === 0 ? "lead" : "opt");
  const cells = (traces: Html | string, costs: readonly Html[], last: Html | string) =>
    html`${hasTraces && html`<td class="number ${currencies.length === 0 ? "lead" : "opt"}">${traces}</td>`}${costs.map((cost, n) => html`<td class="number ${lead(n)}">${cost}</td>`)}<td class="${isNobody ? "share" : "opt"}">${last}</td>`;
  const rounded = currencies.map((currency) => {
    const exact = parts.map(({ costs }) => amountCut(costs[currency]));
    return isCut
      ? exact
      : roundedParts(currency, exact, whole?.currency === currency ? whole.cents : undefined);
  });
  const costOf = (costs: OwnedPart["costs"], part: number) =>
    currencies.map((currency, n) => money(rounded[n]?.[part] ?? 0n, currency, amountCut(costs[currency])));
  return table({
    label: "What it consists of",
    kind: "two",
    caption: isCut
      ? `The first ${MOST_LISTED}; reporting_detail.owner_assignment has all`
      : "The highest cost first",
    heads: [
      "Name",
      ...(hasTraces ? [html`<th scope="col" class="number opt">Traces</th>`] : []),
      ...currencies.map((one) => numberHead(one)),
      isNobody ? "Suggested rule" : "Rule (line)",
    ],
    rows: parts.map(
      (
        one,
        part,
      ) => html`<tr><th scope="row">${whatIs(one, { masked })}<br><small>${name(one.workspaceName ?? one.workspaceId)}</small></th>
        ${cells(one.traces === null ? "–" : amountShown(amountCut(one.traces)), costOf(one.costs, part), isNobody ? html`<code>- ${ruleFor(one)}</code>` : one.lines.join(", "))}</tr>`,
    ),
    ...(!isCut && {
      foot: html`<tr><th scope="row">Total</th>${cells(
        amountShown(sumOf(parts.map(({ traces }) => traces))),
        currencies.map((currency, n) =>
          money(
            (rounded[n] ?? []).reduce((sum, one) => sum + one, 0n),
            currency,
            sumOf(parts.map(({ costs }) => costs[currency])),
          ),
        ),
        "",
      )}</tr>`,
    }),
  });
}

export function partsFile(parts: readonly OwnedPart[], { masked }: { masked: boolean }): Table {
  const currencies = currenciesOf(parts);
  return {
    header: [
      "source_id",
      "workspace_id",
      "workspace_name",
      "dimension",
      "id",
      "name",
      "traces",
      ...currencies.map((one) => `estimated_cost_${one.toLowerCase()}`),
      "rule_lines",
    ],
    rows: parts.map((one) => [
      ...[one.source, one.workspaceId, one.workspaceName, one.dimension, one.id],
      one.dimension === "user" && masked ? null : one.name,
      decimalCell(one.traces),
      ...currencies.map((currency) => decimalCell(one.costs[currency] ?? null)),
      one.lines.join(", "),
    ]),
  };
}

function currenciesOf(parts: readonly OwnedPart[]): string[] {
  return [...new Set(parts.flatMap(({ costs }) => Object.keys(costs)))].sort();
}

function sumOf(amounts: readonly (string | null | undefined)[]): Amount {
  return amounts.reduce((sum, one) => sum + amountCut(one), 0n);
}

function whatIs({ dimension, id, name: called }: OwnedPart, { masked }: { masked: boolean }): Html {
  if (dimension === null) return html`Unattributed`;
  const shown = dimension === "user" && masked ? null : called;
  const word = capital(DIMENSIONS[dimension satisfies OwnedDimension].title);
  return shown === null || shown === id
    ? html`${word} ${name(id)}`
    : html`${name(shown)} <small>${word}</small> ${otherId(id)}`;
}
