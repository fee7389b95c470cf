import { z } from "zod";
import { UsageError } from "../../../errors.ts";
import { listSources } from "../../../store/activity/overview.ts";
import { type Run, runsById } from "../../../store/activity/runs.ts";
import {
  listMoments,
  type Moment,
  TIMELINE_KINDS,
  type TimelineKind,
} from "../../../store/activity/timeline.ts";
import { RUN_KINDS } from "../../../store/work/runs.ts";
import { type Html, html } from "../html.ts";
import { cursorField, cursorText } from "../parts/cursor.ts";
import { choice } from "../parts/form.ts";
import { instant, name, twin } from "../parts/text.ts";
import type { Web } from "../routes.ts";
import { address } from "./months/links.ts";
import { entryOf, KIND_WORDS } from "./timeline/entry.ts";

const ON_A_PAGE = 50;
const SIGNS = { ok: "●", failed: "✕", missing: "!", provisional: "◐", "": "·" } as const;

const query = z.object({
  source: z.preprocess((given) => (given === "" ? undefined : given), z.string().max(63).optional()),
  kind: z.preprocess((given) => (given === "" ? undefined : given), z.enum(TIMELINE_KINDS).optional()),
  before: cursorField(z.tuple([z.iso.datetime({ precision: 6 }), z.enum(TIMELINE_KINDS), z.int().min(0)])),
});

/** What happened, and who did what. */
export function addTimeline(web: Web): void {
  web.page("/timeline", { query, mayBeOld: true }, async ({ db, query: { source, kind, before }, who }) => {
    const sources = (await listSources(db)).map((one) => one.source);
    if (source !== undefined && !sources.includes(source)) throw sourceUnknown(source, sources);
    const kinds = kind === undefined ? TIMELINE_KINDS : [kind];
    const moments = await listMoments(db, { source, kinds, before, most: ON_A_PAGE + 1 });
    const shown = moments.slice(0, ON_A_PAGE);
    const runs = await runsById(
      db,
      shown.filter(isRun).map(({ id }) => id),
    );
    const byId = new Map(runs.map((run) => [run.runId, run]));
    const last = moments.length > ON_A_PAGE ? shown.at(-1) : undefined;
    const older = last && cursorText([last.at, last.kind, last.id]);
    const kindFlags = kind !== undefined && isRunKind(kind) ? ` --kind ${kind}` : "";
    const sourceFlags = source === undefined ? "" : ` --source ${source}`;
    const body = html`${filterForm(sources, source, kind)}
      ${shown.length === 0 ? html`<p>Nothing of this is recorded${before === undefined ? "" : " before this place in the list"}.</p>` : list(shown, { byId, masked: who.role === "viewer", hasSources: sources.length > 1 })}
      ${older === undefined ? "" : html`<p><a href="${address("/timeline", { source, kind, before: older })}">Older entries</a></p>`}
      ${before === undefined ? "" : html`<p><a href="${address("/timeline", { source, kind })}">The newest entries</a></p>`}
      ${twin(`usage-etl runs list${kindFlags}${sourceFlags}`)}
      <p class="quiet">Runs, restatements and late changes are kept for USAGE_KEEP_HISTORY, all else for good.</p>`;
    return { title: "Timeline", body };
  });
}

function isRunKind(kind: TimelineKind): boolean {
  return (RUN_KINDS as readonly TimelineKind[]).includes(kind);
}

const isRun = ({ kind }: Moment) => isRunKind(kind);

function filterForm(sources: readonly string[], source: string | undefined, kind: string | undefined): Html {
  const all = { value: "", text: "all" };
  const kinds = TIMELINE_KINDS.map((value) => ({ value, text: KIND_WORDS[value] }));
  return html`<form class="row" method="get" action="/timeline">
    ${choice("Source", "source", [all, ...sources.map((value) => ({ value, text: value }))], source ?? "")}
    ${choice("Kind", "kind", [all, ...kinds], kind ?? "")}
    <button>Show</button>
  </form>`;
}

function list(
  moments: readonly Moment[],
  given: { byId: ReadonlyMap<number, Run>; masked: boolean; hasSources: boolean },
): Html {
  const { byId, masked, hasSources } = given;
  return html`<div class="scroll" role="region" tabindex="0" aria-label="Timeline">
    <table class="timeline"><caption>What happened, the newest first. Restatements are grouped by hour, late changes by day.</caption>
      <thead><tr><th scope="col">Time</th>${hasSources ? html`<th scope="col">Source</th>` : ""}<th scope="col">Kind</th>
        <th scope="col">What</th><th scope="col">Who</th></tr></thead>
      <tbody>${moments.map((moment) => {
        const { what, to, who, tone } = entryOf(
          moment,
          isRun(moment) ? byId.get(moment.id) : undefined,
          masked,
        );
        const word = KIND_WORDS[moment.kind];
        return html`<tr><th scope="row">${instant(moment.at)}</th>
          ${hasSources ? html`<td>${moment.source === null ? "all" : name(moment.source)}</td>` : ""}
          <td>${to === undefined ? word : html`<a href="${to}">${word}</a>`}</td>
          <td><span class="status ${tone}" aria-hidden="true">${SIGNS[tone]}</span> ${what}</td>
          <td>${who === undefined ? "" : name(who)}</td></tr>`;
      })}</tbody></table></div>`;
}

function sourceUnknown(source: string, sources: readonly string[]): UsageError {
  return new UsageError({
    code: "source_unknown",
    message: `There is no loaded source ${source}.`,
    next: `Choose one of: ${sources.join(", ") || "none yet; run `usage-etl sync` first"}.`,
  });
}
