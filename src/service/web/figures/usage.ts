import { describeUnpricedDays } from "../../../domain/bill/price.ts";
import { monthTitle } from "../../../domain/months/month.ts";
import { addMonths, monthStart } from "../../../domain/time/days.ts";
import { amountOf } from "../../../domain/usage/amount.ts";
import { UsageError } from "../../../errors.ts";
import type { MonthBill } from "../../../pipeline/bill/month-bill.ts";
import { asCsv } from "../../../pipeline/export/table-file.ts";
import { monthBill } from "../../../store/bill/bill-lines.ts";
import type { Database } from "../../../store/db/database.ts";
import { inSnapshot } from "../../../store/db/snapshot.ts";
import { currenciesOf } from "../../../store/figures/costs.ts";
import { meterStart } from "../../../store/figures/counted.ts";
import { isLoadedByHour } from "../../../store/figures/loaded.ts";
import { type UsageSource, usageSources } from "../../../store/figures/sources.ts";
import { laterCosts } from "../../../store/months/closed-costs.ts";
import { changedMonths } from "../../../store/months/month-adjustments.ts";
import type { Page } from "../layout.ts";
import { withoutCost } from "../months/bill.ts";
import { address, capital, count, type Html, html, money, name, notice, percent, prose } from "../parts.ts";
import type { Context, Web } from "../routes.ts";
import { courseLines, fileName, idLines, twins } from "./files.ts";
import {
  addressOf,
  COUNTED_WORDS,
  idWord,
  NO_INVOICE,
  type Question,
  questionForm,
  questionOf,
  refusalOf,
  sourceOf,
  titleOf,
  USAGE_QUERY,
  type UsageQuery,
  whyEmpty,
} from "./question.ts";
import { type Report, reportOf } from "./report.ts";
import { course, headline, heatMap, heatMapOf, idTable, intervalsShown } from "./tables.ts";
import { workbookOf } from "./workbook.ts";

/** Usage and costs of a range, by one dimension. */
export function addUsage(web: Web): void {
  web.page("/usage", { query: USAGE_QUERY, oneInstant: true }, show);
  web.file("/usage.csv", { query: USAGE_QUERY }, async (context) => {
    const report = await inSnapshot(context.db, (db) => reportForFile({ ...context, db }));
    const table = context.query.table ?? "ids";
    return (
      context.reply
        .type("text/csv; charset=utf-8")
        .header("content-disposition", `attachment; filename="${fileName(report, "csv", table)}"`)
        // Excel reads UTF-8 only after a byte order mark.
        .send(`\uFEFF${asCsv(table === "ids" ? idLines(report) : courseLines(report))}`)
    );
  });
  web.file("/usage.xlsx", { query: USAGE_QUERY }, async (context) => {
    const { now, who, reply } = context;
    const { report, bill } = await inSnapshot(context.db, async (db) => {
      const report = await reportForFile({ ...context, db });
      return { report, bill: await billOf(db, report.question) };
    });
    const workbook = await workbookOf(report, { now, masked: who.role === "viewer", bill });
    return reply
      .type("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")
      .header("content-disposition", `attachment; filename="${fileName(report, "xlsx")}"`)
      .send(workbook);
  });
}

/**
 * As the page, with the sources and prices that the question is about. `db`: a snapshot. Errors: as of `questionOf`, and `usage_missing`,
 * `usage_range_long`.
 */
async function reportForFile({ db, query, now, who }: Context<UsageQuery, unknown>): Promise<Report> {
  const source = sourceOf(query.source, await usageSources(db));
  const asked = source && (await askedOf(db, query, { source, now }));
  if (asked === undefined || isUnpriced(asked.question) || !asked.question.isLoaded) throw nothingToWrite();
  const refusal = refusalOf(asked.question);
  if (refusal !== undefined) throw tooLong(refusal);
  return reportOf(db, asked.question, { now, masked: who.role === "viewer" });
}

/** The bill that the traces or costs of all workspaces of one month belong to. */
async function billOf(db: Database, question: Question): Promise<MonthBill | undefined> {
  const { asked, range, measure, workspace, source } = question;
  if (range.from === range.to) return undefined;
  const isMonth = asked.from === monthStart(asked.from) && asked.to === addMonths(asked.from, 1);
  if (!isMonth || workspace !== undefined || (measure !== "traces" && measure !== "cost")) return undefined;
  const lines = await monthBill(db, { source: source.slug, monthStart: asked.from });
  return { source: source.slug, month: { start: asked.from }, lines };
}

async function show({ db, query, now, who }: Context<UsageQuery, unknown>): Promise<Page> {
  const sources = await usageSources(db);
  const source = sourceOf(query.source, sources);
  if (source === undefined) return { title: "Usage", body: noSource() };
  const { question, currencies } = await askedOf(db, query, { source, now });
  const title = titleOf(question);
  const form = questionForm(question, { sources, currencies });
  if (question.range.from === question.range.to) return { title, body: html`${form}${nothingYet(question)}` };
  const refusal = refusalOf(question);
  if (refusal !== undefined) return { title, body: html`${form}${notice("warn", refusal)}` };
  if (isUnpriced(question)) return { title, body: html`${form}${noPrice()}` };
  if (!question.isLoaded) return { title, body: html`${form}${notLoaded(question)}` };
  const masked = who.role === "viewer";
  const { measure } = question;
  const report = await reportOf(db, question, { now, masked });
  const hours = measure === "traces" ? await heatMapOf(db, question, { now }) : undefined;
  const body = html`${form}
      ${measure === "spend_usd" ? notice("info", NO_INVOICE) : ""}
      <dl class="facts">${headline(report)}</dl>
      ${claims(report)}
      ${measure === "cost" ? withoutCost((await billOf(db, question))?.lines ?? []) : ""}
      ${await sinceCloses(db, question)}
      ${course(report)}
      ${idTable(report)}
      <p>Download: <a href="${addressOf(question, {}, "/usage.xlsx")}">Excel (XLSX)</a> ·
        <a href="${addressOf(question, {}, "/usage.csv")}">CSV of this table</a> ·
        <a href="${addressOf(question, { table: "time" }, "/usage.csv")}">CSV of its course</a></p>
      ${twins(question, { masked })}
      ${hours === undefined ? "" : heatMap(hours)}`;
  return { title, body };
}

function isUnpriced({ measure, currency }: Question): boolean {
  return measure === "cost" && currency === undefined;
}

function tooLong(message: string): UsageError {
  return new UsageError({
    code: "usage_range_long",
    message,
    next: "`usage-etl export --view fct_cost_user_daily` and the views like it write any range.",
  });
}

export function nothingToWrite(): UsageError {
  return new UsageError({
    code: "usage_missing",
    message: "There is no source, no price, or no usage of this measure, so there is no answer.",
    next: "`usage-etl status` says what is stored. `usage-etl prices import FILE` enters prices.",
  });
}

/** Everything that a question needs besides its figures. */
export async function askedOf(
  db: Database,
  query: UsageQuery,
  { source, now }: { source: UsageSource; now: number },
): Promise<{ question: Question; currencies: readonly string[] }> {
  const { measure = "traces" } = query;
  // Deployment usage begins where its own history begins.
  const begins =
    measure === "cost" || measure === "traces"
      ? source.dataStart
      : await meterStart(db, { sourceId: source.sourceId, counted: measure });
  const about = {
    source: { ...source, dataStart: begins ?? source.dataStart },
    now,
    isLoaded: begins !== undefined,
  };
  const found = questionOf(query, about);
  const isOfHours = query.per === undefined && found.per === "hour";
  const hasHours = !isOfHours || (await isLoadedByHour(db, source.sourceId, found.range));
  const asked = hasHours ? found : questionOf({ ...query, per: "day" }, about);
  if (measure !== "cost") return { question: asked, currencies: [] };
  const currencies = await currenciesOf(db, source.sourceId);
  return { question: { ...asked, currency: currencyOf(asked.currency, currencies) }, currencies };
}

/** One that the prices do not have is not an error: the first one is shown, and the form names it. */
function currencyOf(asked: string | undefined, currencies: readonly string[]): string | undefined {
  return currencies.find((one) => one === asked) ?? currencies[0];
}

function noSource(): Html {
  return notice("info", prose("No source is stored yet. `usage-etl sync --inline` loads the first usage."));
}

function noPrice(): Html {
  return notice(
    "info",
    prose("No price is stored, so nothing is estimated. `usage-etl prices import FILE` enters prices."),
  );
}

function notLoaded({ measure, source }: Question): Html {
  const what = measure === "cost" ? "usage" : COUNTED_WORDS[measure];
  return notice(
    "info",
    prose(
      `No ${what} of ${source.slug} are loaded, which is not zero. \`usage-etl doctor\` says what its server counts.`,
    ),
  );
}

function nothingYet(question: Question): Html {
  return notice("info", `There is nothing to show. ${whyEmpty(question)}`);
}

/** Traces are those of now and costs of a closed month those of its close, so neither is read as that of the other. */
export async function sinceCloses(db: Database, question: Question): Promise<readonly Html[]> {
  const { source, workspace, measure, currency, range } = question;
  const about = { sourceId: source.sourceId, ...range, workspace: workspace?.key };
  const link = (month: string) =>
    html`<a href="${address(`/months/${month}`, { source: source.slug })}">${monthTitle({ start: month })}</a>`;
  if (measure === "cost") {
    const later = await laterCosts(db, about);
    return later
      .filter((one) => one.currency === currency && Number(one.more) !== 0)
      .map(({ month, more }) =>
        notice(
          "info",
          html`<p>What is asked for of ${link(month)} costs ${money(amountOf(more.replace("-", "")))} ${currency} ${more.startsWith("-") ? "less" : "more"} now than when it was closed. These costs are those of the close: bills of later months have the difference as corrections.</p>`,
        ),
      );
  }
  if (measure !== "traces") return [];
  const changed = await changedMonths(db, about);
  return changed.map(({ month, closedTraces, netTraces, hasCosts }) =>
    notice(
      "info",
      html`<p>${link(month)} was closed with ${count(closedTraces)} traces of ${workspace === undefined ? "all workspaces" : "this workspace"}. ${count(Math.abs(netTraces))} ${netTraces > 0 ? "more" : "fewer"} are counted since then, and these figures are those of now.${hasCosts ? " Its costs are those of the close." : ""}</p>`,
    ),
  );
}

function underWay(question: Question): Html {
  const { range, ended, today } = question;
  const without =
    ended.to < range.to
      ? " Changes are those of the days before it."
      : range.from < today
        ? html` <a href="${addressOf(question, { to: today })}">Leave it out</a>, to compare whole days with earlier ones.`
        : "";
  return html`${today} is under way: its figures grow until it ends.${without}`;
}

const MOST_WORKSPACES = 5;
/** Per cent without an id that a reader should know of. */
const MUCH = 20;

/** What a reader must know before they believe the figures. */
function claims(report: Report): Html[] {
  const { question, workspaces } = report;
  const notices = [
    question.perNote === undefined ? undefined : notice("info", question.perNote),
    beginning(question),
    ...(workspaces === 0
      ? [noWorkspace()]
      : [
          notLoadedIn(report),
          provisionalIn(report),
          report.total.sum.isUnderWay ? notice("info", underWay(question)) : undefined,
          hoursUnproved(report),
          costsProvisional(report),
          costOfNobody(report),
          withoutPrice(report),
        ]),
  ];
  return notices.filter((one) => one !== undefined);
}

function beginning({ asked, source, measure }: Question): Html | undefined {
  if (asked.from >= source.dataStart) return undefined;
  const what = measure === "cost" || measure === "traces" ? "Usage" : capital(COUNTED_WORDS[measure]);
  return notice(
    "info",
    `${what} of ${source.slug} begins on ${source.dataStart}. There is none to show before.`,
  );
}

function noWorkspace(): Html {
  return notice(
    "warn",
    prose("No workspace of this source is known yet. `usage-etl sync --inline` loads its usage."),
  );
}

function notLoadedIn({ question, gaps, workspaces }: Report): Html | undefined {
  if (gaps.length === 0) return undefined;
  const { range, source, by, measure } = question;
  const dimension = measure === "cost" ? "workspace" : by;
  // The page of coverage is about traces of all tiers.
  const hasCoveragePage = measure === "cost" || measure === "traces";
  const coverage = (workspace?: string) =>
    address("/coverage", { source: source.slug, stride: "day", ...range, group_by: dimension, workspace });
  const named = gaps.slice(0, MOST_WORKSPACES);
  return notice(
    "warn",
    html`<p>The totals are not complete: a part of the range is not loaded by ${idWord({ by: dimension, measure })}. Missing is not zero.</p>
        <ul>${named.map(
          (gap) => html`<li>${name(gap.name ?? gap.workspaceId)}: ${intervalsShown(gap.missing)}.
            ${hasCoveragePage ? html`<a href="${coverage(gap.workspaceId)}">See its coverage</a>` : ""}</li>`,
        )}</ul>
        ${gaps.length > named.length ? html`<p>The same is so for ${gaps.length - named.length} more of ${workspaces} workspaces. ${hasCoveragePage ? html`<a href="${coverage()}">See all of them</a>` : ""}</p>` : ""}`,
  );
}

function provisionalIn({ provisional }: Report): Html | undefined {
  if (provisional.length === 0) return undefined;
  return notice("info", `Provisional, so it may still change: ${intervalsShown(provisional)}.`);
}

function hoursUnproved({ question, total }: Report): Html | undefined {
  if (question.per !== "hour" || !total.sum.isFinal || total.sum.isProved) return undefined;
  const byDay = addressOf(question, { per: "day" });
  return notice(
    "info",
    html`Hours are compared apart from days, and some of these are not yet. <a href="${byDay}">By day</a> they may be proved.`,
  );
}

function costsProvisional({ question, total, provisional }: Report): Html | undefined {
  const { isComplete, isFinal, isUnderWay } = total.sum;
  const isSaidAlready = provisional.length > 0 || isUnderWay;
  if (question.measure !== "cost" || !isComplete || isFinal || isSaidAlready) return undefined;
  return notice(
    "info",
    "Costs are provisional where an earlier day of their month is: it may shift the volume tiers.",
  );
}

function costOfNobody({ question, lines }: Report): Html | undefined {
  const { by, measure } = question;
  const apart = lines.find(({ kind }) => kind === "none");
  if (measure !== "cost" || apart === undefined || (apart.share ?? 0) < MUCH) return undefined;
  const one = idWord({ by, measure });
  return notice(
    "info",
    `${percent(apart.share)} of this cost stands for no ${one}: traces that name none, and what the platform counts without it, such as sandboxes.`,
  );
}

function withoutPrice(report: Report): Html | undefined {
  const unpriced = describeUnpricedDays(report.unpriced);
  if (unpriced === undefined) return undefined;
  const leftOut = `${unpriced} have no valid price, or their month was closed without their cost, so these costs leave them out.`;
  return notice("warn", prose(`${leftOut} \`usage-etl export --view usage_unpriced_daily\` lists them.`));
}
