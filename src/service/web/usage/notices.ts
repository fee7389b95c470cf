import type { UnpricedIn } from "../../../store/figures/unpriced-in.ts";
import { type Html, html } from "../html.ts";
import { notice } from "../parts/notice.ts";
import { name, prose } from "../parts/text.ts";
import { coverageAddress } from "./links.ts";
import type { Report } from "./report.ts";
import { COUNTED_WORDS, idWords, intervalsShown } from "./words.ts";

const MOST_WORKSPACES = 5;

/** What a reader must know before they believe the figures. */
export function claims(report: Report, unpriced: UnpricedIn | undefined): Html[] {
  const { question, gaps, provisional, total, workspaces } = report;
  const { per, perNote, asked, range, source, by, measure, today } = question;
  const notices: Html[] = [];
  if (perNote !== undefined) notices.push(notice("info", perNote));
  if (asked.from < source.dataStart)
    notices.push(
      notice(
        "info",
        `${measure === "cost" || measure === "traces" ? "Usage" : capital(COUNTED_WORDS[measure])} of ${source.slug} begins on ${source.dataStart}. There is none to show before.`,
      ),
    );
  if (workspaces === 0) {
    notices.push(
      notice(
        "warn",
        prose("No workspace of this source is known yet. `usage-etl sync --inline` loads its usage."),
      ),
    );
    return notices;
  }
  if (gaps.length > 0) {
    const dimension = measure === "cost" ? "workspace" : by;
    // The page of coverage is about traces of all tiers.
    const hasCoveragePage = measure === "cost" || measure === "traces";
    const named = gaps.slice(0, MOST_WORKSPACES);
    notices.push(
      notice(
        "warn",
        html`<p>The totals are not complete: a part of the range is not loaded by ${idWords({ by: dimension, measure }).one}. Missing is not zero.</p>
        <ul>${named.map(
          (gap) => html`<li>${name(gap.name ?? gap.workspaceId)}: ${intervalsShown(gap.missing, per)}.
            ${hasCoveragePage ? html`<a href="${coverageAddress({ ...question, by: dimension }, range, gap.workspaceId)}">See its coverage</a>` : ""}</li>`,
        )}</ul>
        ${gaps.length > named.length ? html`<p>The same is so for ${gaps.length - named.length} more of ${workspaces} workspaces. ${hasCoveragePage ? html`<a href="${coverageAddress({ ...question, by: dimension }, range)}">See all of them</a>` : ""}</p>` : ""}`,
      ),
    );
  }
  if (provisional.length > 0) {
    notices.push(notice("info", `Provisional, so it may still change: ${intervalsShown(provisional, per)}.`));
  }
  if (total.sum.isUnderWay)
    notices.push(notice("info", `${today} is under way: its figures grow until it ends.`));
  if (
    measure === "cost" &&
    total.sum.isComplete &&
    !total.sum.isFinal &&
    provisional.length === 0 &&
    !total.sum.isUnderWay
  ) {
    notices.push(
      notice(
        "info",
        "Costs are provisional where an earlier day of their month is: it may shift the volume tiers.",
      ),
    );
  }
  if (unpriced !== undefined) {
    const days =
      unpriced.firstDay === unpriced.lastDay
        ? unpriced.firstDay
        : `${unpriced.firstDay} to ${unpriced.lastDay}`;
    notices.push(
      notice(
        "warn",
        prose(
          `${unpriced.traces.toLocaleString("en-US")} traces have no valid price (${days}), so these costs leave them out. \`usage-etl export --view usage_unpriced_daily\` lists them.`,
        ),
      ),
    );
  }
  return notices;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
