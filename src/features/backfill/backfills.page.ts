import { z } from "zod";
import { shortDays } from "../../core/domain/months/month.ts";
import { LOAD_STATUS, type LoadStatus } from "../../core/domain/proof/statuses.ts";
import { intervalOf } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import { type Backfill, listBackfills } from "../../core/store/work/backfills.ts";
import {
  address,
  button,
  count,
  dimensionTitle,
  fact,
  type Html,
  html,
  instant,
  optional,
  pill,
  table,
} from "../../web/parts.ts";
import { rangeText } from "../../web/query.ts";
import type { Web } from "../../web/routes.ts";

const PAGE = 25;
const LARGEST_ID = 2 ** 31;

const query = z.object({
  source: optional(z.string().max(200)),
  before: z.coerce.number().int().positive().max(LARGEST_ID).optional(),
});

export function addBackfillList(web: Web): void {
  web.page("/backfills", { query, header: { all: true } }, async (context) => {
    const { db, isOperator } = context;
    const { source, before } = context.query;
    const found = await listBackfills(db, { source, before, most: PAGE + 1 });
    const shown = found.slice(0, PAGE);
    const older = address("/backfills", { before: shown.at(-1)?.backfillId, source });
    const running = shown.filter((one) => loadStatus(one) === "running").length;
    return {
      title: "Loads",
      ...(running > 0 && { pill: pill(LOAD_STATUS.running, countText(running)) }),
      ...(isOperator && { actions: button(address("/backfills/new", { source }), "New load", "primary") }),
      body: html`${shown.length === 0 ? html`<p class="quiet">No loads${before !== undefined && " before this one"}.</p>` : tableOf(shown)}
        ${found.length > PAGE && html`<p><a href="${older}" rel="next">Older loads</a></p>`}`,
    };
  });
}

const countText = (number: number) => number.toLocaleString("en-US");

function tableOf(backfills: readonly Backfill[]): Html {
  return table({
    label: "Loads",
    kind: "two",
    caption: "Newest first",
    heads: [
      "Load",
      "Status",
      "Progress",
      html`<th scope="col" class="opt">Interval</th>`,
      html`<th scope="col" class="opt">Source</th>`,
      html`<th scope="col" class="opt">Started</th>`,
    ],
    rows: backfills.map(
      (
        one,
      ) => html`<tr><th scope="row"><a href="${address(`/backfills/${one.backfillId}`, { source: one.source })}">${rangeOf(one)}</a> <small>load ${one.backfillId}</small></th>
        <td class="lead">${stateOf(one)}</td>
        <td class="share">${bar(one)}</td>
        <td class="opt">${one.stride}</td><td class="opt">${one.source}</td><td class="opt">${instant(one.createdAt)}</td></tr>`,
    ),
  });
}

export function rangeOf(range: Pick<Backfill, "from" | "to">): Html {
  const isDays = [range.from, range.to].every((at) => Date.parse(at) % DAY_MS === 0);
  const days = { from: range.from.slice(0, 10), to: range.to.slice(0, 10) };
  return html`<span class="range">${isDays ? shortDays(days) : rangeText(intervalOf(range))}</span>`;
}

export function dimensionsOf(groupings: Backfill["groupings"]): string {
  const isAll = GROUPINGS.every((one) => groupings.includes(one));
  return isAll ? "all" : groupings.map((one) => dimensionTitle(one)).join(", ");
}

/** A load that has ended with a failed request is failed. A cancelled one has ended too. */
function loadStatus({ state, failed, waiting }: Backfill): LoadStatus {
  if (state === "paused") return "paused";
  if (state === "running" && waiting > 0) return "running";
  return failed > 0 ? "failed" : state === "running" ? "running" : "done";
}

export function stateOf(one: Backfill): Html {
  const status = LOAD_STATUS[loadStatus(one)];
  if (one.state === "running" && one.refused !== null) return pill(LOAD_STATUS.running, "key refused");
  if (one.state === "cancelled") return pill(status, "cancelled");
  return pill(status, one.failed > 0 ? `${countText(one.failed)} failed` : undefined);
}

export function bar({ backfillId, total, done, failed, waiting }: Backfill): Html {
  // Tasks that a cancel removed count as not ended.
  const ended = done + failed;
  const percent = total === 0 ? 100 : Math.floor((ended / total) * 100);
  const label = `Load ${backfillId}: ${ended} of ${total} requests ended`;
  return html`<progress max="${Math.max(total, 1)}" value="${total === 0 ? 1 : ended}" aria-label="${label}"></progress>
    <span class="number" title="${percent} %">${countText(done)} of ${countText(total)}</span><span class="visually-hidden"> done, ${failed} failed, ${waiting} waiting</span>`;
}

export function counts({ total, done, failed, waiting }: Backfill): Html {
  const cancelled = total - done - failed - waiting;
  return html`<dl class="facts">
    ${fact("Requests", count(total))}
    ${fact("Done", count(done))}
    ${fact("Failed", count(failed))}
    ${fact("Waiting", count(waiting))}
    ${cancelled > 0 && fact("Cancelled", count(cancelled))}
  </dl>`;
}
