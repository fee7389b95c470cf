import { parseJson } from "../../core/base/json.ts";
import { counted, printable, withoutAddresses } from "../../core/base/printable.ts";
import type { GridStride } from "../../core/domain/coverage/coverage-columns.ts";
import { shortDays } from "../../core/domain/months/month.ts";
import { FIGURE_STATUS } from "../../core/domain/proof/statuses.ts";
import { amountOf } from "../../core/domain/usage/amount.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import {
  address,
  button,
  dimensionTitle,
  type Html,
  html,
  instant,
  joined,
  money,
  name,
  postForm,
  todos,
} from "../../web/parts.ts";
import type { Gap } from "./gaps.store.ts";

const MOST = 20;

/** One row for each gap, with its reason and what to do. `csrf` is undefined for viewers. */
export function gapList(
  gaps: readonly Gap[],
  {
    masked,
    csrf,
    now,
  }: { readonly masked: boolean; readonly csrf: string | undefined; readonly now: number },
): Html {
  const { mark, tone } = FIGURE_STATUS.missing;
  const rows = gaps.slice(0, MOST).map((gap) => ({
    ...{ mark, tone },
    what: html`${shortDays(gap)} · ${name(gap.workspaceName ?? gap.workspaceId)} · ${byOf(gap)}`,
    details: html`${reasonOf(gap, masked)} ${moneyOf(gap)}
      ${gap.isRequested ? "A load of it waits or runs." : gap.failure !== null && html`Next retry ${instant(gap.failure.retryAt)}.`}`,
    action: html`<div class="actions">${csrf !== undefined && !gap.isRequested && retryForm(gap, { csrf, now })}${button(detailsOf(gap), "Details")}</div>`,
  }));
  return html`${todos(rows)}${gaps.length > MOST && html`<p class="quiet">${counted(gaps.length - MOST, "older gap")} not listed.</p>`}`;
}

function byOf({ groupings }: Gap): string {
  const isAll = groupings.length === GROUPINGS.length;
  return isAll ? "all dimensions" : `by ${groupings.map((one) => dimensionTitle(one)).join(", ")}`;
}

function detailsOf({ source, workspaceId, from, to }: Gap): string {
  return address("/cell", { source, workspace: workspaceId, from, to });
}

/** Requests only what is missing. `now`: sent twice, a form starts one load. */
export function retryForm(
  {
    source,
    stride,
    workspaceId,
    from,
    to,
    groupings,
  }: Pick<Gap, "source" | "workspaceId" | "from" | "to" | "groupings"> & { readonly stride?: GridStride },
  { csrf, now }: { readonly csrf: string; readonly now: number },
): Html {
  const dimensions = groupings.length === GROUPINGS.length ? [] : groupings;
  const fields = { source, stride, from, to, workspace: workspaceId, group_by: dimensions, shown_at: now };
  return postForm("/backfills/retry", { csrf, label: "Retry", fields });
}

function reasonOf({ failure }: Gap, masked: boolean): Html {
  if (failure === null) return html`Not loaded yet.`;
  const text =
    platformWords(failure.message) ??
    failure.message.replace(/^[A-Z]+ \S+ responded/, "The platform responded");
  const shown = printable(text).slice(0, 300);
  return html`“${masked ? withoutAddresses(shown) : shown}”`;
}

/** What the platform says in its response. Undefined: nothing in words. */
export function platformWords(message: string): string | undefined {
  const [, body = ""] = /^[A-Z]+ \S+ responded with \d{3}: (\{.*\})$/s.exec(message) ?? [];
  try {
    const { detail } = parseJson(body) as { detail?: unknown };
    return typeof detail === "string" && detail.trim() !== "" ? detail : undefined;
  } catch {
    return undefined;
  }
}

/** A workspace whose own figure is loaded lacks no money: its costs are not divided. */
function moneyOf({ groupings, costs }: Gap): Html {
  if (costs.length === 0) return html``;
  const amounts = joined(
    costs.map(({ currency, cost }) => html`${money(amountOf(cost), currency)} ${currency}`),
    " + ",
  );
  return groupings.includes("workspace")
    ? html`<strong>About ${amounts}</strong> not in the bill.`
    : html`<strong>${amounts}</strong> in the bill, not divided ${byOf({ groupings } as Gap)}.`;
}
