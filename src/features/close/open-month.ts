import { counted } from "../../core/base/printable.ts";
import { type CalendarMonth, monthTitle } from "../../core/domain/months/month.ts";
import { amountOf } from "../../core/domain/usage/amount.ts";
import type { ListedSource } from "../../core/store/activity/overview.ts";
import type { Database } from "../../core/store/db/database.ts";
import {
  address,
  box,
  columns,
  count,
  type Html,
  hidden,
  html,
  joined,
  kpis,
  money,
  name,
  notice,
  numberHead,
  prose,
  type Todo,
  table,
  todos,
} from "../../web/parts.ts";
import { type Bill, costsText, gapsOf, NOT_REPORTED } from "../costs/bill.ts";
import { workspaceName } from "../costs/bill-table.ts";
import { describeDifference, itemTitle, openItemsOf } from "./checklist.ts";
import { digestOfClose } from "./close-digest.store.ts";
import type { MonthLook } from "./close-preview.ts";
import { acceptanceOf } from "./open-days.store.ts";
import { type CloseRequest, openPointsOf, stepsOf } from "./open-days.ts";
import type { OpenDifference } from "./open-differences.store.ts";
import { totalsToClose } from "./totals-to-close.store.ts";

const MOST = 100;

interface ToSign {
  readonly look: MonthLook;
  readonly source: ListedSource;
  readonly bill: Bill;
  readonly differences: readonly OpenDifference[];
  readonly earlier: readonly CalendarMonth[];
  readonly nameOf: (workspaceId: string) => string;
  readonly csrf: string;
}

/** Shows the totals that a close keeps and their problems, above the form that signs it. */
export async function confirmation(db: Database, given: ToSign): Promise<Html> {
  const { look, source, bill, differences, earlier, nameOf, csrf } = given;
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
  const isCostless = totals.costs.length === 0 && traces > 0;
  const gaps = gapsOf(bill);
  const items = openItemsOf(openPointsOf(look.open.filter((one) => !without.includes(one.workspaceId))));
  const warn = (mark: string, what: Html | string, details: Html | string): Todo => ({
    tone: "warn",
    mark,
    what,
    details,
  });
  const signed = [
    ...(gaps.unproved.length === 0
      ? []
      : [warn("◇", `Not proved: ${costsText(gaps.unproved)}`, gaps.unprovedNames.join("; "))]),
    ...bill.unloaded.map((one) =>
      warn(
        "○",
        html`Not included: workspace ${workspaceName(one)}`,
        `${counted(one.traces, "trace")}${one.costs.length === 0 ? "" : `, about ${costsText(one.costs)}`}; no sync loads it`,
      ),
    ),
    ...(without.length === 0
      ? []
      : [
          warn(
            "○",
            html`Left out: ${joined(without.map((id) => name(nameOf(id))))}`,
            "The close will not include these workspaces.",
          ),
        ]),
    warn(
      "○",
      `Not included: ${[...gaps.withoutCost, NOT_REPORTED].join("; ")}`,
      "Amounts are not known here.",
    ),
    ...(isCostless
      ? [
          warn(
            "○",
            "Without costs: no price is valid for these traces",
            prose(
              "The month has no costs until prices are imported and its costs are closed. `usage-etl prices import FILE` imports prices.",
            ),
          ),
        ]
      : []),
    ...items.map((one): Todo => {
      const own = differences.filter(({ meter }) => meter === one.meter);
      return {
        tone: "bad",
        mark: "≠",
        what: `Accepted: ${itemTitle(one)}`,
        details: html`${
          own.length === 0
            ? counted(one.days, "workspace day")
            : joined(
                own.slice(0, 5).map((each) => describeDifference(each)),
                html`<br>`,
              )
        }
          <br><a href="${address("/differences", { source: source.source, from: month.start, to: month.end })}">Both numbers</a>`,
      };
    }),
    ...earlier
      .slice(0, 12)
      .map((one) => warn("!", `Still open: ${monthTitle(one)}`, "Close months in order.")),
  ];
  const fields = { _csrf: csrf, source: source.source, digest, costs: isCostless ? "none" : undefined };
  return html`${kpis([
    ...(totals.costs.length === 0
      ? [{ label: "Estimated cost", value: "None" }]
      : totals.costs.map(({ cost, currency }) => ({
          label: "Estimated cost",
          value: money(amountOf(cost), currency),
          unit: currency,
        }))),
    { label: "Traces", value: count(traces) },
    { label: "Workspaces", value: count(required.length) },
    { label: "Accepted", value: count(accepted), note: "daily figures that differ" },
  ])}
    ${columns(
      box({ title: "You sign", span: 6, body: todos(signed) }),
      box({
        title: "Kept for good",
        span: 6,
        body: table({
          label: "Workspaces of the close",
          caption: `Traces by workspace${listed.length < totals.workspaces.length ? `: the ${MOST} largest of ${totals.workspaces.length}` : ""}`,
          heads: ["Workspace", numberHead("Traces")],
          rows: listed.map(
            (one) =>
              html`<tr><th scope="row" title="${one.workspaceId}">${name(one.name ?? one.workspaceId)}</th><td class="number">${count(one.traces)}</td></tr>`,
          ),
        }),
      }),
    )}
    ${notice("warn", "Closing cannot be undone. Later changes become adjustments. If figures change first, nothing is closed.")}
    <form method="post" action="/months/${month.name}/close">${hidden(fields)}
      <p><label><input type="checkbox" name="accept" value="yes" required> I accept this list for ${monthTitle(month)}</label></p>
      <button class="primary">Close ${monthTitle(month)}${isCostless && " without costs"}</button></form>`;
}

/** Returns whether the month may be closed: nothing keeps it open, or a person may accept what does. */
export function mayBeClosed(look: MonthLook, requested: CloseRequest): boolean {
  if (look.open.length === 0) return true;
  return (
    acceptanceOf(look).required.length > 0 &&
    stepsOf(look.open, requested).some(({ kind }) => kind === "accept")
  );
}

/** The commands that help, with the names of workspaces. */
export function nextSteps(
  { open }: Pick<MonthLook, "open">,
  requested: CloseRequest,
  nameOf: (workspaceId: string) => string,
): Html {
  const ids = [...new Set(open.map(({ workspaceId }) => workspaceId))];
  const named = (text: string) => ids.reduce((all, id) => all.replaceAll(id, nameOf(id)), text);
  return html`<ul class="steps">${stepsOf(open, requested).map(({ text }) => html`<li>${prose(named(text))}</li>`)}</ul>`;
}
