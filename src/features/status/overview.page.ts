import { describeDuration } from "../../core/base/clock.ts";
import { counted } from "../../core/base/printable.ts";
import { type CalendarMonth, monthNamed, monthTitle } from "../../core/domain/months/month.ts";
import { describeOtherDifferences } from "../../core/domain/proof/difference.ts";
import { describeRestatements } from "../../core/domain/proof/restatement.ts";
import { addDays } from "../../core/domain/time/days.ts";
import { amountOf } from "../../core/domain/usage/amount.ts";
import { FORECAST_DAYS, FORECAST_METHOD, monthForecast } from "../../core/domain/usage/forecast.ts";
import { namesOf } from "../../core/pipeline/never-read.ts";
import { describePutOff, type SyncBudget } from "../../core/pipeline/sync/sync-budget.ts";
import type { SourceStatus } from "../../core/store/activity/overview.ts";
import { MOST_PARTS, timeChart, UNUSUAL_NOTE } from "../../web/chart.ts";
import {
  address,
  count,
  fact,
  type Html,
  html,
  instant,
  money,
  name,
  notice,
  percent,
  plainName,
  prose,
  scroll,
  twin,
} from "../../web/parts.ts";
import { type QueuesSeen, seeQueues } from "../../web/queues-seen.ts";
import type { Context, Web } from "../../web/routes.ts";
import { factOf, type Incident, pageOf } from "../alerts/conditions.ts";
import type { SourceTrust } from "../coverage/trust.store.ts";
import { recentUsage } from "../figures/recent-usage.store.ts";
import { describedByDay, ofLastWeeks, type UnusualOfWorkspace, unusualLately } from "../figures/unusual.ts";
import { reportOnSources, type SourceReport } from "./advice.ts";
import { openCounts } from "./open-counts.ts";

const DAYS = 30;

export function addOverview(web: Web): void {
  web.counts(({ db, config }, source) => openCounts(db, { config, source }));
  web.page("/", { oneInstant: true, header: { all: true } }, async (context) => ({
    title: "Overview",
    body: html`<div data-live="/overview/live">${await overview(context)}</div>`,
  }));
  web.live("/overview/live", { oneInstant: true, everyMs: 15_000 }, overview);
}

type Requested = Context;

async function overview(context: Requested): Promise<Html> {
  const { db, config, now } = context;
  const looking = seeQueues(context);
  const recent = await recentUsage(db, { days: FORECAST_DAYS, top: MOST_PARTS });
  const unusual = await unusualLately(db);
  const asAdvised = looking.then(({ sources, unseen }) => ({
    sources,
    problem: unseen?.why === "away" ? unseen.message : null,
  }));
  const reports = await reportOnSources(db, {
    config,
    now,
    queues: asAdvised,
    masked: context.masked,
  });
  const queues = await looking;
  const known = new Set(reports.map(({ status }) => status.source));
  const inOrder = reports.toSorted((a, b) => Number(needsSomebody(b)) - Number(needsSomebody(a)));
  const unopened = config.sources.filter(({ slug }) => !known.has(slug));
  return html`${queues.unseen !== null && notice(queues.unseen.why === "late" ? "info" : "bad", queues.unseen.message)}
    ${unopened.map(({ slug }) => notice("info", notContacted(slug, queues)))}
    ${inOrder.map((report) => section(report, { recent, unusual, now, isAlone: reports.length === 1 }))}`;
}

function notContacted(slug: string, { sources }: QueuesSeen): Html {
  const next = sources?.get(slug)?.nextSync;
  return html`<p>Source <strong>${slug}</strong> is not contacted yet, so nothing of it is loaded. Its first sync contacts it and loads it${next !== undefined && html`, next at ${instant(next)}`}. This page shows it then.</p>
    <p>${prose("If that takes long, the log of the service says why. `usage-etl sync --inline` loads it at once.")}</p>`;
}

type RecentUsage = Awaited<ReturnType<typeof recentUsage>>;

interface Given {
  readonly recent: RecentUsage;
  readonly unusual: readonly UnusualOfWorkspace[];
  readonly now: number;
}

function section(report: SourceReport, given: Given & { isAlone: boolean }): Html {
  const { source } = report.status;
  const card = sourceCard(report, given);
  if (given.isAlone || needsSomebody(report)) {
    return html`<section class="source" aria-labelledby="source-${source}"><h2 id="source-${source}">${source}</h2>${card}</section>`;
  }
  const month = given.recent.months.find((one) => one.source === source);
  const traces =
    month === undefined ? "" : html` ${count(month.traces, "a day is not loaded")} traces so far this month.`;
  const unusual = ofLastWeeks(given.unusual, source, given.now).length;
  return html`<section class="source" aria-labelledby="source-${source}"><details id="details-${source}">
    <summary><h2 id="source-${source}">${source}</h2> <span class="quiet">${trusted(report.trust)}${traces}${unusual !== 0 && ` ${counted(unusual, "unusual day")} in the last two weeks.`}</span></summary>${card}</details></section>`;
}

function needsSomebody({ advice, alerts }: SourceReport): boolean {
  return alerts.some(isCritical) || advice.kind === "warn" || advice.kind === "bad";
}

function sourceCard(report: SourceReport, { recent, unusual, now }: Given): Html {
  const { status, trust, alerts, advice } = report;
  const { source } = status;
  const isSaid = ({ kind }: Incident) => advice.alerts?.kinds.includes(kind) === true;
  const [said, others] = [alerts.filter(isSaid), alerts.filter((one) => !isSaid(one))];
  const days = recent.days.filter((one) => one.source === source).slice(-DAYS);
  const unusualByDay = describedByDay(unusual.filter((one) => one.source === source));
  const points = days.map(({ date, traces, isFinal }) => ({
    at: date,
    value: traces,
    isFinal,
    unusual: unusualByDay.get(date),
  }));
  const label = `Traces by day of source ${source}`;
  const used = recent.workspaces.filter((one) => one.source === source);
  const parts = used.map(({ id, name, traces }, n) => ({
    kind: `s${n + 1}`,
    name: plainName(name ?? id),
    values: traces.slice(-DAYS),
  }));
  return html`<p class="trust">${trusted(trust)}</p>
    <dl class="facts">${monthFigures(recent, source)}</dl>
    ${notice(
      advice.kind,
      html`<p><strong>What to do now:</strong> ${advice.href === undefined ? prose(advice.sentence) : html`<a href="${advice.href}">${prose(advice.sentence)}</a>`}${advice.why !== undefined && html` <a href="${advice.why}">See why</a>`}</p>
      ${advice.alerts?.isWhole === false && said.map((one) => alertShown(one, source))}
      ${advice.command !== undefined && twin(advice.command)}`,
    )}
    ${others.filter(isCritical).map((one) => notice("warn", alertShown(one, source)))}
    <h3>Traces of the last ${DAYS} days, today so far</h3>
    ${
      days.length === 0
        ? html`<p class="quiet">Nothing is loaded yet.</p>`
        : html`${scroll(label, timeChart({ points, parts: parts.length > 1 ? parts : [], unit: "traces", width: 900, height: 160, label }))}${chartNotes(
            parts.length > 1 ? used : [],
            source,
            days.some(({ date }) => unusualByDay.has(date)),
          )}`
    }
    <p><a href="${address("/usage", { source })}">Usage and costs</a></p>
    ${others.filter((one) => !isCritical(one)).map((one) => notice("info", alertShown(one, source)))}
    ${loading(report, now)}`;
}

function chartNotes(used: RecentUsage["workspaces"], source: string, isUnusual: boolean): Html {
  if (used.length === 0 && !isUnusual) return html``;
  return html`<ul class="chart-notes">${used.map(
    ({ id, name: title }, n) =>
      html`<li><span class="swatch s${n + 1}"></span> <a href="${address("/usage", { source, workspace: id, by: "project" })}">${name(title ?? id)}</a></li>`,
  )}${isUnusual && UNUSUAL_NOTE}</ul>`;
}

function monthFigures({ days: all, months, before, costs }: RecentUsage, source: string): Html[] {
  const current = months.find((one) => one.source === source);
  const last = before.find((one) => one.source === source);
  const ofMonth = (
    { month, traces, least: loaded }: Pick<RecentUsage["months"][number], "month" | "traces" | "least">,
    { state, stateOfCost }: { state: string; stateOfCost: (cost: Standing) => string },
    more: Html | string = "",
  ) => {
    const least = traces === null ? "at least " : "";
    const cost = costs
      .filter((one) => one.source === source && one.month === month)
      .map((one) => {
        const amount = html`${least}${money(amountOf(one.cost))} ${one.currency}`;
        return html`<br>estimated cost ${amount} of what has a price, ${stateOfCost(one)}`;
      });
    const sum =
      traces === null
        ? html`at least <strong class="headline">${count(loaded)}</strong> traces: not all of its days are loaded`
        : html`<strong class="headline">${count(traces)}</strong> traces, ${state}`;
    return html`<div><dt><a href="${address(`/months/${month}`, { source })}">${titleOf(month)}</a></dt>
      <dd>${sum}${cost}${more}</dd></div>`;
  };
  const facts: Html[] = [];
  if (current !== undefined) {
    const { month, provisional, days, ended, before: sameDays } = current;
    const open =
      (provisional ?? 0) === 0 ? "" : html`<br><small>${count(provisional)} traces may still change</small>`;
    const change = changeShown(ended, sameDays);
    const since =
      change === null
        ? ""
        : html`<br><small>${change} in ${days} days, against the same days of the month before</small>`;
    facts.push(ofMonth(current, { state: "so far", stateOfCost: () => "so far" }, html`${open}${since}`));
    const own = all.filter((one) => one.source === source);
    const amounts = own.map(({ date, traces, isFinal }) => ({ day: date, amount: traces, isFinal }));
    const forecast = monthForecast(amounts, own.at(-1)?.date ?? "");
    if (forecast !== null)
      facts.push(html`<div><dt>${titleOf(month)}, forecast</dt>
        <dd><strong class="headline">${count(Math.round(forecast))}</strong> traces<br><small title="${FORECAST_METHOD}">if weekdays go on as in the last four weeks</small></dd></div>`);
  }
  if (last !== undefined) facts.push(ofMonth(last, { state: standing(last), stateOfCost: standing }));
  return facts;
}

type Standing = Pick<RecentUsage["before"][number], "isClosed" | "isFinal" | "isProved">;

function standing({ isClosed, isFinal, isProved }: Standing): string {
  if (isClosed) return "closed";
  if (!isFinal) return "may still change";
  return isProved ? "final and proved" : "final, not proved";
}

function titleOf(month: string): string {
  return monthTitle(monthNamed(month) as CalendarMonth);
}

function changeShown(now: number | null, before: number | null): string | null {
  return now === null || before === null || before === 0
    ? null
    : percent((100 * (now - before)) / before, { signed: true });
}

function alertShown(alert: Incident, source: string): Html {
  const to = pageOf(alert.kind, source);
  const link = to === undefined ? "" : html` <a href="${to}">Show them</a>`;
  return html`<p>${prose(factOf(alert))}${link}</p>`;
}

function loading(report: SourceReport, now: number): Html {
  const { status, trust, progress, lastSync, nextSync, budget, neverRead } = report;
  const { source } = status;
  return html`<details id="loading-${source}" ${(trust.gapDays > 0 || status.failures.length > 0) && "open"}><summary>Loading and comparing</summary><dl class="facts">
      ${fact("Not loaded", html`<a href="${address("/coverage", { source })}">${trust.gapDays === 0 ? "nothing is missing" : counted(trust.gapDays, "daily figure")}</a>`)}
      ${neverRead.length > 0 && fact("Not known", html`${namesOf(neverRead)}: no response ever named ${neverRead.length === 1 ? "it" : "them"}`)}
      ${fact("Differences", html`<a href="${address("/differences", { source })}">${count(status.openDifferences)} open, ${count(status.platformDisagrees)} where the platform contradicts itself</a>${describeOtherDifferences(status.otherDifferences)}`)}
      ${fact("Restated", html`<a href="${address("/differences", { source, says: "restatement" })}">${describeRestatements(status.restatements)}</a>`)}
      ${fact("Failed ranges", failures(status.failures))}
      ${fact("Requests", describeBudget(budget))}
      ${fact("Fetch tasks", html`${count(progress.waiting)} wait, ${count(progress.queued)} are queued${budget?.putOff && budget.problem === undefined ? `. ${describePutOff(budget.putOff)}` : ""}`)}
      ${fact("Last sync", lastSync === null ? "none is recorded" : html`${instant(lastSync.startedAt)}: ${lastSync.outcome.replace("_", " ")}${lastSync.reason !== null && html`. ${prose(lastSync.reason)}`}`)}
      ${fact("Next sync", next(nextSync, now))}
      ${fact("Compared", html`with the export: ${at(progress.lastReconciledAt)}; with totals: ${at(progress.lastTotalsAt)}`)}
    </dl></details>`;
}

/** The main statement about the data. Both ends are exclusive in the data and inclusive here. */
function trusted({ dataStart, finalUntil, provedUntil }: SourceTrust): Html {
  if (finalUntil <= dataStart) return html`Not final yet, not even the first day, ${dataStart}.`;
  if (provedUntil === finalUntil) {
    return html`<strong>Final and proved until ${addDays(finalUntil, -1)}</strong>, from the data start ${dataStart} on.`;
  }
  const final = html`Final until ${addDays(finalUntil, -1)}`;
  return provedUntil <= dataStart
    ? html`${final}. Not proved from the start: ${dataStart} is the first day that is not.`
    : html`${final}, <strong>final and proved until ${addDays(provedUntil, -1)}</strong>.`;
}

function failures(groups: SourceStatus["failures"]): Html {
  if (groups.length === 0) return html`none`;
  return html`<ul>${groups.map(
    ({ state, code, parts, byHour, nextRetry }) =>
      html`<li>${count(parts)} ${byHour !== 0 && byHour !== parts && html`(${count(byHour)} of them by hour) `}${state} with <code>${code}</code>${nextRetry !== null && html`, next attempt ${instant(nextRetry)}`}</li>`,
  )}</ul>`;
}

function describeBudget(budget: SyncBudget | null): Html {
  if (budget === null) return html`not known: the source is not configured here`;
  const { needed, allowed, problem } = budget;
  return html`a sync needs at most ${count(needed)}; the rate limit allows ${count(allowed)} until the next
    ${problem !== undefined && notice("warn", html`<p>${prose(problem.message)} ${prose(problem.next)}</p>`)}`;
}

function next(nextSync: string | null, now: number): Html {
  if (nextSync === null) return html`not known: no schedule is seen`;
  const lateMs = now - Date.parse(nextSync);
  // A countdown would change with every page update.
  return html`${instant(nextSync)}${lateMs > 0 && `, due for ${describeDuration(lateMs)}`}`;
}

function at(iso: string | null): Html {
  return iso === null ? html`never` : instant(iso);
}

function isCritical({ severity }: Incident): boolean {
  return severity === "critical";
}
