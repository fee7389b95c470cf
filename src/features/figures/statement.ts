import type { Days } from "../../core/domain/time/days.ts";
import type { Database } from "../../core/store/db/database.ts";
import { type UsageSource, usageSources } from "../../core/store/figures/sources.ts";
import { closedMonths } from "../../core/store/months/closes.ts";
import { address, type Cell, type Html, html } from "../../web/parts.ts";
import { namedSource } from "../../web/query.ts";
import { noteShown, notesOf } from "./notes.ts";
import { addressOf, type Question } from "./question.ts";
import { type Figure, type Report, reportOf } from "./report.ts";
import { changeSince, figureShown, headline, idTable, stateBadge, trend } from "./tables.ts";
import { requestedOf } from "./usage.page.ts";

interface Statement {
  readonly sums: Html;
  readonly parts: Html;
}

interface MonthFigures {
  readonly currencies: readonly string[];
  readonly cells: ReadonlyMap<string, readonly Cell[]>;
}

export function costColumn(currency: string): string {
  return `Estimated cost, ${currency}`;
}

export async function figuresByMonth(
  db: Database,
  given: Days & { readonly source: string; readonly now: number },
): Promise<MonthFigures> {
  const source = namedSource(await usageSources(db), given.source);
  const none = { currencies: [], cells: new Map() };
  if (source === undefined) return none;
  const { from, to, now } = given;
  const query = { source: source.slug, from, to, per: "month" as const };
  const { question } = await requestedOf(db, query, { source, now });
  if (question.range.from === question.range.to) return none;
  // The months are compared with each other, so no earlier range is read.
  const read = (requested: Question) => {
    const { from: start } = requested.range;
    return reportOf(db, { ...requested, before: { from: start, to: start } }, { now, masked: true });
  };
  const traces = await read(question);
  const costs = await requestedOf(db, { ...query, measure: "cost" }, { source, now });
  const priced: Report[] = [];
  for (const currency of costs.currencies) priced.push(await read({ ...costs.question, currency }));
  const months = traces.total.trend;
  const cells = traces.buckets.map(({ at }, n): [string, Cell[]] => {
    const figure = months[n] as Figure;
    const before = traces.buckets[n - 1];
    // A first month that the data start cuts is not compared.
    const whole = before?.start === Date.parse(before?.at ?? "") ? months[n - 1] : undefined;
    return [
      at,
      [
        ["Traces", figureShown(figure, traces), "number"],
        ["Change", changeSince(whole, figure), "number"],
        ...priced.map((report, of): Cell => {
          const shown = figureShown(report.total.trend[n] as Figure, report);
          return [costColumn(costs.currencies[of] ?? ""), shown, "number"];
        }),
        ["State of traces", stateBadge(figure)],
      ],
    ];
  });
  return { currencies: costs.currencies, cells: new Map(cells) };
}

export async function monthReports(
  db: Database,
  {
    source,
    month,
    by,
    ...given
  }: {
    source: UsageSource;
    month: string;
    by: "workspace" | "owner";
    now: number;
    masked: boolean;
  },
): Promise<{ readonly traces: Report; readonly priced: readonly Report[] } | undefined> {
  // By default a month's first days are read by the hour, and only recent hours are loaded. All lines are read, so that each
  // cost is next to its traces.
  const query = { source: source.slug, month, by, per: "day" as const };
  const all = { ...query, rows: "500" };
  const { question } = await requestedOf(db, by === "owner" ? all : query, { source, now: given.now });
  if (question.range.from === question.range.to) return undefined;
  const costs = await requestedOf(db, { ...all, measure: "cost" }, { source, now: given.now });
  const priced: Report[] = [];
  for (const currency of costs.currencies)
    priced.push(await reportOf(db, { ...costs.question, currency }, given));
  return { traces: await reportOf(db, question, given), priced };
}

export async function statementOf(
  db: Database,
  given: { source: string; month: string; now: number; masked: boolean },
): Promise<Statement | undefined> {
  const source = namedSource(await usageSources(db), given.source);
  if (source === undefined) return undefined;
  const reports = await monthReports(db, { ...given, source, by: "workspace" });
  if (reports === undefined) return undefined;
  const { traces, priced } = reports;
  const { question } = traces;
  const { requested, range } = question;
  const [closed] = await closedMonths(db, { sourceId: source.sourceId, from: requested.from, to: range.to });
  // A workspace that the close left out has today's costs.
  const asClosed = closed !== undefined && closed.costsClosedAt !== null && closed.without.length === 0;
  const others = (["project", "user", "api_key"] as const).map(
    (by) => html`<li><a href="${addressOf(question, { by })}">by ${by === "api_key" ? "key" : by}</a></li>`,
  );
  return {
    sums: html`<dl class="facts">${headline(traces)}${priced.map((one) => headline(one, { asClosed }))}</dl>
      ${(await notesOf(db, traces)).map(noteShown)}`,
    parts: html`<h2>Traces</h2>${trend(traces)}${idTable(traces, priced.slice(0, 1), { asClosed })}
      <nav class="presets" aria-label="The same month"><ul>${others}
        <li><a href="${address("/owners", { source: source.slug, month: given.month })}">by owner</a></li>
        ${priced.slice(0, 1).map((one) => html`<li><a href="${addressOf(one.question, { rows: undefined })}">its costs</a></li>`)}
        <li><a href="${addressOf(question, {}, "/usage.xlsx")}">Excel of traces</a></li>
        ${priced.map((one) => html`<li><a href="${addressOf(one.question, {}, "/usage.xlsx")}">Excel of costs, ${one.question.currency}</a></li>`)}</ul></nav>`,
  };
}
