import { describeDuration } from "../../../clock.ts";
import { describeOtherDifferences } from "../../../domain/proof/difference.ts";
import { addDays } from "../../../domain/time/days.ts";
import { reportOnSources, type SourceReport } from "../../../pipeline/advice.ts";
import type { SyncBudget } from "../../../pipeline/sync/sync-budget.ts";
import type { SourceStatus } from "../../../store/activity/overview.ts";
import type { SourceTrust } from "../../../store/coverage/trust.ts";
import { type MonthToDate, recentUsage } from "../../../store/figures/recent-usage.ts";
import { timeChart } from "../chart.ts";
import { count, type Html, html, instant, notice, prose, twin } from "../parts.ts";
import { type QueuesSeen, seeQueues } from "../queues-seen.ts";
import type { Context, Web } from "../routes.ts";

const DAYS = 30;

/** What is trusted, what is wrong, and what to do now. */
export function addOverview(web: Web): void {
  web.page("/", { mayBeOld: true, oneInstant: true }, async (context) => ({
    title: "Overview",
    body: html`<div data-live="/overview/live">${await overview(context)}</div>`,
  }));
  // It reads all sources, and syncs come minutes apart.
  web.live("/overview/live", { mayBeOld: true, oneInstant: true, everyMs: 15_000 }, overview);
}

type Asked = Context<unknown, unknown>;

async function overview(context: Asked): Promise<Html> {
  const { db, config, now } = context;
  const looking = seeQueues(context);
  const recent = await recentUsage(db, DAYS);
  const asAdvised = looking.then(({ sources, unseen }) => ({
    sources,
    problem: unseen?.why === "away" ? unseen.message : null,
  }));
  const reports = await reportOnSources(db, { config, now, queues: asAdvised });
  const queues = await looking;
  const known = new Set(reports.map(({ status }) => status.source));
  const unopened = config.sources.filter(({ slug }) => !known.has(slug));
  return html`${queues.unseen === null ? "" : notice(queues.unseen.why === "late" ? "info" : "bad", queues.unseen.message)}
    ${unopened.map(({ slug }) => notice("info", notContacted(slug, queues)))}
    ${reports.map((report) => card(report, { recent, now }))}`;
}

/** It waits for its first sync, as each source does at first. */
function notContacted(slug: string, { sources }: QueuesSeen): Html {
  const next = sources?.get(slug)?.nextSync;
  return html`<p>Source <strong>${slug}</strong> is not contacted yet, so nothing of it is loaded. Its first sync contacts it and loads it${next === undefined ? "" : html`, next at ${instant(next)}`}. This page shows it then.</p>
    <p>${prose("If that takes long, the log of the service says why. `usage-etl sync --inline` loads it at once.")}</p>`;
}

type RecentUsage = Awaited<ReturnType<typeof recentUsage>>;

function card(report: SourceReport, { recent, now }: { recent: RecentUsage; now: number }): Html {
  const { status, trust, progress, lastSync, nextSync, alerts, advice } = report;
  const { source } = status;
  const where = `source=${encodeURIComponent(source)}`;
  const days = recent.days.filter((one) => one.source === source);
  const month = recent.months.find((one) => one.source === source);
  const points = days.map(({ date, traces, isFinal }) => ({ at: date, value: traces, isFinal }));
  const label = `Traces by day of source ${source}`;
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
    ${days.length === 0 ? html`<p class="quiet">Nothing is loaded yet.</p>` : timeChart({ points, unit: "traces", width: 900, height: 160, label })}
    <p><a href="/usage?${where}">Usage and costs</a></p>
    <dl class="facts">
      ${month === undefined ? "" : monthFacts(month)}
      <div><dt>Not loaded</dt><dd><a href="/coverage?${where}">${trust.openDays === 0 ? "nothing is missing" : html`${count(trust.openDays)} ended days x workspaces x dimensions`}</a></dd></div>
      <div><dt>Differences</dt><dd><a href="/differences?${where}">${count(status.openDifferences)} open, ${count(status.platformDisagrees)} where the platform contradicts itself</a>; ${count(status.restatements)} restatements of final counts${describeOtherDifferences(status.otherDifferences)}</dd></div>
      <div><dt>Failed ranges</dt><dd>${failures(status.failures)}</dd></div>
      <div><dt>Requests</dt><dd>${describeBudget(report.budget)}</dd></div>
      <div><dt>Fetch tasks</dt><dd>${count(progress.waiting)} wait, ${count(progress.queued)} are queued</dd></div>
      <div><dt>Last sync</dt><dd>${lastSync === null ? "none is recorded" : html`${instant(lastSync.startedAt)}: ${lastSync.outcome.replace("_", " ")}${lastSync.reason === null ? "" : html`. ${prose(lastSync.reason)}`}`}</dd></div>
      <div><dt>Next sync</dt><dd>${next(nextSync, now)}</dd></div>
      <div><dt>Compared</dt><dd>with the export: ${at(progress.lastReconciledAt)}; with totals: ${at(progress.lastTotalsAt)}</dd></div>
    </dl>
    ${twin(`usage-etl status`)}
  </section>`;
}

/** The statement that people rely on. Both ends are exclusive in the data and inclusive here. */
function trusted({ dataStart, finalUntil, provedUntil }: SourceTrust): Html {
  if (finalUntil <= dataStart) return html`Not final yet, not even the first day, ${dataStart}.`;
  if (provedUntil === finalUntil) {
    return html`<strong>Final and proved until ${addDays(finalUntil, -1)}</strong>, from the data start ${dataStart} on.`;
  }
  const proved =
    provedUntil <= dataStart
      ? "nothing of it is proved yet from the data start on"
      : html`<strong>final and proved until ${addDays(provedUntil, -1)}</strong>`;
  return html`Final until ${addDays(finalUntil, -1)}, ${proved}.`;
}

function monthFacts(given: MonthToDate): Html {
  const { month, traces, provisional, days, ended, before, runRate } = given;
  const missing = "a day is not loaded";
  const share =
    provisional === null || provisional === 0 ? "" : html`, of it ${count(provisional)} provisional`;
  return html`<div><dt>Traces in ${month}, today included</dt><dd>${count(traces, missing)}${share}</dd></div>
    <div><dt>Month to date (${days} days), and the same days of last month</dt><dd>${count(ended, missing)}; ${count(before, missing)}</dd></div>
    <div><dt>Traces in the whole month, at the rate of its final days</dt><dd>${count(runRate, missing)}</dd></div>`;
}

function failures(groups: SourceStatus["failures"]): Html {
  if (groups.length === 0) return html`none`;
  return html`<ul>${groups.map(
    ({ state, code, parts, nextRetry }) =>
      html`<li>${count(parts)} ${state} with <code>${code}</code>${nextRetry === null ? "" : html`, next attempt ${instant(nextRetry)}`}</li>`,
  )}</ul>`;
}

function describeBudget(budget: SyncBudget | null): Html {
  if (budget === null) return html`not known: the source is not configured here`;
  const { needed, allowed, problem } = budget;
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
