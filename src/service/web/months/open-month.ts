import { monthTitle } from "../../../domain/months/month.ts";
import {
  type AskedClose,
  DISAGREEMENTS,
  OPEN_WORDS,
  type OpenDay,
  type OpenPoint,
  type OpenReason,
  openPointsOf,
  stepsOf,
} from "../../../domain/months/open-days.ts";
import { dayOf, shortInstant } from "../../../domain/time/days.ts";
import { DAY_MS } from "../../../domain/time/stride.ts";
import { amountOf } from "../../../domain/usage/amount.ts";
import { METER_NAME } from "../../../domain/usage/meter.ts";
import type { MonthLook } from "../../../pipeline/months/look.ts";
import { counted } from "../../../printable.ts";
import type { ListedSource } from "../../../store/activity/overview.ts";
import type { Database } from "../../../store/db/database.ts";
import { digestOfClose } from "../../../store/months/close-digest.ts";
import { totalsToClose } from "../../../store/months/totals-to-close.ts";
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
} from "../parts.ts";

interface OpenMonth {
  readonly look: MonthLook;
  readonly source: ListedSource;
  readonly asked: AskedClose;
  readonly accepts: boolean;
  readonly mayClose: boolean;
}

export function openPage(given: OpenMonth): Html {
  const { look, source, asked, accepts, mayClose } = given;
  const { month, open, accepted } = look;
  const { without } = asked;
  const fields = { source: source.source, without, accept: accepts ? "yes" : undefined };
  const behind = accepts ? 0 : providerBehind(look, asked);
  const state =
    open.length > 0
      ? html`${notice("warn", html`<p>${monthTitle(month)} is open: ${count(open.length)} daily figures keep it so.</p>`)}
        ${openDaysList(open, asked, source.source, behind)}`
      : html`${notice("good", html`<p>${monthTitle(month)} is open, and nothing keeps it open: every day is loaded, final and reconciled${accepted !== 0 && html`, but for ${counted(accepted, "daily figure")} that ${accepted === 1 ? "is" : "are"} accepted`}.</p>`)}
        ${mayClose ? html`<p><a class="button" href="${address(`/months/${month.name}/close`, fields)}">Close ${monthTitle(month)} …</a></p>` : html`<p>An operator can close it.</p>`}`;
  return html`${state}
    ${without.length === 0 && !accepts ? "" : html`<p>${conditions(given)} <a href="${address(`/months/${month.name}`, { source: source.source })}">Look at all of it</a></p>`}
    ${options(given)}`;
}

function conditions({ asked: { without }, accepts }: OpenMonth): Html {
  const left = without.length === 0 ? "" : html`Without ${without.map((id) => html`${name(id)} `)}.`;
  return html`${left} ${accepts && "Days on which the platform contradicts itself are accepted."}`;
}

function options({ look, source, asked, accepts }: OpenMonth): Html {
  const { month, required, open } = look;
  const { without } = asked;
  const openIn = Map.groupBy(open, ({ workspaceId }) => workspaceId);
  const ids = [...without, ...required.map(({ workspaceId }) => workspaceId)].sort(
    (a, b) => (openIn.get(b)?.length ?? 0) - (openIn.get(a)?.length ?? 0),
  );
  // A day names its first reason alone, and a month's total stands behind it.
  const isDisputed =
    accepts ||
    open.some(({ reason }) => DISAGREEMENTS.includes(reason)) ||
    look.provider.outcomes.some(({ outcome }) => outcome === "differs");
  return html`<details class="close-options" ${(without.length > 0 || accepts) && "open"}><summary>Leave out workspaces, or accept disagreements</summary>
    <form method="get" action="/months/${month.name}">
      <input type="hidden" name="source" value="${source.source}">
      ${
        isDisputed &&
        html`<p><label><input type="checkbox" name="accept" value="yes" ${accepts && "checked"}> Accept days on which the platform contradicts itself</label>
            <br><span class="quiet">What is stored is closed as it is. How many days these are is kept with the close.</span></p>`
      }
      <fieldset><legend>Leave out</legend>
        <p class="quiet">Totals of a workspace that is left out are not in the close. What is loaded of it later is no adjustment.</p>
        ${ids.map(
          (id) =>
            html`<p><label><input type="checkbox" name="without" value="${id}" ${without.includes(id) && "checked"}>
              <span>${name(id)}${openIn.has(id) && `, ${openIn.get(id)?.length.toLocaleString("en-US")} open`}</span></label></p>`,
        )}
      </fieldset>
      <button>Look</button>
    </form></details>`;
}

const MOST = 100;

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
    sourceId: source.sourceId,
    monthStart: month.start,
    workspaces: required.map(({ entityId }) => entityId),
  });
  const digest = digestOfClose({ required, without, kept: totals });
  const traces = totals.dimensions.find(({ groupBy }) => groupBy === "workspace")?.traces ?? 0;
  const listed = totals.workspaces.slice(0, MOST);
  const hidden = totals.workspaces.length - listed.length;
  const { start: from, end: to } = month;
  const differences = address("/differences", { source: source.source, from, to });
  const withoutCosts = totals.costs.length === 0 && traces > 0;
  const accept = accepts ? "yes" : undefined;
  const fields = { source: source.source, digest, accept, without, costs: withoutCosts ? "none" : undefined };
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
      <dt>Left out</dt><dd>${without.length === 0 ? "no workspace" : without.map((id) => html`${name(id)} `)}</dd>
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

/** Workspaces of which the billing provider's total differs, where no day of the list says so. */
export function providerBehind(
  { open, provider }: Pick<MonthLook, "open" | "provider">,
  { without }: Pick<AskedClose, "without">,
): number {
  // Which workspaces these are is not known here, so with some left out nothing is claimed.
  if (without.length > 0 || open.some(({ reason }) => reason === "provider_differs")) return 0;
  return provider.outcomes
    .filter(({ outcome }) => outcome === "differs")
    .reduce((most, { workspaces }) => Math.max(most, workspaces), 0);
}

export function openDaysList(
  open: readonly OpenDay[],
  asked: AskedClose,
  source: string,
  behind: number,
): Html {
  const points = openPointsOf(open);
  const { name, start, end } = asked.month;
  const without = asked.without;
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
    label: `What keeps ${monthTitle(asked.month)} open`,
    kind: "cards",
    caption: `What keeps ${monthTitle(asked.month)} open, by dimension. A day with several reasons stands with the first of them.`,
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
    <ul class="steps">${stepsOf(open, asked).map(
      ({ text, kind, workspaceId }) =>
        html`<li>${prose(text)}
          ${kind === "accept" && html`<a href="${address(`/months/${name}`, { source, without, accept: "yes" })}">Look at the month with these accepted</a>`}
          ${workspaceId !== undefined && html`<a href="${address(`/months/${name}`, { source, without: [...without, workspaceId] })}">Look at the month without this workspace</a>`}</li>`,
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
  // Many ids make an address that no server takes: then the page shows all workspaces.
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
  // The page of backfills loads traces; the command beside the list loads the others.
  if (meter !== "traces" || !["missing", "failed", "unverified", "provisional"].includes(reason))
    return undefined;
  return address("/backfills/new", {
    ...daysOf(point, source),
    reprocess: reason === "provisional" ? "all" : undefined,
  });
}
