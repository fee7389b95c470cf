import { z } from "zod";
import { intervalOf } from "../../core/domain/time/days.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import { type Backfill, listBackfills } from "../../core/store/work/backfills.ts";
import {
  ALL,
  address,
  card,
  choice,
  count,
  dimensionTitle,
  fact,
  type Html,
  html,
  instant,
  optional,
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
    const { db, config, isOperator } = context;
    const { source, before } = context.query;
    const found = await listBackfills(db, { source, before, most: PAGE + 1 });
    const shown = found.slice(0, PAGE);
    const older = address("/backfills", { before: shown.at(-1)?.backfillId, source });
    const slugs = config.sources.map(({ slug }) => slug);
    return {
      title: "Backfills",
      body: html`${isOperator && html`<p><a class="button" href="${address("/backfills/new", { source })}">New backfill</a></p>`}
        ${slugs.length > 1 && filter(slugs, source)}
        ${shown.length === 0 ? html`<p class="quiet">There is no backfill${before !== undefined && " before that one"}.</p>` : tableOf(shown)}
        ${found.length > PAGE && html`<p><a href="${older}" rel="next">Older backfills</a></p>`}`,
    };
  });
}

function filter(slugs: readonly string[], chosen: string | undefined): Html {
  return html`<form class="row" method="get" action="/backfills">${choice("Source", "source", [ALL, ...slugs], chosen ?? "")}
    <button>Show</button></form>`;
}

function tableOf(backfills: readonly Backfill[]): Html {
  return table({
    label: "Backfills",
    kind: "cards",
    caption: "Backfills, the newest first",
    heads: ["Backfill", "State", "Progress", "Fetch tasks", "Range", "Per", "Source", "Started"],
    rows: backfills.map((one) =>
      card(html`<a href="/backfills/${one.backfillId}">${one.backfillId}</a>`, [
        ["State", stateOf(one)],
        ["Progress", bar(one)],
        ["Fetch tasks", count(one.total)],
        ["Range", rangeOf(one)],
        ["Per", one.stride],
        ["Source", one.source],
        ["Started", instant(one.createdAt)],
      ]),
    ),
  });
}

export function rangeOf(range: Pick<Backfill, "from" | "to">): Html {
  return html`<span class="range">${rangeText(intervalOf(range))}</span>`;
}

export function dimensionsOf(groupings: Backfill["groupings"]): string {
  const isAll = GROUPINGS.every((one) => groupings.includes(one));
  return isAll ? "all" : groupings.map((one) => dimensionTitle(one)).join(", ");
}

const STATES = {
  running: { glyph: "▶", word: "running" },
  paused: { glyph: "‖", word: "paused" },
  cancelled: { glyph: "⊘", word: "cancelled" },
  done: { glyph: "✓", word: "done" },
} as const;

export function stateOf({ state, failed, refused }: Backfill): Html {
  const { glyph, word } = STATES[state];
  const isHeld = state === "running" && refused !== null;
  const failures = failed > 0 ? `, ${failed.toLocaleString("en-US")} failed` : "";
  const text = isHeld ? "held: the key is refused" : `${word}${failures}`;
  const kind = isHeld || failed > 0 ? "troubled" : state;
  return html`<span class="task-state ${kind}"><span aria-hidden="true">${isHeld || failed > 0 ? "!" : glyph}</span> ${text}</span>`;
}

export function bar({ backfillId, total, done, failed, waiting, state }: Backfill): Html {
  // Tasks that a cancel removed count as not ended.
  const ended = done + failed;
  const percent = total === 0 ? 100 : Math.floor((ended / total) * 100);
  const label = `Backfill ${backfillId}: ${ended} of ${total} fetch tasks ended`;
  return html`<progress max="${Math.max(total, 1)}" value="${total === 0 ? 1 : ended}" aria-label="${label}"></progress>
    <span class="number">${percent} %</span>
    ${total === 0 && state === "done" && html`<span class="quiet">without fetch tasks</span>`}
    <span class="visually-hidden">${done} done, ${failed} failed, ${waiting} waiting</span>`;
}

export function counts({ total, done, failed, waiting }: Backfill): Html {
  const cancelled = total - done - failed - waiting;
  return html`<dl class="facts">
    ${fact("Fetch tasks", count(total))}
    ${fact("Done", count(done))}
    ${fact("Failed", count(failed))}
    ${fact("Waiting or at work", count(waiting))}
    ${cancelled > 0 && fact("Cancelled", count(cancelled))}
  </dl>`;
}
