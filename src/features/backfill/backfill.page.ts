import { z } from "zod";
import { UsageError } from "../../core/base/errors.ts";
import { counted, withoutAddresses } from "../../core/base/printable.ts";
import { isLoaded, type RangeLine } from "../../core/domain/coverage/range-status.ts";
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
import { platformWords } from "../coverage/gap-list.ts";
import { rangeTable, timeOf } from "./backfill-preview.ts";
import { bar, counts, dimensionsOf, rangeOf, stateOf } from "./backfills.page.ts";
import { backfillBudget, previewedSource } from "./plan-backfill.ts";

const MOST_GROUPS = 20;
const MOST_RANGES = 10;

const params = z.object({
  id: z
    .string()
    .regex(/^[1-9]\d{0,9}$/, "is not the number of a load")
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
    title: `Load ${id}`,
    about: html`${rangeOf(backfill)} · ${source}`,
    body: html`${said}
      <div class="card" data-live="/backfills/${id}/live">${await fragment(context, backfill)}</div>
      <section class="card"><dl class="facts">
        ${fact("Range", html`${rangeOf(backfill)} by ${stride} (<a href="${coverage}">Data health</a>)`)}
        ${fact("Source", source)}
        ${fact("Dimensions", dimensionsOf(groupings))}
        ${fact("Workspaces", await workspacesOf(context, backfill))}
        ${fact("Loads", reprocess === "all" ? "everything again" : "only what is missing")}
        ${fact("Started", html`${instant(backfill.createdAt)}; <a href="/timeline?source=${encodeURIComponent(source)}">Timeline</a>`)}
      </dl></section>
      ${isOperator && html`<form id="steer" method="post"><input type="hidden" name="_csrf" value="${csrf()}"></form>`}
`,
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
    <p>${stateOf(backfill)} ${bar(backfill)}${isOver && html` <span class="quiet">${state === "cancelled" ? "Cancelled" : "Ended"} ${instant(finishedAt)}</span>`}</p>
    ${isOver && (await outcome(context, backfill))}
    ${isOperator && buttons(backfill)}
    ${counts(backfill)}
    ${!isOver && (await underWay(context, backfill))}
    ${groups.length > 0 && failures(groups, failed, masked)}`;
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
    ${state === "paused" && notice("info", html`<p>Paused. Its requests wait until you resume it.</p>`)}
    ${found === undefined && notice("warn", html`<p>Its source is not configured in this process.</p>`)}
    ${held !== undefined && notice("bad", html`<p>${prose(held)}</p>`)}
    <dl class="facts">
      ${state !== "paused" && budget !== undefined && fact("Time left", timeOf(waiting + beside.others, budget))}
      ${fact(
        "Waiting before it",
        html`${count(beside.routine)} requests of syncs${
          beside.others !== 0 && html`, ${count(beside.others)} of other loads`
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
    retry: `Retry failed (${failed.toLocaleString("en-US")})`,
    cancel: "Cancel this load",
  };
  return html`<ul class="orders">${actions.map((action) => {
    const button = html`<button id="order-${action}" form="steer" formaction="/backfills/${backfillId}/${action}" class="${action === "cancel" && "danger"}">${labels[action] ?? capital(action)}</button>`;
    if (action !== "cancel") return html`<li>${button}</li>`;
    return html`<li><details id="ask-cancel"><summary>Cancel…</summary>
      <p>Loaded figures stay. Waiting requests are dropped. A cancelled load cannot be resumed.</p>${button}</details></li>`;
  })}</ul>`;
}

function failures(groups: Awaited<ReturnType<typeof failureGroups>>, failed: number, masked: boolean): Html {
  const told = groups.reduce((sum, { tasks }) => sum + tasks, 0);
  return html`<section aria-labelledby="failures"><h2 id="failures">Failed requests</h2>
    ${groups.map(
      ({ code, tasks, message, ranges }) => html`<article>
        <h3><code>${code}</code>: ${count(tasks)}</h3>
        <p>${prose(masked ? withoutAddresses(saidBy(message)) : saidBy(message))}</p>
        <p>${prose(stepAbout(code))}</p>
        ${table({
          label: `Ranges that failed with ${code}`,
          caption:
            tasks > ranges.length
              ? `The first ${ranges.length} of ${tasks.toLocaleString("en-US")} ranges`
              : "Ranges",
          heads: ["Range", "Interval", "Dimension", "Workspaces"],
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

/** The platform's words, without the address of the request. */
function saidBy(message: string): string {
  const words = platformWords(message);
  return words === undefined ? message.replace(/^[A-Z]+ \S+ (?=responded)/, "The platform ") : `“${words}”`;
}

async function outcome({ db }: Of, backfill: Backfill): Promise<Html> {
  const lines = await rangeOfBackfill(db, backfill);
  const open = lines.filter((line) => !isLoaded(line));
  return html`<section aria-labelledby="range"><h2 id="range">${resultOf(lines, backfill.failed)}</h2>
    ${open.length > 0 && rangeTable(open, "Not loaded")}
  </section>`;
}

function resultOf(lines: readonly RangeLine[], failed: number): string {
  const sum = (some: readonly RangeLine[]) => some.reduce((all, { buckets }) => all + buckets, 0);
  const count = (number: number) => number.toLocaleString("en-US");
  const [all, final] = [sum(lines), sum(lines.filter(({ status }) => status === "final"))];
  if (all === 0) return "Result: no usage is expected in that range";
  const figures = lines.every(({ stride }) => stride === "day") ? "daily figures" : "figures";
  const parts = (["provisional", "failed", "unverified", "missing", "not_available"] as const).flatMap(
    (status) => {
      const number = sum(lines.filter((line) => line.status === status));
      return number === 0 ? [] : [`${count(number)} ${status.replace("_", " ")}`];
    },
  );
  const requests =
    failed > 0 && !parts.some((part) => part.endsWith("failed"))
      ? [`${counted(failed, "request")} failed`]
      : [];
  return `Result: ${count(final)} of ${count(all)} ${figures} final${[...parts, ...requests].map((part) => `; ${part}`).join("")}`;
}
