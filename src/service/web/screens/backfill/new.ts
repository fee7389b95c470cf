import { z } from "zod";
import { readWindows, windowsOf, writeWindows } from "../../../../domain/planning/planned-windows.ts";
import { UsageError } from "../../../../errors.ts";
import {
  type BackfillPreview,
  backfillBudget,
  type PreviewedSource,
  previewBackfill,
  previewedSource,
} from "../../../../pipeline/backfill/plan-backfill.ts";
import { overlapNotes, startShown } from "../../../../pipeline/backfill/start-backfill.ts";
import { endsInFuture, refuseOutside, workspacesOf } from "../../../../pipeline/backfill/wish.ts";
import { type Html, html } from "../../html.ts";
import { notice } from "../../parts/notice.ts";
import { prose, twin } from "../../parts/text.ts";
import type { Context, Page, Web } from "../../routes.ts";
import { ASKED, type Asked, type CheckedWish, checkAsked, commandsOf } from "./asked.ts";
import { askForm } from "./form.ts";
import { differenceOf, previewOf } from "./preview.ts";

/** Counting the records of years takes seconds, and somebody waits. */
const MOST_RECORDS = 20_000;

const STARTED = ASKED.extend({
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  shown_at: z.coerce.number().int().positive().max(8.64e15),
  windows: z.string().max(200_000).default(""),
});

type Of = Pick<Context<unknown, unknown>, "config" | "db" | "now" | "who" | "csrf">;

/** Asks what to load, shows what that would do, and starts what was shown. */
export function addNewBackfill(web: Web): void {
  web.page("/backfills/new", { query: ASKED }, (context) => newPage(context, context.query));
  web.action("/backfills/new", { body: STARTED }, async (context) => {
    const { body, store, config, actor, now, enqueue } = context;
    const { checked } = checkAsked(config, body);
    if (checked === undefined) return newPage(context, body);
    try {
      const source = await chosenSource(context, checked);
      const shown = { digest: body.digest, shownAt: body.shown_at, windows: readWindows(body.windows) };
      const started = await startShown(store, source, checked.wish, { shown, by: actor, now });
      if (started.outcome === "started") {
        await enqueue(source.slug);
        return { redirect: `/backfills/${started.backfillId}` };
      }
      const changed = notice(
        "warn",
        html`<p>The plan has changed since it was shown, so nothing was started. Look at it anew, and start it then.</p>
          ${differenceOf(started.difference)}`,
      );
      return { ...(await newPage(context, body, changed)), status: 409 };
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      // The page says it again, beside the form.
      return { ...(await newPage(context, body)), status: 409 };
    }
  });
}

/** The page with its form, and with a preview where enough was asked for. What makes no sense is said beside the form. */
async function newPage(context: Of, asked: Asked, said: Html = html``): Promise<Page> {
  const { config, db } = context;
  const slugs = config.sources.map(({ slug }) => slug);
  const { checked, problems } = checkAsked(config, asked);
  const about = config.sources.find(({ slug }) => slug === (asked.source ?? slugs[0]));
  const known = about && (await previewedSource(about, db));
  const workspaces = known?.names ?? [];
  const page = (below: Html, status: number) => ({
    title: "New backfill",
    body: html`${said}${askForm(asked, { slugs, workspaces })}${below}`,
    status,
  });
  if (problems.length > 0)
    return page(html`${problems.map((problem) => notice("warn", html`<p>${problem}</p>`))}`, 400);
  if (checked === undefined || known === undefined) return page(html``, 200);
  try {
    return page(await previewSection(context, { asked, checked, known }), 200);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return page(notice("warn", html`<p>${prose(error.message)}</p><p>${prose(error.next)}</p>`), 400);
  }
}

/** The source with the workspaces that were chosen. Error: `workspace_unknown`. */
async function chosenSource({ db }: Of, { source, workspaceIds }: CheckedWish): Promise<PreviewedSource> {
  const known = await previewedSource(source, db);
  return { ...known, workspaceIds: workspacesOf(workspaceIds, known.workspaceIds) };
}

async function previewSection(
  context: Of,
  { asked, checked, known }: { asked: Asked; checked: CheckedWish; known: PreviewedSource },
): Promise<Html> {
  const { config, db, now } = context;
  const { source, wish, workspaceIds } = checked;
  refuseOutside(known, wish.range, now);
  const chosen = { ...known, workspaceIds: workspacesOf(workspaceIds, known.workspaceIds) };
  const [preview, overlaps] = await Promise.all([
    previewBackfill(chosen, wish, { now, mostRecords: MOST_RECORDS }),
    overlapNotes(db, { slug: source.slug, ...wish }),
  ]);
  const future = endsInFuture(wish.range.end, preview.range?.end);
  const notes = [...(future === undefined ? [] : [future]), ...overlaps];
  const budget = backfillBudget(known, { config: source, settings: config, now });
  return html`<section aria-labelledby="preview"><h2 id="preview">Preview</h2>
    ${notes.map((note) => notice("info", html`<p>${prose(note)}</p>`))}
    ${known.stored === undefined ? notice("warn", html`<p>The source is not contacted yet, so nothing of it can be started. ${prose("Its first sync contacts it. `usage-etl sync` asks for one.")}</p>`) : ""}
    ${previewOf({ checked, preview, budget })}
    ${startForm(context, { asked, known, preview })}
    ${commandsOf(checked, asked).map((command) => twin(command))}
    ${config.sources.length > 1 ? html`<p class="quiet">The command means every configured source.</p>` : ""}
  </section>`;
}

/** Starts what the preview shows: the digest is that of its requests. */
function startForm(
  { who, csrf, now }: Of,
  { asked, known, preview }: { asked: Asked; known: PreviewedSource; preview: BackfillPreview },
): Html {
  const { tasks, digest } = preview;
  if (who.role !== "operator") return html`<p class="quiet">Operators can start it.</p>`;
  if (known.stored === undefined) return html``;
  if (tasks.length === 0)
    return notice(
      "info",
      html`<p>Nothing would be fetched. What is left out, and why, stands above. To fetch what is final all the same, choose everything again.</p>`,
    );
  const hidden: [string, string | undefined][] = [
    ["_csrf", csrf()],
    ["source", asked.source],
    ["from", asked.from],
    ["to", asked.to],
    ["stride", asked.stride],
    ["reprocess", asked.reprocess],
    ...asked.group_by.map((one): [string, string] => ["group_by", one]),
    ...asked.workspace.map((one): [string, string] => ["workspace", one]),
    ["digest", digest],
    ["shown_at", String(now)],
    ["windows", writeWindows(windowsOf(tasks))],
  ];
  const requests = `${tasks.length.toLocaleString("en-US")} request${tasks.length === 1 ? "" : "s"}`;
  return html`<form method="post" action="/backfills/new">
    ${hidden.map(([field, value]) => (value === undefined ? "" : html`<input type="hidden" name="${field}" value="${value}">`))}
    <button>Start this backfill: ${requests}</button>
  </form>`;
}
