import { counted, printable, withoutAddresses } from "../../core/base/printable.ts";
import { intervalOf } from "../../core/domain/time/days.ts";
import { count, dimensionTitle, type Html, html, instant, notice, prose, table } from "../../web/parts.ts";
import { rangeText } from "../../web/query.ts";
import {
  type CellFacts,
  type CellFailure,
  type CellProof,
  type CurrentResponse,
  MOST,
} from "./cell-facts.store.ts";
import { stepAbout } from "./failure-steps.ts";
import { platformWords } from "./gap-list.ts";

const span = (of: { readonly from: string; readonly to: string }) => rangeText(intervalOf(of));

function list(
  caption: string,
  heads: readonly string[],
  { rows, none }: { rows: readonly (readonly (Html | string)[])[]; none: string },
): Html {
  if (rows.length === 0) return html`<p class="quiet">${none}</p>`;
  const lines = rows.map((cells) => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`);
  return html`${table({ caption, heads, rows: lines })}${rows.length >= MOST && html`<p class="quiet">Only ${MOST} are listed here. Choose a shorter range to see others.</p>`}`;
}

/** Each failure once, with the dimensions that have it. */
export function failureList(
  failures: readonly CellFailure[],
  { masked, isRequested, retry }: { masked: boolean; isRequested: boolean; retry: Html },
): Html {
  const same = Map.groupBy(failures, ({ from, to, stride, code, state, message }) =>
    JSON.stringify([from, to, stride, code, state, platformWords(message) ?? message]),
  );
  return html`${[...same.values()].map((all) => {
    const [one] = all as [CellFailure, ...CellFailure[]];
    const dimensions = [...new Set(all.map(({ groupBy }) => dimensionTitle(groupBy)))].join(", ");
    const most = Math.max(...all.map(({ attempts }) => attempts));
    return notice(
      one.state === "failed" ? "bad" : "warn",
      html`<p><strong>${span(one)}</strong>${one.stride === "hour" && " by hour"} · by ${dimensions}</p>
      ${said(one.message, masked)}
      <p>${prose(stepAbout(one.code))} ${isRequested ? html`Next retry ${instant(one.retryAt)}.` : "No sync requests it."}</p>
      <p class="quiet">${counted(most, "attempt")}, last ${instant(one.failedAt)}, code <code>${one.code}</code></p>`,
    );
  })}${retry}`;
}

function said(message: string, masked: boolean): Html {
  const words = platformWords(message);
  if (words === undefined) return html`<p>${shown(message, masked)}</p>`;
  return html`<p><q>${shown(words, masked)}</q></p>`;
}

function shown(message: string, masked: boolean): string {
  const text = printable(message).slice(0, 2000);
  return masked ? withoutAddresses(text) : text;
}

export function responseList(responses: readonly CurrentResponse[]): Html {
  return list("Stored responses", ["Part", "Dimension", "By", "State", "Fetch", "Requested", "Request"], {
    none: "Nothing is loaded here.",
    rows: responses.map((one) => [
      span(one),
      dimensionTitle(one.groupBy),
      one.stride,
      one.isFinal ? "final" : "provisional",
      count(one.fetchNumber),
      one.sumConfirmedAt === null
        ? instant(one.fetchedAt)
        : html`${instant(one.fetchedAt)}; unchanged in sum until ${instant(one.sumConfirmedAt)}`,
      requestOf(one),
    ]),
  });
}

function requestOf({ request }: CurrentResponse): Html {
  if (request === null) return html`<span class="quiet">no longer in the ledger of requests</span>`;
  const { groupBy, stride, workspaces, records, traces, runId } = request;
  return html`${span(request)} by ${dimensionTitle(groupBy)} and ${stride}, ${counted(workspaces, "workspace")}: ${count(records)} records, ${count(traces)} traces${runId !== null && html`; run ${count(runId)}`}`;
}

export function proofList(proofs: readonly CellProof[]): Html {
  return list(
    "Comparisons without a difference",
    ["Part", "Dimension", "By", "Compared with", "Requested", "Fetch"],
    {
      none: "It was not compared with the export or with a total.",
      rows: proofs.map((one) => [
        span(one),
        dimensionTitle(one.groupBy),
        one.stride,
        one.how === "export" ? "the export" : "a total of this time",
        instant(one.provedAt),
        count(one.fetchNumber),
      ]),
    },
  );
}

export function taskList({ tasks, withdrawn }: Pick<CellFacts, "tasks" | "withdrawn">): Html {
  return html`${tasks.map(
    (one) =>
      html`<p>A fetch task for ${span(one)} by ${one.stride}, dimension ${dimensionTitle(one.groupBy)}, is ${one.state}${
        one.backfillId === null
          ? " in a sync"
          : html` in <a href="/backfills/${one.backfillId}">backfill ${one.backfillId}</a>`
      }.</p>`,
  )}
  ${withdrawn.map(
    (one) =>
      html`<p>A zero of ${span(one)} by ${one.stride}, dimension ${dimensionTitle(one.groupBy)}, was withdrawn ${instant(one.invalidatedAt)}: access to the workspace was not proven.</p>`,
  )}`;
}
