import { describeDuration } from "../../../clock.ts";
import { describeOtherDifferences } from "../../../domain/proof/difference.ts";
import { type Advice, adviseOn, failureOf } from "../../../pipeline/advice.ts";
import { type FiringAlert, firingAlerts, staleAfterOf } from "../../../pipeline/alerts.ts";
import { syncBudget } from "../../../pipeline/sync/sync-budget.ts";
import {
  type SourceProgress,
  type SourceStatus,
  sourceProgress,
  sourceStatuses,
} from "../../../store/activity/overview.ts";
import { lastRuns, type Run } from "../../../store/activity/runs.ts";
import { type SourceTrust, trustOfSources } from "../../../store/coverage/trust.ts";
import type { Database } from "../../../store/db/database.ts";
import { inSnapshot } from "../../../store/db/snapshot.ts";
import { type MonthToDate, type RecentDay, recentUsage } from "../../../store/figures/recent-usage.ts";
import { within } from "../../http/within.ts";
import { type Html, html } from "../html.ts";
import { dayChart } from "../parts/chart.ts";
import { notice } from "../parts/notice.ts";
import { count, instant, prose, twin } from "../parts/text.ts";
import type { Context, QueuesView, Web } from "../routes.ts";

const DAYS = 30;
/** Somebody looks at the page: a Redis that is slow is told as such. */
const REDIS_WITHIN_MS = 1_000;

/** What is trusted, what is wrong, and what to do now. */
export function addOverview(web: Web): void {
  web.page("/", { mayBeOld: true }, async (context) => ({
    title: "Overview",
    body: html`<div data-live="/overview/live">${await overview(context)}</div>`,
  }));
  // It reads all sources, and syncs come minutes apart.
  web.live("/overview/live", { mayBeOld: true, everyMs: 15_000 }, overview);
}

type Asked = Context<unknown, unknown>;

async function overview(context: Asked): Promise<Html> {
  const [queues, shown] = await Promise.all([
    lookAtQueues(context),
    // As of one instant: a load between two statements would make what is shown contradict itself.
    inSnapshot(context.db, (db) => read(db, context)),
  ]);
  const { statuses, progress, trusts, recent, lastSyncs, alerts } = shown;
  const { config, now } = context;
  const known = new Set(statuses.map(({ source }) => source));
  const unopened = config.sources.filter(({ slug }) => !known.has(slug));
  const cards = statuses.map((status) => {
    const { source } = status;
    const of = <T extends { readonly source: string }>(all: readonly T[]) =>
      all.filter((one) => one.source === source);
    const [trust] = of(trusts);
    const [work] = of(progress);
    if (trust === undefined || work === undefined) return html``;
    const [lastSync = null] = of(lastSyncs);
    const firing = alerts.get(source) ?? [];
    const queue = queues.view?.sources.get(source);
    const nextSync = queue?.nextSync === undefined ? null : new Date(queue.nextSync).toISOString();
    const advice = adviseOn({
      ...{ source, trust, refused: status.refused, nextSync },
      // Without schedules somebody syncs by cron and needs no worker.
      workers: queue?.nextSync === undefined ? null : (queue.workers ?? null),
      redis: queues.problem,
      lastSyncFailure: failureOf(lastSync),
      isStale: firing.some(({ kind }) => kind === "stale"),
      openDifferences: status.openDifferences,
      unpriced: firing.some(({ kind }) => kind === "unpriced"),
    });
    const facts = { ...{ status, trust, work, lastSync, nextSync, alerts: firing, queues, now } };
    return card(context, { ...facts, advice, days: of(recent.days), month: of(recent.months)[0] });
  });
  return html`${queues.problem === null ? "" : notice("bad", queues.problem)}
    ${unopened.map(({ slug }) => notice("info", notContacted(slug, queues.view)))}
    ${cards}`;
}

/** It waits for its first sync, as each source does at first. */
function notContacted(slug: string, view: QueuesView | undefined): Html {
  const next = view?.sources.get(slug)?.nextSync;
  return html`<p>Source <strong>${slug}</strong> is not contacted yet, so nothing of it is loaded. Its first sync contacts it and loads it${next === undefined ? "" : html`, next at ${instant(next)}`}. This page shows it then.</p>
    <p>${prose("If that takes long, the log of the service says why. `usage-etl sync --inline` loads it at once.")}</p>`;
}

/** Six statements, however many sources there are. */
async function read(db: Database, { config }: Asked) {
  return {
    statuses: await sourceStatuses(db),
    progress: await sourceProgress(db),
    trusts: await trustOfSources(db),
    recent: await recentUsage(db, DAYS),
    lastSyncs: await lastRuns(db, "sync"),
    alerts: await firingAlerts(db, { staleAfterMs: staleAfterOf(config.syncEveryMs) }),
  };
}

interface Card {
  readonly status: SourceStatus;
  readonly trust: SourceTrust;
  readonly work: SourceProgress;
  readonly lastSync: Run | null;
  readonly nextSync: string | null;
  readonly alerts: readonly FiringAlert[];
  readonly now: number;
  readonly advice: Advice;
  readonly days: readonly RecentDay[];
  readonly month: MonthToDate | undefined;
}

function card(context: Asked, given: Card): Html {
  const { status, trust, work, lastSync, nextSync, alerts, now, advice, days, month } = given;
  const { source } = status;
  const where = `source=${encodeURIComponent(source)}`;
  return html`<section class="source" aria-labelledby="source-${source}">
    <h2 id="source-${source}">Source ${source}</h2>
    <p class="trust">${trusted(trust)}</p>
    ${notice(
      advice.kind,
      html`<p><strong>What to do now:</strong> ${advice.href === undefined ? prose(advice.sentence) : html`<a href="${advice.href}">${prose(advice.sentence)}</a>`}</p>
      ${advice.command === undefined ? "" : twin(advice.command)}`,
    )}
    ${alerts.map(({ kind, message }) => notice("warn", html`<p>Alert <code>${kind}</code>: ${prose(message)}</p>`))}
    <h3>Traces of the last ${DAYS} days</h3>
    ${days.length === 0 ? html`<p class="quiet">Nothing is loaded yet.</p>` : dayChart({ days, width: 900, height: 160, label: `Traces by day of source ${source}` })}
    <p><a href="/usage?${where}">Usage and costs</a></p>
    <dl class="facts">
      ${month === undefined ? "" : monthFacts(month)}
      <div><dt>Not loaded</dt><dd><a href="/coverage?${where}">${count(trust.openDays)} ended days x workspaces x dimensions</a></dd></div>
      <div><dt>Differences</dt><dd><a href="/differences?${where}">${count(status.openDifferences)} open, ${count(status.platformDisagrees)} where the platform contradicts itself</a>; ${count(status.restatements)} restatements of final counts${describeOtherDifferences(status.otherDifferences)}</dd></div>
      <div><dt>Failed ranges</dt><dd>${failures(status.failures)}</dd></div>
      <div><dt>Requests</dt><dd>${budget(context, source, trust)}</dd></div>
      <div><dt>Fetch tasks</dt><dd>${count(work.waiting)} wait, ${count(work.queued)} are queued</dd></div>
      <div><dt>Last sync</dt><dd>${lastSync === null ? "none is recorded" : html`${instant(lastSync.startedAt)}: ${lastSync.outcome.replace("_", " ")}${lastSync.reason === null ? "" : html`. ${prose(lastSync.reason)}`}`}</dd></div>
      <div><dt>Next sync</dt><dd>${next(nextSync, now)}</dd></div>
      <div><dt>Compared</dt><dd>with the export: ${at(work.lastReconciledAt)}; with totals: ${at(work.lastTotalsAt)}</dd></div>
    </dl>
    ${twin(`usage-etl status`)}
  </section>`;
}

/** The statement that people rely on. Both ends are exclusive in the data and inclusive here. */
function trusted({ dataStart, finalUntil, provedUntil }: SourceTrust): Html {
  const dayBefore = (day: string) => new Date(Date.parse(day) - 86_400_000).toISOString().slice(0, 10);
  if (finalUntil <= dataStart) return html`Not final yet, not even the first day, ${dataStart}.`;
  if (provedUntil === finalUntil) {
    return html`<strong>Final and proved until ${dayBefore(finalUntil)}</strong>, from the data start ${dataStart} on.`;
  }
  const proved =
    provedUntil <= dataStart
      ? "nothing of it is proved yet from the data start on"
      : html`<strong>final and proved until ${dayBefore(provedUntil)}</strong>`;
  return html`Final until ${dayBefore(finalUntil)}, ${proved}.`;
}

function monthFacts(given: MonthToDate): Html {
  const { month, traces, provisional, days, ended, before, runRate } = given;
  const missing = "a day is not loaded";
  const share =
    provisional === null || provisional === 0 ? "" : html`, of it ${count(provisional)} provisional`;
  return html`<div><dt>Traces in ${month}, today included</dt><dd>${count(traces, missing)}${share}</dd></div>
    <div><dt>Its first ${days} days, and those of the month before</dt><dd>${count(ended, missing)}; ${count(before, missing)}</dd></div>
    <div><dt>Traces in the whole month, at the rate of its final days</dt><dd>${count(runRate, missing)}</dd></div>`;
}

function failures(groups: Card["status"]["failures"]): Html {
  if (groups.length === 0) return html`none`;
  return html`<ul>${groups.map(
    ({ state, code, parts, nextRetry }) =>
      html`<li>${count(parts)} ${state} with <code>${code}</code>${nextRetry === null ? "" : html`, next attempt ${instant(nextRetry)}`}</li>`,
  )}</ul>`;
}

function budget({ config, now }: Asked, source: string, trust: SourceTrust): Html {
  const found = config.sources.find(({ slug }) => slug === source);
  if (found === undefined) return html`not known: the source is not configured here`;
  const { needed, allowed, problem } = syncBudget(
    {
      ...{ config: found, settings: config, dataStart: Date.parse(trust.dataStart) },
      workspaces: trust.workspaceIds.map((workspaceId) => ({ workspaceId })),
      capabilities: new Set(trust.capabilities),
      meters: new Map(trust.meters),
      strideRetries: new Set<never>(),
    },
    now,
  );
  return html`a sync needs ${count(needed)}; the rate limit allows ${count(allowed)} until the next
    ${problem === undefined ? "" : notice("warn", html`<p>${prose(problem.message)} ${prose(problem.next)}</p>`)}`;
}

function next(nextSync: string | null, now: number): Html {
  if (nextSync === null) return html`not known: no schedule is seen`;
  const lateMs = now - Date.parse(nextSync);
  // How long until then would change with every look.
  return html`${instant(nextSync)}${lateMs > 0 ? `, due for ${describeDuration(lateMs)}` : ""}`;
}

function at(iso: string | null): Html {
  return iso === null ? html`never` : instant(iso);
}

/** What Redis shows, or why it does not. */
async function lookAtQueues({
  lookAtQueues: look,
}: Asked): Promise<{ view?: QueuesView; problem: string | null }> {
  if (look === undefined) return { problem: null };
  try {
    return { view: await within(look(), REDIS_WITHIN_MS), problem: null };
  } catch (error) {
    return { problem: `Redis cannot be read now: ${error instanceof Error ? error.message : String(error)}` };
  }
}
