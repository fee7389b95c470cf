import { z } from "zod";
import type { Config } from "../../core/base/config.ts";
import { UsageError } from "../../core/base/errors.ts";
import { readInstant } from "../../core/base/instant.ts";
import { counted } from "../../core/base/printable.ts";
import { isDay } from "../../core/domain/time/days.ts";
import { STRIDES } from "../../core/domain/time/stride.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import type { NamedWorkspace } from "../../core/store/activity/reader-login.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  box,
  choice,
  columns,
  dayField,
  dimensionTitle,
  type Html,
  hidden,
  html,
  lastDayField,
  name,
  notice,
  postForm,
  prose,
  refusal,
} from "../../web/parts.ts";
import type { Context, Web } from "../../web/routes.ts";
import { type CheckedRequest, previewOf } from "./backfill-preview.ts";
import { type BackfillRequest, endsInFuture, refuseOutside, workspacesOf } from "./backfill-request.ts";
import {
  type BackfillPreview,
  backfillBudget,
  digestOf,
  type PreviewedSource,
  planBackfill,
  previewBackfill,
  previewedSource,
} from "./plan-backfill.ts";
import { overlapNotes, startShown } from "./start-backfill.ts";

/** Counting the records of years would take seconds while a user waits. */
const MOST_RECORDS = 20_000;

const text = z.string().max(200).optional();
const several = z
  .union([z.string().max(200), z.array(z.string().max(200)).max(1000)])
  .optional()
  .transform((given) => [given ?? []].flat().filter((one) => one !== ""));

/** Fields of the form, in a query or a body. They are not checked yet, so that the form keeps what was typed. */
const REQUESTED = z.object({
  source: text,
  from: text,
  to: text,
  stride: text,
  reprocess: text,
  group_by: several,
  workspace: several,
});
type Requested = z.output<typeof REQUESTED>;

const oneOf = <const T extends readonly string[]>(what: string, words: T) =>
  z.enum(words, { error: ({ input }) => `${what} ${input} is not one of ${words.join(", ")}.` });
const CHOSEN = z.object({
  stride: oneOf("Stride", STRIDES).default("day"),
  reprocess: z
    .enum(["missing", "all"], { error: ({ input }) => `Choose missing or all, not ${input}.` })
    .default("missing"),
  group_by: z.array(oneOf("Dimension", GROUPINGS)),
});

const STARTED = REQUESTED.extend({
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  shown_at: z.coerce.number().int().positive().max(8.64e15),
});

type Of = Pick<Context, "config" | "db" | "now" | "isOperator" | "csrf">;

export function addNewBackfill(web: Web): void {
  web.page("/backfills/new", { query: REQUESTED }, (context) => newPage(context, context.query));
  web.action("/backfills/retry", { body: RETRIED }, retry);
  web.action("/backfills/new", { body: STARTED }, async (context) => {
    const { body, store, config, actor, now, enqueue } = context;
    const { checked } = checkRequested(config, body);
    if (checked === undefined) return newPage(context, body);
    try {
      const source = await chosenSource(context, checked);
      const shown = { digest: body.digest, shownAt: body.shown_at };
      const started = await startShown(store, source, checked.backfillRequest, { shown, by: actor, now });
      if (started.outcome === "started") {
        await enqueue(source.slug);
        return { redirect: `/backfills/${started.backfillId}` };
      }
      const changed = notice(
        "warn",
        html`<p>The plan has changed since this preview. Nothing was started. Check the new preview, then start it.</p>`,
      );
      return { ...(await newPage(context, body, changed)), status: 409 };
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      return { ...(await newPage(context, body)), status: 409 };
    }
  });
}

/** Starts a load of what is missing without a preview. Where nothing can be started, the form of a new load says why. */
const RETRIED = REQUESTED.extend({ shown_at: STARTED.shape.shown_at });

async function retry(context: Context & { readonly body: z.output<typeof RETRIED> }) {
  const { config, store, now, actor, enqueue } = context;
  const { shown_at: shownAt, ...body } = context.body;
  const { checked } = checkRequested(config, body);
  if (checked !== undefined) {
    const source = await chosenSource(context, checked);
    const { backfillRequest } = checked;
    const { tasks } = await planBackfill(source, backfillRequest, now);
    const shown = { digest: digestOf(source, backfillRequest, tasks), shownAt };
    const started =
      tasks.length > 0 && (await startShown(store, source, backfillRequest, { shown, by: actor, now }));
    if (started && started.outcome === "started") {
      await enqueue(source.slug);
      return { redirect: `/backfills/${started.backfillId}` };
    }
  }
  return { redirect: address("/backfills/new", body) };
}

async function newPage(context: Of, requested: Requested, said: Html = html``): Promise<Page> {
  const { config, db } = context;
  const slugs = config.sources.map(({ slug }) => slug);
  const { checked, problems } = checkRequested(config, requested);
  const about = config.sources.find(({ slug }) => slug === (requested.source ?? slugs[0]));
  const known = about && (await previewedSource(about, db));
  const workspaces = known?.names ?? [];
  const page = (below: Html, status: number) => ({
    title: "New load",
    body: html`${said}${columns(box({ title: "What to load", body: requestForm(requested, { slugs, workspaces }) }))}${below}`,
    status,
  });
  if (problems.length > 0)
    return page(html`${problems.map((problem) => notice("warn", html`<p>${problem}</p>`))}`, 400);
  if (checked === undefined || known === undefined) return page(html``, 200);
  try {
    return page(await previewSection(context, { requested, checked, known }), 200);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return page(refusal(error), 400);
  }
}

async function chosenSource({ db }: Of, { source, workspaceIds }: CheckedRequest): Promise<PreviewedSource> {
  const known = await previewedSource(source, db);
  return { ...known, workspaceIds: workspacesOf(workspaceIds, known.workspaceIds) };
}

async function previewSection(
  context: Of,
  { requested, checked, known }: { requested: Requested; checked: CheckedRequest; known: PreviewedSource },
): Promise<Html> {
  const { config, db, now } = context;
  const { source, backfillRequest, workspaceIds } = checked;
  refuseOutside(known, backfillRequest.range, now);
  const chosen = { ...known, workspaceIds: workspacesOf(workspaceIds, known.workspaceIds) };
  const [preview, overlaps] = await Promise.all([
    previewBackfill(chosen, backfillRequest, { now, mostRecords: MOST_RECORDS }),
    overlapNotes(db, { slug: source.slug, ...backfillRequest }),
  ]);
  const future = endsInFuture(backfillRequest.range.end, preview.range?.end);
  const notes = [...(future === undefined ? [] : [future]), ...overlaps];
  const budget = backfillBudget(known, { config: source, settings: config, now });
  return html`<section class="card" aria-labelledby="preview"><h2 id="preview">Preview</h2>
    ${notes.map((note) => notice("info", html`<p>${prose(note)}</p>`))}
    ${known.stored === undefined && notice("warn", html`<p>The source is not contacted yet, so nothing of it can be started. ${prose("Its first sync contacts it. `usage-etl sync` asks for one.")}</p>`)}
    ${previewOf({ checked, preview, budget })}
    ${startForm(context, { requested, known, preview })}
  </section>`;
}

/** The digest is that of the previewed requests, so the form starts exactly these. */
function startForm(
  { isOperator, csrf, now }: Of,
  { requested, known, preview }: { requested: Requested; known: PreviewedSource; preview: BackfillPreview },
): Html {
  const { tasks, digest } = preview;
  if (!isOperator) return html`<p class="quiet">Operators can start it.</p>`;
  if (known.stored === undefined) return html``;
  if (tasks.length === 0)
    return notice(
      "info",
      html`<p>Nothing to load: all of it is skipped. Choose everything again to reload final figures.</p>`,
    );
  return postForm("/backfills/new", {
    csrf: csrf(),
    label: `Start this load: ${counted(tasks.length, "request")}`,
    fields: { ...requested, digest, shown_at: now },
  });
}

function requestForm(
  requested: Requested,
  { slugs, workspaces }: { slugs: readonly string[]; workspaces: readonly NamedWorkspace[] },
): Html {
  return html`<form method="get" action="/backfills/new" class="ask">
    <div class="row">
      ${hidden({ source: requested.source ?? slugs[0] })}
      ${isDayOrNothing(requested.from) ? dayField("From", "from", requested.from) : instantField("From", "from", requested.from)}
      ${isDayOrNothing(requested.to) ? lastDayField(requested.to || undefined) : instantField("To (not included)", "to", requested.to)}
      ${choice("Interval", "stride", STRIDES, requested.stride ?? "day")}
    </div>
    <fieldset><legend>Dimensions (none chosen: all)</legend>
      ${GROUPINGS.map((one) => tick("group_by", one, html`${dimensionTitle(one)}`, requested.group_by.includes(one)))}
    </fieldset>
    <fieldset><legend>Load</legend>
      ${radio("missing", "Only what is missing", requested.reprocess !== "all")}
      ${radio("all", "Everything again (changes of final figures become restatements)", requested.reprocess === "all")}
    </fieldset>
    <details ${requested.workspace.length > 0 && "open"}><summary>Only some workspaces</summary>
      <fieldset class="many"><legend>Workspaces (none chosen: all)</legend>
        ${workspaces.map(({ id, name: text }) =>
          tick(
            "workspace",
            id,
            html`${name(text ?? id)} <code>${id}</code>`,
            requested.workspace.includes(id),
          ),
        )}
        ${workspaces.length === 0 && html`<p class="quiet">No workspace is known yet.</p>`}
      </fieldset>
    </details>
    <p><button>Preview</button></p>
  </form>`;
}

/** A browser's date field would drop the hours of an instant. */
function instantField(label: string, field: string, value: string | undefined): Html {
  return html`<label>${label}
    <input type="text" name="${field}" value="${value}">
  </label>`;
}

function isDayOrNothing(value = ""): boolean {
  return value === "" || isDay(value);
}

function tick(field: string, value: string, label: Html, isChosen: boolean): Html {
  return html`<label><input type="checkbox" name="${field}" value="${value}" ${isChosen && "checked"}> <span>${label}</span></label>`;
}

function radio(value: string, label: string, isChosen: boolean): Html {
  return html`<label><input type="radio" name="reprocess" value="${value}" ${isChosen && "checked"}> <span>${label}</span></label>`;
}

function checkRequested(
  { sources }: Config,
  requested: Requested,
): { readonly checked?: CheckedRequest; readonly problems: readonly string[] } {
  const source = sources.find(({ slug }) => slug === (requested.source ?? sources[0]?.slug));
  const problems: string[] = [];
  if (source === undefined) problems.push(`Source ${requested.source ?? ""} is not configured here.`);
  const { data: chosen, error } = CHOSEN.safeParse(requested);
  problems.push(...(error?.issues.map(({ message }) => message) ?? []));
  if ((requested.from ?? "") === "" && (requested.to ?? "") === "") return { problems };
  const start = instantOf("From", requested.from, problems);
  const end = instantOf("To", requested.to, problems);
  if (start !== undefined && end !== undefined && start >= end)
    problems.push(
      `The range from ${requested.from} ends before ${requested.to}, which leaves nothing. Give a last day that is later.`,
    );
  if (problems.length > 0 || chosen === undefined || source === undefined) return { problems };
  if (start === undefined || end === undefined) return { problems };
  const { stride, reprocess } = chosen;
  const groupings = GROUPINGS.filter((one) => chosen.group_by.length === 0 || chosen.group_by.includes(one));
  const backfillRequest: BackfillRequest = {
    meter: "traces",
    range: { start, end },
    stride,
    groupings,
    reprocess,
  };
  const ids = [...new Set(requested.workspace.map((id) => id.toLowerCase()))].sort();
  return { checked: { source, backfillRequest, workspaceIds: ids.length === 0 ? undefined : ids }, problems };
}

function instantOf(label: string, given: string | undefined, problems: string[]): number | undefined {
  if (given === undefined || given === "") {
    problems.push(`${label} is missing. Give both days.`);
    return undefined;
  }
  const read = readInstant(given);
  if (typeof read === "number") return read;
  problems.push(`${label}: ${given} cannot be used. ${read}`);
  return undefined;
}
