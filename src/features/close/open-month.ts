import { counted } from "../../core/base/printable.ts";
import { monthTitle } from "../../core/domain/months/month.ts";
import { dayOf, shortInstant } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { amountOf } from "../../core/domain/usage/amount.ts";
import { METER_NAME } from "../../core/domain/usage/meter.ts";
import type { ListedSource } from "../../core/store/activity/overview.ts";
import type { Database } from "../../core/store/db/database.ts";
import {
  address,
  card,
  count,
  dimensionTitle,
  type Html,
  html,
  joined,
  money,
  name,
  notice,
  numberHead,
  postForm,
  prose,
  type Status,
  sign,
  table,
} from "../../web/parts.ts";
import { digestOfClose } from "./close-digest.store.ts";
import type { MonthLook } from "./close-preview.ts";
import { acceptanceOf } from "./open-days.store.ts";
import {
  type CloseRequest,
  DISAGREEMENTS,
  OPEN_WORDS,
  type OpenDay,
  type OpenPoint,
  type OpenReason,
  openPointsOf,
  stepsOf,
} from "./open-days.ts";
import { totalsToClose } from "./totals-to-close.store.ts";

interface OpenMonth {
  readonly look: MonthLook;
  readonly source: ListedSource;
  readonly requested: CloseRequest;
  readonly mayClose: boolean;
}

export function openPage({ look, source, requested, mayClose }: OpenMonth): Html {
  const { month, open } = look;
  const close = mayClose
    ? html`<p><a class="button" href="${address(`/months/${month.name}/close`, { source: source.source })}">Close ${monthTitle(month)} …</a></p>`
    : html`<p>An operator can close it.</p>`;
  return open.length > 0
    ? html`${notice("warn", html`<p>${monthTitle(month)} is open: ${count(open.length)} daily figures keep it so.</p>`)}
        ${openDaysList(open, requested, source.source, providerBehind(look))}`
    : html`${notice("good", html`<p>${monthTitle(month)} is open, and nothing keeps it open: every day is loaded, final and reconciled.</p>`)}${close}`;
}

const MOST = 100;

export async function confirmation(
  db: Database,
  given: {
    look: MonthLook;
    source: ListedSource;
    csrf: string;
  },
): Promise<Html> {
  const { look, source, csrf } = given;
  const { month } = look;
  const { required, without, accepted } = acceptanceOf(look);
  const totals = await totalsToClose(db, {
    sourceId: source.sourceId,
    period: month,
    workspaces: required.map(({ entityId }) => entityId),
  });
  const digest = digestOfClose({ required, without, kept: totals });
  const traces = totals.dimensions.find(({ groupBy }) => groupBy === "workspace")?.traces ?? 0;
  const listed = totals.workspaces.slice(0, MOST);
  const hidden = totals.workspaces.length - listed.length;
  const { start: from, end: to } = month;
  const differences = address("/differences", { source: source.source, from, to });
  const withoutCosts = totals.costs.length === 0 && traces > 0;
  const fields = { source: source.source, digest, costs: withoutCosts ? "none" : undefined };
  return html`<p>These totals of ${source.source} are kept for good. <strong>A month closes once.</strong> What changes later becomes an adjustment beside them.</p>
    <dl class="facts">
      <dt>Traces</dt><dd>${count(traces)}</dd>
      <dt>Totals</dt><dd><ul>${totals.dimensions.map(
        (one) =>
          html`<li>${dimensionTitle(one.groupBy)}: ${counted(one.totals, "id")}, ${count(one.traces)} traces</li>`,
      )}</ul></dd>
      <dt>Estimated costs</dt><dd>${
        totals.costs.length === 0
          ? withoutCosts
            ? html`none: no price is valid for any of these traces. The month has no costs anywhere until prices are imported and its costs are closed.
              <br>${prose("`usage-etl prices import FILE` imports prices.")}`
            : "none: there are no traces"
          : totals.costs.map(({ cost, currency }) => html`${money(amountOf(cost))} ${currency} `)
      }</dd>
      <dt>Left out</dt><dd>${without.length === 0 ? "no workspace" : html`${without.map((id) => html`${name(id)} `)}<br>Their totals are not in the close. What is loaded of them later is no adjustment.`}</dd>
      <dt>Accepted</dt><dd>${accepted === 0 ? "nothing" : html`${count(accepted)} daily figures on which the platform contradicts itself: <a href="${differences}">both numbers of each</a>`}</dd>
    </dl>
    ${table({
      label: "Workspaces of the close",
      caption: `Traces by workspace${hidden > 0 ? `: the ${MOST} largest, and ${hidden} more` : ""}`,
      heads: ["Workspace", numberHead("Traces")],
      rows: listed.map(
        (one) =>
          html`<tr><th scope="row" title="${one.workspaceId}">${name(one.name ?? one.workspaceId)}</th><td class="number">${count(one.traces)}</td></tr>`,
      ),
    })}
    ${notice("warn", "If any of this changes before you send the form, or another difference is found, nothing is closed.")}
    ${postForm(`/months/${month.name}/close`, { csrf, label: `Close ${monthTitle(month)}${withoutCosts ? " without costs" : ""}`, fields })}`;
}

const SIGNS: Readonly<Record<OpenReason, readonly [glyph: string, status: Status]>> = {
  not_available: ["∅", "not_available"],
  not_known: ["?", "missing"],
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

/** Number of workspaces whose total differs from the provider's. 0 if an open day already shows that. */
export function providerBehind({ open, provider }: Pick<MonthLook, "open" | "provider">): number {
  if (open.some(({ reason }) => reason === "provider_differs")) return 0;
  return provider.outcomes
    .filter(({ outcome }) => outcome === "differs")
    .reduce((most, { workspaces }) => Math.max(most, workspaces), 0);
}

export function openDaysList(
  open: readonly OpenDay[],
  requested: CloseRequest,
  source: string,
  behind: number,
): Html {
  const points = openPointsOf(open);
  const { name, start, end } = requested.month;
  const rows = points.map((point) => {
    const { reason, meter, groupBy, days, first, last } = point;
    const [glyph, status] = SIGNS[reason];
    const isTraces = meter === "traces";
    const load = backfillOf(point, source);
    const differs = reason === "open" || DISAGREEMENTS.includes(reason);
    const both = address("/differences", {
      source,
      from: start,
      to: end,
      meter: isTraces ? undefined : meter,
    });
    return card(sign(status, glyph, OPEN_WORDS[reason]), [
      ["Dimension", `${isTraces ? "" : `${METER_NAME[meter]}, `}${dimensionTitle(groupBy, meter)}`],
      ["Daily figures", count(days), "number"],
      ["First day", shortInstant(first)],
      ["Last day", shortInstant(last)],
      [
        "Look, or do something",
        joined(
          [
            isTraces && html`<a href="${cellsOf(point, source)}">Show the days</a>`,
            load !== undefined && html`<a href="${load}">Load them</a>`,
            differs && html`<a href="${both}">Both numbers</a>`,
          ].filter((one) => one !== false),
          " · ",
        ),
      ],
    ]);
  });
  if (behind > 0) rows.push(providerRow(behind, source));
  return html`${table({
    label: `What keeps ${monthTitle(requested.month)} open`,
    kind: "cards",
    caption: `What keeps ${monthTitle(requested.month)} open, by dimension. A day with several reasons stands with the first of them.`,
    heads: [
      "What is open",
      "Dimension",
      numberHead("Daily figures"),
      "First day",
      "Last day",
      "Look, or do something",
    ],
    rows,
  })}
    <div class="to-do"><h2>What to do</h2>
    <ul class="steps">${stepsOf(open, requested).map(
      ({ text, kind }) =>
        html`<li>${prose(text)}
          ${kind === "accept" && html`<a href="${address(`/months/${name}/close`, { source })}">Look at what that closes</a>`}</li>`,
    )}</ul></div>`;
}

function providerRow(behind: number, source: string): Html {
  const [glyph, status] = SIGNS.provider_differs;
  return html`<tr><th scope="row">${sign(status, glyph, OPEN_WORDS.provider_differs)}</th>
    <td colspan="4" data-column="Of what">The total of the month, of ${counted(behind, "workspace")}. It comes after the reasons above.</td>
    <td data-column="Look"><a href="${address("/differences", { source, says: "total" })}">Both numbers</a></td></tr>`;
}

export function inShort(open: readonly OpenDay[]): string {
  const points = Map.groupBy(openPointsOf(open), ({ reason }) => reason);
  return [...points]
    .map(([reason, some]) => {
      const days = some.reduce((sum, one) => sum + one.days, 0);
      return `${OPEN_WORDS[reason]} (${days.toLocaleString("en-US")})`;
    })
    .join(", ");
}

function daysOf({ groupBy, first, last, workspaceIds }: OpenPoint, source: string) {
  // Servers refuse very long addresses, so for many ids the page shows all workspaces.
  const workspace = workspaceIds.length <= 20 ? workspaceIds : undefined;
  return {
    source,
    stride: "day",
    from: dayOf(first),
    to: dayOf(last + DAY_MS),
    group_by: groupBy,
    workspace,
  };
}

function cellsOf(point: OpenPoint, source: string): string {
  const { workspace, ...days } = daysOf(point, source);
  const [only, ...others] = point.workspaceIds;
  if (only === undefined || others.length > 0) return address("/coverage", days);
  return address(point.first === point.last ? "/cell" : "/coverage", { ...days, workspace: only });
}

function backfillOf(point: OpenPoint, source: string): string | undefined {
  const { reason, meter } = point;
  // The backfill page loads only traces. The list shows the command for other meters.
  if (meter !== "traces" || !["missing", "failed", "unverified", "provisional"].includes(reason))
    return undefined;
  return address("/backfills/new", {
    ...daysOf(point, source),
    reprocess: reason === "provisional" ? "all" : undefined,
  });
}
