import { z } from "zod";
import { UsageError } from "../../core/base/errors.ts";
import { withoutAddresses } from "../../core/base/printable.ts";
import { rangeSentence } from "../../core/domain/coverage/range-status.ts";
import { dayOf } from "../../core/domain/time/days.ts";
import { ceilToGrid, DAY_MS } from "../../core/domain/time/stride.ts";
import { rangeOfBackfill } from "../../core/pipeline/sync/requested-range.ts";
import { namedWorkspaces } from "../../core/store/activity/reader-login.ts";
import {
  type Backfill,
  backfillOf,
  failureGroups,
  otherTasks,
  type Steering,
  steerBackfill,
} from "../../core/store/work/backfills.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  capital,
  count,
  dimensionTitle,
  fact,
  type Html,
  html,
  instant,
  joined,
  name,
  notice,
  prose,
  table,
} from "../../web/parts.ts";
import { seeQueues } from "../../web/queues-seen.ts";
import type { Context, Web } from "../../web/routes.ts";
import { stepAbout } from "../coverage/failure-steps.ts";
import { rangeTable, timeOf } from "./backfill-preview.ts";
import { bar, counts, dimensionsOf, rangeOf, stateOf } from "./backfills.page.ts";
import { backfillBudget, previewedSource } from "./plan-backfill.ts";

const MOST_GROUPS = 20;
const MOST_RANGES = 10;

const params = z.object({
  id: z
    .string()
    .regex(/^[1-9]\d{0,9}$/, "is not the number of a backfill")
    .transform(Number)
    .pipe(z.number().lt(2 ** 31)),
});
type Of = Context<unknown, { id: number }>;

export function addOneBackfill(web: Web): void {
  web.page("/backfills/:id", { params }, (context) => onePage(context));
  web.live("/backfills/:id/live", { params, everyMs: 2_000 }, async (context) =>
    fragment(context, await backfillOf(context.db, context.params.id)),
  );
  for (const action of ["pause", "resume", "cancel", "retry"] as const) {
    web.action(`/backfills/:id/${action}`, { params, body: z.unknown() }, (context) =>
      steer(context, action),
    );
  }
}

async function steer(context: Of, action: Steering): Promise<Page | { readonly redirect: string }> {
  const {
    store,
    actor,
    params: { id: backfillId },
    enqueue,
  } = context;
  try {
    const { source } = await steerBackfill(store, { backfillId, action, by: actor });
    if (action === "resume" || action === "retry") await enqueue(source);
    return { redirect: `/backfills/${backfillId}` };
  } catch (error) {
    // The backfill has ended, or another user was faster. The page shows its current state.
    if (!(error instanceof UsageError) || error.code === "backfill_unknown") throw error;
    const said = notice(
      "warn",
      html`<p>${prose(error.message)} Nothing was changed.</p><p>${prose(error.next)}</p>`,
    );
    return { ...(await onePage(context, said)), status: 409 };
  }
}

async function onePage(context: Of, said: Html = html``): Promise<Page> {
  const {
    db,
    isOperator,
    csrf,
    params: { id },
  } = context;
  const backfill = await backfillOf(db, id);
  const { source, stride, groupings, reprocess } = backfill;
  const [from, to] = [dayOf(Date.parse(backfill.from)), dayOf(ceilToGrid(Date.parse(backfill.to), DAY_MS))];
  const coverage = address("/coverage", { source, stride, from, to });
  return {
    title: `Backfill ${id}`,
    body: html`${said}
      <dl class="facts">
        ${fact("Range", html`${rangeOf(backfill)} by ${stride} (<a href="${coverage}">coverage</a>)`)}
        ${fact("Source", source)}
        ${fact("Dimensions", dimensionsOf(groupings))}
        ${fact("Workspaces", await workspacesOf(context, backfill))}
        ${fact("Fetches", reprocess === "all" ? "everything again" : "only what was missing or not final")}
        ${fact("Started", html`${instant(backfill.createdAt)}; who did it is in the <a href="/timeline?source=${encodeURIComponent(source)}">timeline</a>`)}
      </dl>
      ${isOperator && html`<form id="steer" method="post"><input type="hidden" name="_csrf" value="${csrf()}"></form>`}
      <div data-live="/backfills/${id}/live">${await fragment(context, backfill)}</div>`,
  };
}

async function workspacesOf({ db }: Of, { workspaceIds }: Backfill): Promise<Html> {
  if (workspaceIds.length === 0 || workspaceIds.length > 5) return count(workspaceIds.length);
  const names = new Map((await namedWorkspaces(db)).map((one) => [one.id, one.name]));
  return joined(workspaceIds.map((id) => name(names.get(id) ?? id)));
}

async function fragment(context: Of, backfill: Backfill): Promise<Html> {
  const { db, isOperator, masked } = context;
  const { backfillId, finishedAt, state, failed } = backfill;
  const isOver = finishedAt !== null;
  const groups =
    failed === 0
      ? []
      : await failureGroups(db, { backfillId, mostGroups: MOST_GROUPS, mostRanges: MOST_RANGES });
  return html`${isOver && html`<span data-live-ended></span>`}
    <p>${stateOf(backfill)} ${bar(backfill)}</p>
    ${counts(backfill)}
    ${isOver ? html`<p>${state === "cancelled" ? "Cancelled" : "Finished"}: ${instant(finishedAt)}.</p>` : await underWay(context, backfill)}
    ${isOperator && buttons(backfill)}
    ${groups.length > 0 && failures(groups, failed, masked)}
    ${isOver && (await outcome(context, backfill))}`;
}

async function underWay(context: Of, backfill: Backfill): Promise<Html> {
  const { db, config, now, masked } = context;
  const { backfillId, source, state, waiting, refused } = backfill;
  const found = config.sources.find(({ slug }) => slug === source);
  const [beside, known, held] = await Promise.all([
    otherTasks(db, backfillId),
    found && previewedSource(found, db),
    heldUp(context, source),
  ]);
  const budget = found && known && backfillBudget(known, { config: found, settings: config, now });
  return html`${refused !== null && notice("bad", html`<p>The platform refuses the key, so nothing of it is fetched: ${prose(masked ? withoutAddresses(refused) : refused)}</p><p>${prose("Correct the key. The backfill goes on once it is accepted; `usage-etl doctor` tries it.")}</p>`)}
    ${state === "paused" && notice("info", html`<p>It is paused: its fetch tasks wait until it is resumed. A task that a worker holds runs to its end.</p>`)}
    ${found === undefined && notice("warn", html`<p>Its source is not configured in this process.</p>`)}
    ${held !== undefined && notice("bad", html`<p>${prose(held)}</p>`)}
    <dl class="facts">
      ${state !== "paused" && budget !== undefined && fact("Time left", timeOf(waiting + beside.others, budget))}
      ${fact(
        "Before it",
        html`Routine syncs go first: ${count(beside.routine)} of their fetch tasks wait or are at work${
          beside.others !== 0 && html`, and ${count(beside.others)} of other backfills, the newest time first`
        }`,
      )}
    </dl>`;
}

async function heldUp(of: Of, source: string): Promise<string | undefined> {
  const { sources, unseen } = await seeQueues(of);
  if (unseen?.why === "away")
    return `${unseen.message} The backfill is stored in Postgres, and continues when Redis is back.`;
  if (sources?.get(source)?.workers !== 0) return undefined;
  return "No worker takes its fetch tasks now. They wait in Postgres, and go on once a worker runs. Start `usage-etl serve`.";
}

/** Each button submits the page's form, which has the session's token. This part of the page is replaced by updates. */
function buttons({ backfillId, state, failed }: Backfill): Html {
  const actions: Steering[] = [
    ...(failed > 0 && state !== "cancelled" ? (["retry"] as const) : []),
    ...(state === "running" ? (["pause"] as const) : []),
    ...(state === "paused" ? (["resume"] as const) : []),
    ...(state === "running" || state === "paused" ? (["cancel"] as const) : []),
  ];
  if (actions.length === 0) return html``;
  const labels: Partial<Record<Steering, string>> = {
    retry: `Retry the failed: ${failed.toLocaleString("en-US")}`,
    cancel: "Cancel this backfill",
  };
  return html`<ul class="orders">${actions.map((action) => {
    const button = html`<button id="order-${action}" form="steer" formaction="/backfills/${backfillId}/${action}" class="${action === "cancel" && "danger"}">${labels[action] ?? capital(action)}</button>`;
    if (action !== "cancel") return html`<li>${button}</li>`;
    return html`<li><details id="ask-cancel"><summary>Cancel…</summary>
      <p>What is loaded stays. What waits is not fetched by this backfill any more, and it cannot be resumed.</p>${button}</details></li>`;
  })}</ul>`;
}

function failures(groups: Awaited<ReturnType<typeof failureGroups>>, failed: number, masked: boolean): Html {
  const told = groups.reduce((sum, { tasks }) => sum + tasks, 0);
  return html`<section aria-labelledby="failures"><h2 id="failures">Failed fetch tasks</h2>
    ${groups.map(
      ({ code, tasks, message, ranges }) => html`<article>
        <h3><code>${code}</code>: ${count(tasks)}</h3>
        <p>${prose(masked ? withoutAddresses(message) : message)}</p>
        <p><strong>What to do:</strong> ${prose(stepAbout(code))}</p>
        ${table({
          label: `Ranges that failed with ${code}`,
          caption:
            tasks > ranges.length
              ? `The first ${ranges.length} of ${tasks.toLocaleString("en-US")} ranges`
              : "Ranges",
          heads: ["Range", "Per", "Dimension", "Workspaces"],
          rows: ranges.map(
            ({ from, to, stride, groupBy, workspaceIds }) =>
              html`<tr><th scope="row">${rangeOf({ from, to })}</th><td>${stride}</td><td>${dimensionTitle(groupBy)}</td><td>${
                workspaceIds.length === 1 ? html`<code>${workspaceIds[0]}</code>` : count(workspaceIds.length)
              }</td></tr>`,
          ),
        })}
      </article>`,
    )}
    ${told < failed && html`<p>${count(failed - told)} more failed with other codes.</p>`}
  </section>`;
}

async function outcome({ db }: Of, backfill: Backfill): Promise<Html> {
  const { sentence, open } = rangeSentence(await rangeOfBackfill(db, backfill));
  return html`<section aria-labelledby="range"><h2 id="range">Its range now</h2>
    <p>${sentence}</p>
    ${open.length > 0 && rangeTable(open, "Not loaded")}
  </section>`;
}
