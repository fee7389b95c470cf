import { z } from "zod";
import { shortInstant } from "../../../../domain/time/days.ts";
import { GROUPINGS } from "../../../../domain/usage/record.ts";
import { type Backfill, listBackfills } from "../../../../store/work/backfills.ts";
import { type Html, html } from "../../html.ts";
import { choice } from "../../parts/form.ts";
import { count, instant, twin } from "../../parts/text.ts";
import type { Web } from "../../routes.ts";
import { bar, stateOf } from "./progress.ts";

const PAGE = 25;
const LARGEST_ID = 2 ** 31;

export function addBackfillList(web: Web): void {
  const query = z.object({
    source: z.string().max(200).optional(),
    before: z.coerce.number().int().positive().max(LARGEST_ID).optional(),
  });
  web.page(
    "/backfills",
    { query, mayBeOld: true },
    async ({ query: { source, before }, db, config, who }) => {
      const chosen = source === "" ? undefined : source;
      const [shown, more] = split(await listBackfills(db, { source: chosen, before, most: PAGE + 1 }));
      const slugs = config.sources.map(({ slug }) => slug);
      const from = new URLSearchParams(chosen === undefined ? {} : { source: chosen });
      return {
        title: "Backfills",
        body: html`<p>A backfill loads a range on demand. It fetches what is missing, or everything again.</p>
        ${who.role === "operator" ? html`<p><a class="button" href="/backfills/new?${from}">New backfill</a></p>` : ""}
        ${slugs.length > 1 ? filter(slugs, chosen) : ""}
        ${shown.length === 0 ? html`<p class="quiet">There is no backfill${before === undefined ? "" : " before that one"}.</p>` : tableOf(shown)}
        ${more ? next(shown, chosen) : ""}
        ${twin(`usage-etl backfill list`)}`,
      };
    },
  );
}

function split(found: readonly Backfill[]): [shown: readonly Backfill[], more: boolean] {
  return [found.slice(0, PAGE), found.length > PAGE];
}

function filter(slugs: readonly string[], chosen: string | undefined): Html {
  const options = [{ value: "", text: "all" }, ...slugs.map((slug) => ({ value: slug, text: slug }))];
  return html`<form class="row" method="get" action="/backfills">${choice("Source", "source", options, chosen ?? "")}
    <button>Show</button></form>`;
}

function next(shown: readonly Backfill[], source: string | undefined): Html {
  const query = new URLSearchParams({
    before: String(shown.at(-1)?.backfillId ?? 1),
    ...(source && { source }),
  });
  return html`<p><a href="/backfills?${query}" rel="next">Older backfills</a></p>`;
}

function tableOf(backfills: readonly Backfill[]): Html {
  return html`<div class="scroll" role="region" tabindex="0" aria-label="Backfills">
    <table>
      <caption>Backfills, the newest first. The bar counts fetch tasks that ended.</caption>
      <thead><tr>${[
        "Backfill",
        "State",
        "Progress",
        "Fetch tasks",
        "Range",
        "Stride",
        "Dimensions",
        "Workspaces",
        "Source",
        "Started",
      ].map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
      <tbody>${backfills.map(
        (one) => html`<tr>
          <th scope="row"><a href="/backfills/${one.backfillId}">${one.backfillId}</a></th>
          <td>${stateOf(one)}</td>
          <td>${bar(one)}</td>
          <td>${count(one.total)}</td>
          <td>${rangeOf(one)}</td>
          <td>${one.stride}</td>
          <td>${dimensionsOf(one.groupings)}</td>
          <td>${count(one.workspaces)}</td>
          <td>${one.source}</td>
          <td>${instant(one.createdAt)}</td>
        </tr>`,
      )}</tbody>
    </table>
  </div>`;
}

export function rangeOf({ from, to }: Pick<Backfill, "from" | "to">): Html {
  return html`<span class="range">${shortInstant(from)} to ${shortInstant(to)}</span>`;
}

export function dimensionsOf(groupings: readonly string[]): string {
  return GROUPINGS.every((one) => groupings.includes(one)) ? "all" : groupings.join(", ");
}
