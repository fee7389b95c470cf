import { z } from "zod";
import { describeDuration } from "../../core/base/clock.ts";
import { counted } from "../../core/base/printable.ts";
import {
  type CalendarMonth,
  daysTitle,
  dayTitle,
  monthAt,
  monthBefore,
  monthNamed,
  monthTitle,
} from "../../core/domain/months/month.ts";
import { describeOtherDifferences } from "../../core/domain/proof/difference.ts";
import { describeRestatements } from "../../core/domain/proof/restatement.ts";
import {
  BUDGET_STATUS,
  FIGURE_STATUS,
  figureStatus,
  MONTH_STATUS,
  monthStatus,
} from "../../core/domain/proof/statuses.ts";
import { addDays, dayOf } from "../../core/domain/time/days.ts";
import {
  type Amount,
  amountDrawn,
  amountOf,
  amountShown,
  percentOf,
} from "../../core/domain/usage/amount.ts";
import { FORECAST_METHOD } from "../../core/domain/usage/forecast.ts";
import { namesOf } from "../../core/pipeline/never-read.ts";
import { describePutOff, type SyncBudget } from "../../core/pipeline/sync/sync-budget.ts";
import type { SourceStatus } from "../../core/store/activity/overview.ts";
import { type UsageSource, usageSources } from "../../core/store/figures/sources.ts";
import { type ChartPoint, chartKeys, chartLegend, MOST_PARTS, timeChart } from "../../web/chart.ts";
import { headed, type Page } from "../../web/layout.ts";
import {
  address,
  box,
  button,
  change,
  columns,
  count,
  fact,
  type Html,
  html,
  instant,
  joined,
  type Kpi,
  kpis,
  money,
  notice,
  optional,
  percent,
  pill,
  prose,
  table,
} from "../../web/parts.ts";
import { ALL_SOURCES } from "../../web/place.ts";
import { namedSource } from "../../web/query.ts";
import { type QueuesSeen, seeQueues } from "../../web/queues-seen.ts";
import type { Context, Web } from "../../web/routes.ts";
import { openItemCounts } from "../close/months.page.ts";
import { limitUses } from "../costs/bill-terms.store.ts";
import type { SourceTrust } from "../coverage/trust.store.ts";
import { toSameWeekday } from "../figures/tables.ts";
import { currentBudgets, type MonthBudget } from "../owners/budgets.ts";
import { UNALLOCATED } from "../owners/owner.ts";
import { reportOnSources, type SourceReport } from "./advice.ts";
import { attention } from "./attention.ts";
import { billSums } from "./bill-sums.store.ts";
import { type MonthSpend, monthSpend, type Spend, spendForecast } from "./month-spend.ts";
import { openCounts } from "./open-counts.ts";

const QUERY = z.object({ source: optional(z.string().max(63)), month: optional(z.string().max(7)) });
type Requested = Context<z.output<typeof QUERY>>;

export function addOverview(web: Web): void {
  web.counts(({ db, config }, source) => openCounts(db, { config, source }));
  web.page("/", { query: QUERY, oneInstant: true, header: { month: true, all: true } }, async (context) => ({
    ...(await overview(context)),
    live: address("/overview/live", { source: context.place?.shown, month: context.place?.month }),
  }));
  web.live("/overview/live", { query: QUERY, oneInstant: true, everyMs: 15_000 }, async (context) =>
    headed(await overview(context)),
  );
}

interface Shown {
  readonly context: Requested;
  readonly month: CalendarMonth;
  readonly isUnderWay: boolean;
  /** Undefined: all sources. */
  readonly source: string | undefined;
  readonly sources: readonly UsageSource[];
  readonly reports: readonly SourceReport[];
  readonly budgets: readonly MonthBudget[];
}

async function overview(context: Requested): Promise<Page> {
  const { db, config, now, query, masked } = context;
  const month = monthNamed(query.month ?? "") ?? monthAt(now);
  const looking = seeQueues(context);
  const stored = await usageSources(db);
  const isAll = query.source === undefined || query.source === ALL_SOURCES;
  const only = isAll ? undefined : namedSource(stored, query.source);
  const sources = only === undefined ? stored : [only];
  const slugs = sources.map(({ slug }) => slug);
  const spend = await monthSpend(db, { sources, month: month.name, now, masked });
  const { budgets } = await currentBudgets(db);
  const asAdvised = looking.then((seen) => ({
    sources: seen.sources,
    problem: seen.unseen?.why === "away" ? seen.unseen.message : null,
  }));
  const all = await reportOnSources(db, { config, now, queues: asAdvised, masked });
  const reports = all.filter(({ status }) => slugs.includes(status.source));
  const isUnderWay = month.start <= dayOf(now) && dayOf(now) < month.end;
  const source = only?.slug ?? (stored.length === 1 ? stored[0]?.slug : undefined);
  const shown = { context, month, isUnderWay, source, sources, reports, budgets };
  const queues = await looking;
  const unopened = config.sources.filter(({ slug }) => !stored.some((one) => one.slug === slug));
  const bills = await billsOf(shown);
  const main = spend?.costs[0] ?? spend?.traces;
  return {
    title: monthTitle(month),
    pill: pill(bills.find(({ name }) => name === month.name)?.status ?? MONTH_STATUS.open),
    about: trusted(reports.map(({ trust }) => trust)),
    ...(main !== undefined && {
      actions: button(
        address("/usage.xlsx", {
          source: source ?? slugs[0],
          month: month.name,
          by: main.by,
          measure: main.currency === null ? "traces" : "cost",
        }),
        "Download Excel",
      ),
    }),
    body: html`${queues.unseen !== null && notice(queues.unseen.why === "late" ? "info" : "bad", queues.unseen.message)}
      ${unopened.map(({ slug }) => notice("info", notContacted(slug, queues)))}
      ${spend !== undefined && main !== undefined && kpis(await kpisOf(spend, main, { ...shown, bills }))}
      ${columns(
        reports.length > 0 && (await attention(context.db, { ...shown, now: context.now })),
        reports.length > 0 &&
          box({
            title: "Bills",
            span: 4,
            body: html`${billTable(bills, source)}${spend !== undefined && health(spend.traces, source)}`,
          }),
        main !== undefined && chartOf(main, shown),
      )}
      ${reports.map((report) => checks(report, now, reports.length > 1))}`,
  };
}

function notContacted(slug: string, { sources }: QueuesSeen): Html {
  const next = sources?.get(slug)?.nextSync;
  return html`<p>Waiting for the first sync of <strong>${slug}</strong>${next !== undefined && html` (next ${instant(next)})`}.</p>
    <p>${prose("`usage-etl sync --inline` loads it at once.")}</p>`;
}

/** The trust in all sources is that in the worst of them. */
function trusted(trusts: readonly SourceTrust[]): string {
  const least = (of: (trust: SourceTrust) => string) => trusts.map(of).toSorted()[0] ?? "";
  if (trusts.length === 0) return "Nothing is loaded yet.";
  const [start, final, proved] = [
    least(({ dataStart }) => dataStart),
    least(({ finalUntil }) => finalUntil),
    least(({ provedUntil }) => provedUntil),
  ];
  const last = (until: string) => dayTitle(addDays(until, -1), { withYear: true });
  const behind = trusts.find(({ finalUntil, dataStart }) => finalUntil <= dataStart);
  if (behind !== undefined)
    return `No final day yet. Data starts ${dayTitle(behind.dataStart, { withYear: true })}.`;
  const open = trusts.reduce((sum, { disagreements }) => sum + disagreements, 0);
  const but = open === 0 ? "" : ` · ${counted(open, "difference")} open`;
  if (trusts.some(({ provedUntil, dataStart }) => provedUntil <= dataStart))
    return `Final to ${last(final)} · no day proved yet${but}`;
  if (proved === final) return `Proved: ${dayTitle(start)} to ${last(proved)}${but}`;
  return `Proved to ${dayTitle(addDays(proved, -1))} · final to ${last(final)}${but}`;
}

function figureOf(
  { currency, isComplete }: Pick<Spend, "currency" | "isComplete">,
  amount: Amount,
  isRounded: boolean,
): Html {
  const least = isComplete ? "" : "≥ ";
  if (currency === null) return html`${least}${count(amountDrawn(amount))}`;
  if (!isRounded || amountDrawn(amount) < 100) return html`${least}${money(amount)}`;
  return html`${least}<span class="number" title="${amountShown(amount)}">${Math.round(amountDrawn(amount)).toLocaleString("en-US")}</span>`;
}

function since(spend: Spend): Html {
  if (spend.change === null) return html``;
  const [, ...rest] = daysTitle(spend.before).split(" ").reverse();
  return html`<span>${change(spend.change)} vs ${rest.reverse().join(" ")}</span>`;
}

async function kpisOf(
  spend: MonthSpend,
  main: Spend,
  shown: Shown & { readonly bills: readonly Bill[] },
): Promise<Kpi[]> {
  const { month, isUnderWay, source, context } = shown;
  const { traces, costs } = spend;
  const sofar = isUnderWay ? " so far" : "";
  const missing = shown.reports.reduce((sum, { trust }) => sum + trust.gapDays, 0);
  const gaps = (one: Spend) =>
    !one.isComplete && missing > 0 && html`<span>${counted(missing, "daily figure")} missing</span>`;
  const others = costs
    .slice(1)
    .map((one) => html`<span>and ${figureOf(one, one.amount, isUnderWay)} ${one.currency}</span>`);
  const first = {
    label: main.currency === null ? `Traces${sofar}` : `Cost${sofar} (estimate)`,
    value: figureOf(main, main.amount, isUnderWay),
    unit: main.currency ?? undefined,
    note: html`${since(main)}${gaps(main)}${others}`,
  };
  const limits =
    isUnderWay && source !== undefined ? await limitUses(context.db, shown.sources[0]?.sourceId ?? 0) : [];
  const limit = limits.find(
    (one) => one.workspaceId === "(all)" && one.percent !== null && one.limitType === "monthly_traces",
  );
  return [
    first,
    await forecastKpi(main, shown),
    ...(main === traces
      ? []
      : [
          {
            label: `Traces${sofar}`,
            value: figureOf(traces, traces.amount, false),
            note: html`${since(traces)}${gaps(traces)}${limit !== undefined && html`<span>${limit.isComplete ? "" : "≥ "}${percent(limit.percent)} of plan limit</span>`}`,
          },
        ]),
    main.by === "owner" ? noTeam(main, shown) : lastMonthKpi(shown.bills, month),
  ];
}

function noTeam(main: Spend, { source, month }: Shown): Kpi {
  const amount = main.parts.find(({ id }) => id === null)?.amount ?? 0n;
  const unit = main.currency ?? "traces";
  const to = address("/owners", { source, month: month.name, owner: UNALLOCATED });
  return {
    label: main.currency === null ? "Traces without a team" : "Cost without a team",
    value: percent(percentOf(amount, main.amount)),
    note:
      amount === 0n
        ? "Everything has a team"
        : html`<a href="${to}">${figureOf(main, amount, true)} ${unit} to assign</a>`,
  };
}

function lastMonthKpi(bills: readonly Bill[], month: CalendarMonth): Kpi {
  const before = monthBefore(month);
  const bill = bills.find(({ name }) => name === before.name);
  return {
    label: `Cost in ${monthTitle(before)}`,
    value: bill?.amount === undefined ? "–" : money(bill.amount),
    unit: bill?.currency,
    ...(bill !== undefined && { note: pill(bill.status) }),
  };
}

async function forecastKpi(
  main: Spend,
  { month, isUnderWay, source, sources, budgets, context }: Shown,
): Promise<Kpi> {
  const days = main.days.length;
  if (!isUnderWay)
    return {
      label: main.currency === null ? "Traces per day" : "Cost per day",
      value: days === 0 ? "–" : figureOf(main, main.amount / BigInt(days), false),
      unit: main.currency ?? undefined,
    };
  const slugs = sources.map(({ slug }) => slug);
  const forecast = await spendForecast(context.db, main, { sources: slugs, today: dayOf(context.now) });
  const budget = budgets.find(
    (one) =>
      one.of === null &&
      one.currency === main.currency &&
      (one.source ?? undefined) === source &&
      one.per === "month",
  );
  const name = `Forecast for ${monthTitle(month).split(" ")[0]}`;
  if (forecast === null)
    return {
      label: name,
      value: "–",
      note: main.isComplete ? "Two final weeks are needed" : "Days are not loaded",
    };
  const used =
    budget &&
    percentOf(
      BigInt(Math.round(forecast * 100)),
      BigInt(Math.round(amountDrawn(amountOf(budget.amount)) * 100)),
    );
  return {
    label: name,
    value: html`<span class="number" title="${FORECAST_METHOD}">${Math.round(forecast).toLocaleString("en-US")}</span>`,
    unit: main.currency ?? undefined,
    note: budget === undefined || used == null ? "The whole month" : budgetPill(budget, used),
  };
}

function budgetPill({ reached }: MonthBudget, used: number): Html {
  const status = reached?.isSure
    ? BUDGET_STATUS.exceeded
    : used > 100
      ? BUDGET_STATUS.at_risk
      : BUDGET_STATUS.on_track;
  return html`<span class="pill ${status.tone}" title="${status.word}: ${status.about}"><span aria-hidden="true">${status.mark}</span> ${percent(used)} of budget<span class="visually-hidden"> (${status.word})</span></span>`;
}

interface Bill {
  readonly name: string;
  readonly amount: Amount | undefined;
  readonly currency: string | undefined;
  readonly status: (typeof MONTH_STATUS)[keyof typeof MONTH_STATUS];
  /** Number of things that keep the month open, as on its bill. */
  readonly items: number;
}

const BILLS = 3;

async function billsOf({ context, sources, month }: Shown): Promise<Bill[]> {
  const current = monthAt(context.now);
  const months = [current];
  while (months.length < BILLS) months.push(monthBefore(months.at(-1) as CalendarMonth));
  if (!months.some(({ name }) => name === month.name)) months.push(month);
  const sums = await billSums(context.db, {
    sourceIds: sources.map(({ sourceId }) => sourceId),
    months: months.map(({ start }) => start),
  });
  const closersOf = ({ start }: CalendarMonth) => sums.find((one) => one.month === start)?.closedBy ?? [];
  const items: Map<string, number>[] = [];
  for (const source of sources)
    items.push(
      await openItemCounts(context.db, {
        source,
        months: months.filter(
          (one) =>
            Date.parse(one.end) <= context.now &&
            one.end > source.dataStart &&
            !closersOf(one).includes(source.sourceId),
        ),
      }),
    );
  return months
    .filter(({ end }) => sources.some(({ dataStart }) => dataStart < end))
    .map((one) => {
      const { name, start, end } = one;
      const own = sums.filter(({ month }) => month === start);
      const closers = closersOf(one);
      const required = sources.filter(({ dataStart }) => dataStart < end);
      const open = items.reduce((sum, counts) => sum + (counts.get(name) ?? 0), 0);
      const isChecked = sources.every(
        (source, n) => !required.includes(source) || closers.includes(source.sourceId) || items[n]?.has(name),
      );
      const cost = own.find(({ currency }) => currency !== null);
      // What was not checked keeps a month open.
      const state = {
        isClosed: required.length > 0 && closers.length >= required.length,
        isUnderWay: start === current.start,
        open: isChecked ? open : 1,
      };
      return {
        name,
        amount: cost && amountOf(cost.cost ?? "0"),
        currency: cost?.currency ?? undefined,
        status: MONTH_STATUS[monthStatus(state)],
        items: state.isClosed || state.isUnderWay ? 0 : open,
      };
    });
}

function billTable(bills: readonly Bill[], source: string | undefined): Html {
  const currency = bills.find((one) => one.currency !== undefined)?.currency;
  return table({
    label: "Bills",
    caption: "",
    heads: ["Month", html`<th scope="col" class="number">${currency ?? "Cost"}</th>`, "Status"],
    rows: bills.map(({ name, amount, status, items }) => {
      const title = dayTitle(`${name}-01`, { withYear: true }).slice(2);
      return html`<tr><th scope="row"><a href="${address(`/months/${name}`, { source })}">${title}</a></th><td class="number">${amount === undefined ? "–" : money(amount)}</td><td>${pill(status, items === 0 ? undefined : String(items))}</td></tr>`;
    }),
  });
}

/** One mark for each day of the month that has begun. */
function health({ days }: Spend, source: string | undefined): Html {
  const states = days.map((day) => ({ day: day.at, status: figureStatus(day) }));
  const many = (["proved", "final", "provisional", "missing"] as const).flatMap((status) => {
    const own = states.filter((one) => one.status === status).length;
    return own === 0 ? [] : `${own} ${FIGURE_STATUS[status].word.toLowerCase()}`;
  });
  return html`<header class="next"><h2>Data health</h2><a class="more" href="${address("/coverage", { source })}">Calendar</a></header>
    <div class="strip" aria-hidden="true">${states.map(({ day, status }) => html`<i class="${FIGURE_STATUS[status].tone}" title="${dayTitle(day)}: ${FIGURE_STATUS[status].word}"></i>`)}</div>
    <p class="quiet">Days: ${joined(many)}</p>`;
}

function chartOf(main: Spend, { source, month }: Shown): Html {
  const what = main.currency === null ? "Traces" : "Cost";
  const points = main.days.map(({ at, amount, isComplete, isFinal, unusual }): ChartPoint => {
    const drawn = amountDrawn(amount);
    return { at, value: isComplete ? drawn : null, atLeast: drawn, isFinal, unusual };
  });
  const named = main.parts.filter(({ id }) => id !== null).slice(0, MOST_PARTS);
  const none = main.parts.filter(({ id }) => id === null);
  const parts = [...named, ...none].map(({ id, name, byDay }, n) => ({
    kind: id === null ? "rest" : `s${n + 1}`,
    name: id === null ? (main.by === "owner" ? "No team" : "No workspace") : name,
    values: main.days.map(({ at }) => amountDrawn(byDay.get(at) ?? 0n)),
  }));
  const shift = toSameWeekday(main.before.from, main.days[0]?.at ?? month.start);
  const before = main.days.map((_, n): ChartPoint => {
    const day = main.daysBefore[n + shift];
    return day === undefined || !day.isComplete
      ? { at: "", value: null, isFinal: true }
      : { at: day.at, value: amountDrawn(day.amount), isFinal: true };
  });
  const by = main.by === "owner" ? "team" : "workspace";
  const unit = main.currency ?? "traces";
  const chart = { points, parts: parts.length > 1 ? parts : [], before };
  const title = `${what} by ${by}`;
  const measure = main.currency === null ? "traces" : "cost";
  return box({
    title,
    note: html`${unit} per day`,
    links: chartLegend(
      chartKeys(chart, {
        before: `${monthTitle(monthBefore(month))}${shift === 0 ? "" : ", aligned by weekday"}`,
        rest: main.parts.length > parts.length ? "All others" : undefined,
      }),
    ),
    body: html`${timeChart({ ...chart, unit, isMoney: main.currency !== null, label: `${title}, ${unit} per day, ${monthTitle(month)}`, zoom: source === undefined ? undefined : address("/usage", { source, by: main.by, measure }), end: month.end })}
      <p class="quiet readout" aria-live="polite"><a href="${address("/usage", { source, month: month.name, by: main.by, measure })}">Usage in ${monthTitle(month)}</a></p>
      <script type="module" src="/assets/chart.js"></script>`,
  });
}

function checks(report: SourceReport, now: number, isNamed: boolean): Html {
  const { status, trust, progress, lastSync, nextSync, budget, neverRead } = report;
  const { source } = status;
  return html`<details id="checks-${source}"><summary>Sync and checks${isNamed && ` of ${source}`}</summary><dl class="facts">
      ${fact("Missing", html`<a href="${address("/coverage", { source })}">${trust.gapDays === 0 ? "Nothing" : counted(trust.gapDays, "daily figure")}</a>`)}
      ${neverRead.length > 0 && fact("Never read", html`${namesOf(neverRead)}: no response ever named ${neverRead.length === 1 ? "it" : "them"}`)}
      ${fact("Differences", html`<a href="${address("/differences", { source })}">${count(status.openDifferences + status.platformDisagrees)} open</a>${describeOtherDifferences(status.otherDifferences)}`)}
      ${fact("Restated", html`<a href="${address("/differences", { source, says: "restatement" })}">${describeRestatements(status.restatements)}</a>`)}
      ${fact("Failed ranges", failures(status.failures))}
      ${fact("Requests", describeBudget(budget))}
      ${fact("Fetch tasks", html`${count(progress.waiting)} waiting, ${count(progress.queued)} queued${budget?.putOff && budget.problem === undefined ? `. ${describePutOff(budget.putOff)}` : ""}`)}
      ${fact("Last sync", lastSync === null ? "None yet" : html`${instant(lastSync.startedAt)}: ${lastSync.outcome.replace("_", " ")}${lastSync.reason !== null && html`. ${prose(lastSync.reason)}`}`)}
      ${fact("Next sync", next(nextSync, now))}
      ${fact("Compared", html`Export: ${at(progress.lastReconciledAt)}; totals: ${at(progress.lastTotalsAt)}`)}
    </dl></details>`;
}

function failures(groups: SourceStatus["failures"]): Html {
  if (groups.length === 0) return html`None`;
  return html`<ul>${groups.map(
    ({ state, code, parts, byHour, nextRetry }) =>
      html`<li>${count(parts)} ${byHour !== 0 && byHour !== parts && html`(${count(byHour)} by hour) `}${state} with <code>${code}</code>${nextRetry !== null && html`, retry ${instant(nextRetry)}`}</li>`,
  )}</ul>`;
}

function describeBudget(budget: SyncBudget | null): Html {
  if (budget === null) return html`Not known: the source is not configured here`;
  const { needed, allowed, problem } = budget;
  return html`Up to ${count(needed)} per sync; limit ${count(allowed)}
    ${problem !== undefined && notice("warn", html`<p>${prose(problem.message)} ${prose(problem.next)}</p>`)}`;
}

function next(nextSync: string | null, now: number): Html {
  if (nextSync === null) return html`Not known: no schedule is seen`;
  const lateMs = now - Date.parse(nextSync);
  // A countdown would change with every page update.
  return html`${instant(nextSync)}${lateMs > 0 && `, due for ${describeDuration(lateMs)}`}`;
}

function at(iso: string | null): Html {
  return iso === null ? html`never` : instant(iso);
}
