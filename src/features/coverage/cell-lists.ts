import { parseJson } from "../../core/base/json.ts";
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

export function failureList(
  failures: readonly CellFailure[],
  { masked, isRequested }: { masked: boolean; isRequested: boolean },
): Html {
  if (failures.length === 0) return html`<p class="quiet">There is no failure.</p>`;
  return html`${failures.map((one) =>
    notice(
      one.state === "failed" ? "bad" : "warn",
      html`<p><strong>${span(one)}</strong> by ${one.stride}, dimension ${dimensionTitle(one.groupBy)}: ${one.state} with code <code>${one.code}</code>.</p>
      ${said(one.message, masked)}
      <p><strong>What to do:</strong> ${prose(stepAbout(one.code))}</p>
      <p>Attempts: ${count(one.attempts)}. Last: ${instant(one.failedAt)}, fetch ${count(one.fetchNumber)}. Next: ${isRequested ? html`with the first sync after ${instant(one.retryAt)}` : "none, because no sync requests it"}.</p>`,
    ),
  )}`;
}

function said(message: string, masked: boolean): Html {
  const [, request = "", status = "", body = ""] =
    /^([A-Z]+ \S+) responded with (\d{3}): (\{.*\})$/s.exec(message) ?? [];
  const detail = detailOf(body);
  if (detail === undefined) return html`<p>${shown(message, masked)}</p>`;
  return html`<p>The platform responded with ${status}: <q>${shown(detail, masked)}</q></p>
      <details><summary>The request</summary><code>${shown(request, masked)}</code></details>`;
}

function detailOf(body: string): string | undefined {
  try {
    const { detail } = parseJson(body) as { detail?: unknown };
    return typeof detail === "string" && detail.trim() !== "" ? detail : undefined;
  } catch {
    return undefined;
  }
}

function shown(message: string, masked: boolean): string {
  const text = printable(message).slice(0, 2000);
  return masked ? withoutAddresses(text) : text;
}

export function responseList(responses: readonly CurrentResponse[]): Html {
  return list("Responses in force", ["Part", "Dimension", "By", "State", "Fetch", "Requested", "Request"], {
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
