import { UsageError } from "../../core/base/errors.ts";
import { counted } from "../../core/base/printable.ts";
import { type CalendarMonth, daysTitle, monthAt } from "../../core/domain/months/month.ts";
import { FIGURE_STATUS } from "../../core/domain/proof/statuses.ts";
import { addMonths, daysBetween, monthStart } from "../../core/domain/time/days.ts";
import { type Amount, amountDrawn, amountOf } from "../../core/domain/usage/amount.ts";
import type { Database } from "../../core/store/db/database.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { meterStart } from "../../core/store/figures/counted.ts";
import { isLoadedByHour } from "../../core/store/figures/loaded.ts";
import { type UsageSource, usageSources } from "../../core/store/figures/sources.ts";
import type { Page } from "../../web/layout.ts";
import { button, type Html, html, type Kpi, kpis, name, notice, pill, prose } from "../../web/parts.ts";
import { namedSource } from "../../web/query.ts";
import type { Context, Web } from "../../web/routes.ts";
import type { Bill } from "../costs/bill.ts";
import { monthBill } from "../costs/bill-lines.store.ts";
import { withoutCost } from "../costs/bill-table.ts";
import { currenciesOf } from "../costs/costs.store.ts";
import { readMonthBill } from "../costs/month-bill.store.ts";
import { asCsv, BYTE_ORDER_MARK } from "../export/table-file.ts";
import { fileName, idLines, trendLines } from "./files.ts";
import { noteShown, notesOf } from "./notes.ts";
import {
  addressOf,
  COUNTED_WORDS,
  filtersOf,
  idWord,
  type Question,
  questionForm,
  questionOf,
  type Refused,
  refusalOf,
  USAGE_QUERY,
  type UsageQuery,
  whyEmpty,
} from "./question.ts";
import { type Report, reportOf } from "./report.ts";
import { figureShown, headline, idTable, statusOf, trend, unitOf } from "./tables.ts";
import { workbookOf } from "./workbook.ts";

export function addUsage(web: Web): void {
  web.page("/usage", { query: USAGE_QUERY, oneInstant: true, header: { month: true } }, show);
  web.file("/usage.csv", { query: USAGE_QUERY }, async (context) => {
    const report = await inSnapshot(context.db, (db) => reportForFile({ ...context, db }));
    const table = context.query.table ?? "ids";
    return context.reply
      .type("text/csv; charset=utf-8")
      .header("content-disposition", `attachment; filename="${fileName(report, "csv", table)}"`)
      .send(`${BYTE_ORDER_MARK}${asCsv(table === "ids" ? idLines(report) : trendLines(report))}`);
  });
  web.file("/usage.xlsx", { query: USAGE_QUERY }, async (context) => {
    const { now, masked, reply } = context;
    const read = await inSnapshot(context.db, async (db) => {
      const report = await reportForFile({ ...context, db });
      return { report, notes: await notesOf(db, report), bill: await billOf(db, report.question) };
    });
    const { report } = read;
    const workbook = await workbookOf(read, { now, masked });
    return reply
      .type("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")
      .header("content-disposition", `attachment; filename="${fileName(report, "xlsx")}"`)
      .send(workbook);
  });
}

/** `db` is a snapshot. Errors: those of `questionOf`, `usage_missing`, `usage_range_long`. */
async function reportForFile({ db, query, now, masked }: Context<UsageQuery>): Promise<Report> {
  const source = namedSource(await usageSources(db), query.source);
  const requested = source && (await requestedOf(db, query, { source, now }));
  if (requested === undefined || isUnpriced(requested.question) || !requested.question.isLoaded) {
    throw new UsageError({
      code: "usage_missing",
      message: "There is nothing to show: no source, no price, or no usage of this measure is stored.",
      next: "Run `usage-etl status` to see what is stored, or `usage-etl prices import FILE` to import prices.",
    });
  }
  const message = refusalOf(requested.question);
  if (message !== undefined) {
    throw new UsageError({
      code: "usage_range_long",
      message,
      next: "Run `usage-etl export --view fct_cost_by_id_daily --where group_by=user` for a longer range.",
    });
  }
  return reportOf(db, requested.question, { now, masked });
}

/** The month whose bill belongs to the question: all workspaces of a whole month. */
function billedMonth({ requested, range, measure, workspace }: Question): CalendarMonth | undefined {
  const isMonth =
    requested.from === monthStart(requested.from) && requested.to === addMonths(requested.from, 1);
  if (range.from === range.to || !isMonth || workspace !== undefined) return undefined;
  return measure === "traces" || measure === "cost" ? monthAt(Date.parse(requested.from)) : undefined;
}

async function billOf(db: Database, question: Question): Promise<Bill | undefined> {
  const month = billedMonth(question);
  const { slug, dataStart } = question.source;
  return month && readMonthBill(db, { source: slug, dataStart, month });
}

async function leftOut(db: Database, question: Question): Promise<Html | ""> {
  const month = question.measure === "cost" ? billedMonth(question) : undefined;
  if (month === undefined) return "";
  return withoutCost(await monthBill(db, { source: question.source.slug, monthStart: month.start }));
}

async function show({ db, query, now, masked }: Context<UsageQuery>): Promise<Page> {
  const source = namedSource(await usageSources(db), query.source);
  if (source === undefined)
    return {
      title: "Usage",
      body: said("No source is stored yet. `usage-etl sync --inline` loads the first usage."),
    };
  const requested = await requestedOf(db, query, { source, now }).catch(refusedForm);
  const refused = "why" in requested ? requested : undefined;
  const { question, currencies } =
    "why" in requested
      ? await requestedOf(
          db,
          { ...query, from: undefined, to: undefined, against: undefined },
          { source, now },
        )
      : requested;
  const page = { title: `Usage, ${daysTitle(question.requested)}`, filters: filtersOf(question) };
  const form = questionForm(question, currencies, refused && { ...refused, given: query });
  if (refused !== undefined) return { ...page, body: form, status: 400 };
  if (question.range.from === question.range.to)
    return { ...page, body: html`${form}${said(`There is nothing to show. ${whyEmpty(question)}`)}` };
  const refusal = refusalOf(question);
  if (refusal !== undefined) return { ...page, body: html`${form}${notice("warn", refusal)}` };
  if (isUnpriced(question)) return { ...page, body: html`${form}${said(NO_PRICE)}` };
  if (!question.isLoaded) return { ...page, body: html`${form}${notLoaded(question)}` };
  const report = await reportOf(db, question, { now, masked });
  const status = FIGURE_STATUS[statusOf(report.total.sum)];
  const body = html`${form}
      ${kpis(await kpisOf(db, report, { now, masked }))}
      ${(await notesOf(db, report)).map(noteShown)}
      ${await leftOut(db, question)}
      ${trend(report)}
      ${idTable(report)}`;
  return { ...page, pill: pill(status), actions: downloads(question), body };
}

/** An error of the range stands in the form, which stays. */
function refusedForm(error: unknown): Omit<Refused, "given"> {
  if (!(error instanceof UsageError)) throw error;
  const field = ({ range_reversed: "range", range_not_earlier: "against" } as const)[error.code];
  if (field === undefined) throw error;
  return { field, code: error.code, why: `${error.message} ${error.next}` };
}

async function kpisOf(db: Database, report: Report, given: { now: number; masked: boolean }): Promise<Kpi[]> {
  const { question, total, lines } = report;
  const { ended, measure } = question;
  const unit = measure === "cost" ? unitOf(report) : undefined;
  const shown = (amount: Amount) =>
    html`${amount > 0n ? "+" : amount < 0n ? "−" : ""}${amountIn(report, amount < 0n ? -amount : amount)}`;
  const days = daysBetween(ended);
  const grown = lines
    .filter(({ kind, isComparable }) => kind === "id" && isComparable)
    .map((line) => ({ line, more: line.compared - line.before.amount }))
    .toSorted((a, b) => (a.more < b.more ? 1 : -1))[0];
  // A dimension that is not loaded may hide usage that its workspaces have.
  const isHidden =
    !total.sum.isComplete && measure === "traces" && !["workspace", "owner"].includes(question.by);
  const all = isHidden ? await reportOf(db, { ...question, by: "workspace" }, given) : undefined;
  const isMore = all !== undefined && all.total.sum.amount > total.sum.amount;
  return [
    headline(
      report,
      isMore
        ? {
            isStated: false,
            figure: all.total.sum,
            note: html`<span>${amountIn(report, total.sum.amount)} by ${idWord(question)}</span>`,
          }
        : { isStated: false },
    ),
    {
      label: "Change",
      value: total.isComparable ? shown(total.compared - total.before.amount) : "–",
      unit,
      note: total.isComparable
        ? html`${amountIn(report, total.before.amount)} before`
        : "Needs two complete periods",
    },
    {
      label: "Per day",
      value:
        days > 0 && total.sum.isComplete ? amountIn(report, perDay(total.compared, days, question)) : "–",
      unit,
      note: `${counted(days, "day")}${ended.to < question.range.to ? ", without today" : ""}`,
    },
    {
      label: "Largest rise",
      value: grown === undefined || grown.more <= 0n ? "–" : shown(grown.more),
      unit,
      ...(grown !== undefined && grown.more > 0n && { note: name(grown.line.name ?? grown.line.id ?? "") }),
    },
  ];
}

function amountIn(report: Report, amount: Amount): Html {
  return figureShown({ ...report.total.sum, amount, isComplete: true, isUnderWay: false }, report);
}

/** Counts are whole. */
function perDay(amount: Amount, days: number, { measure }: Question): Amount {
  return measure === "cost" ? amount / BigInt(days) : amountOf(Math.round(amountDrawn(amount) / days));
}

function downloads(question: Question): Html {
  return html`${button(addressOf(question, {}, "/usage.xlsx"), "Excel")}${button(addressOf(question, {}, "/usage.csv"), "CSV")}${button(addressOf(question, { table: "time" }, "/usage.csv"), "CSV by day")}`;
}

function isUnpriced({ measure, currency }: Question): boolean {
  return measure === "cost" && currency === undefined;
}

export async function requestedOf(
  db: Database,
  query: UsageQuery,
  { source, now }: { source: UsageSource; now: number },
): Promise<{ question: Question; currencies: readonly string[] }> {
  const { measure = "traces" } = query;
  // Deployment usage has a data start of its own.
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
  const requested = hasHours ? found : questionOf({ ...query, per: "day" }, about);
  if (measure !== "cost") return { question: requested, currencies: [] };
  const currencies = await currenciesOf(db, source.sourceId);
  return { question: { ...requested, currency: currencyOf(requested.currency, currencies) }, currencies };
}

/** An unknown currency is no error: the first one is shown, and the form names it. */
function currencyOf(requested: string | undefined, currencies: readonly string[]): string | undefined {
  return currencies.find((one) => one === requested) ?? currencies[0];
}

const NO_PRICE =
  "No price is stored, so nothing is estimated. `usage-etl prices import FILE` imports prices.";

function said(text: string): Html {
  return notice("info", prose(text));
}

function notLoaded({ measure, source }: Question): Html {
  const what = measure === "cost" ? "usage" : COUNTED_WORDS[measure];
  return said(
    `No ${what} of ${source.slug} are loaded, which is not zero. \`usage-etl doctor\` says what its server counts.`,
  );
}
