import { z } from "zod";
import { counted } from "../../core/base/printable.ts";
import {
  type CalendarMonth,
  daysText,
  monthAt,
  monthNamed,
  monthTitle,
  shortDay,
} from "../../core/domain/months/month.ts";
import { FIGURE_STATUS, figureStatus } from "../../core/domain/proof/statuses.ts";
import { addMonths, type Days } from "../../core/domain/time/days.ts";
import { amountCut, amountDrawn, amountShown } from "../../core/domain/usage/amount.ts";
import type { Database } from "../../core/store/db/database.ts";
import { DIMENSIONS } from "../../core/store/db/dimensions.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { type UsageSource, usageSources } from "../../core/store/figures/sources.ts";
import { timeChart } from "../../web/chart.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  box,
  button,
  change,
  columns,
  type Html,
  html,
  kpis,
  money,
  name,
  notice,
  numberHead,
  optional,
  percent,
  pill,
  plainName,
  share,
  table,
  twin,
} from "../../web/parts.ts";
import { namedSource } from "../../web/query.ts";
import type { Context, Web } from "../../web/routes.ts";
import { costsText } from "../costs/bill.ts";
import { expectedUnloaded, limitUses } from "../costs/bill-terms.store.ts";
import type { LimitUse } from "../costs/usage-limit.ts";
import { asWorkbook } from "../export/workbook-file.ts";
import { currentBudgets, type MonthBudget, monthBudgets } from "../owners/budgets.ts";
import { NO_COST_CENTER, UNALLOCATED } from "../owners/owner.ts";
import { appliedOwners, ownedParts, ownerMonths } from "../owners/owners.store.ts";
import { budgetPill, budgetStatus, budgetTable } from "./budget-list.ts";
import { mergedReport } from "./merged-report.ts";
import { type Note, noteShown, notesOf } from "./notes.ts";
import { MOST_LISTED, partsFile, partsTable } from "./owner-parts.ts";
import { addressOf } from "./question.ts";
import { type Line, type Report, reportOf } from "./report.ts";
import { monthReports } from "./statement.ts";
import { figureShown, inCents, lineTitle, trend } from "./tables.ts";
import { requestedOf } from "./usage.page.ts";

const QUERY = z.object({
  source: optional(z.string().max(63)),
  month: optional(
    z.string().refine((text) => monthNamed(text) !== undefined, "it is not a month such as 2026-03"),
  ),
  owner: optional(z.string().max(1000)),
});
type Query = z.output<typeof QUERY>;

export function addOwners(web: Web): void {
  web.page("/owners", { query: QUERY, oneInstant: true, header: { month: true, all: true } }, show);
  web.file("/owners.xlsx", { query: QUERY }, async (context) => {
    const { db, query, masked, now, reply } = context;
    const { owner = UNALLOCATED, source, month = monthAt(now).name } = query;
    const tables = await inSnapshot(db, async (at) => {
      const of = { source: source ?? null, owner };
      const days = { from: `${month}-01`, to: addMonths(`${month}-01`, 1) };
      const parts = await ownedParts(at, { ...of, ...days, top: MOST_PARTS_IN_FILE });
      const months = await ownerMonths(at, { ...of, from: addMonths(days.from, -11), to: days.to });
      return [
        { sheet: month, table: partsFile(parts, { masked }) },
        {
          sheet: "12 months",
          table: {
            header: ["month", "currency", "estimated_cost"],
            rows: months.map((one) => [one.monthStart.slice(0, 7), one.currency, Number(one.cost)]),
          },
        },
      ];
    });
    return reply
      .type("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")
      .header(
        "content-disposition",
        `attachment; filename="usage-${month}-${owner.replace(/[^\w-]+/g, "_")}.xlsx"`,
      )
      .send(await asWorkbook(tables));
  });
}

const MOST_PARTS_IN_FILE = 50_000;

interface Teams {
  readonly query: Query;
  readonly shown: readonly UsageSource[];
  readonly month: CalendarMonth;
  readonly now: number;
  readonly masked: boolean;
  /** Costs, or traces if nothing has a price. */
  readonly main: Report;
  readonly beside: readonly Report[];
  readonly budgets: readonly MonthBudget[];
  readonly notes: readonly Note[];
}

async function show({ db, query, now, masked }: Context<Query>): Promise<Page> {
  const sources = await usageSources(db);
  const [first] = sources;
  if (first === undefined) return { title: "Teams", body: html`<p>No usage is loaded yet.</p>` };
  const shown = query.source === undefined ? sources : [namedSource(sources, query.source) ?? first];
  const month = monthNamed(query.month ?? "") ?? monthAt(now);
  const title = `Teams, ${monthTitle(month)}`;
  const all: NonNullable<Awaited<ReturnType<typeof monthReports>>>[] = [];
  for (const source of shown) {
    const reports = await monthReports(db, { source, month: month.name, by: "owner", now, masked });
    if (reports !== undefined) all.push(reports);
  }
  const traces = merged(all.map((one) => one.traces));
  if (traces === undefined) return { title, body: html`<p>No day of ${monthTitle(month)} is loaded.</p>` };
  const currencies = [
    ...new Set(all.flatMap(({ priced }) => priced.map(({ question }) => question.currency))),
  ];
  const priced = currencies.flatMap(
    (currency) =>
      merged(all.flatMap((one) => one.priced.filter(({ question }) => question.currency === currency))) ?? [],
  );
  const [main = traces, ...beside] = [...priced, traces];
  const notes: Note[] = [];
  for (const { priced, traces } of all) notes.push(...(await notesOf(db, priced[0] ?? traces)));
  const { budgets } =
    month.start === monthAt(now).start
      ? await currentBudgets(db)
      : { budgets: await monthBudgets(db, { month, now }) };
  const of: Teams = { query, shown, month, now, masked, main, beside, budgets, notes };
  return query.owner === undefined ? { title, ...(await allTeams(db, of)) } : teamPage(db, of, query.owner);
}

function merged(reports: readonly Report[]): Report | undefined {
  const [first, ...others] = reports;
  return first && mergedReport([first, ...others]);
}

const warnings = (notes: readonly Note[]) => notes.filter(({ kind }) => kind === "warn").map(noteShown);

/** Notes that say what a figure is, once each. */
function folded(notes: readonly Note[]): Html | "" {
  const infos = [
    ...new Map(notes.filter(({ kind }) => kind === "info").map((one) => [one.text, one])).values(),
  ];
  if (infos.length === 0) return "";
  return html`<details class="card"><summary><h2>Notes</h2></summary>${infos.map(noteShown)}</details>`;
}

function statusOf({ main }: Teams): Html {
  const { isComplete, isFinal, isProved } = main.total.sum;
  return pill(FIGURE_STATUS[figureStatus({ isComplete, isFinal, isProved })]);
}

const currencyOf = ({ question }: Report) => (question.measure === "cost" ? question.currency : undefined);
const unitOf = (report: Report) => currencyOf(report) ?? "traces";

function since({ change: percents, isComparable, before }: Line, { question }: Report): Html {
  return change(
    isComparable ? percents : null,
    `before: ${amountShown(before.amount)}, ${daysText(question.before)}`,
  );
}

async function allTeams(db: Database, of: Teams): Promise<Omit<Page, "title">> {
  const { query, shown, month, now, main, budgets, notes } = of;
  const applied = await appliedOwners(db);
  const to = (owner: string) => address("/owners", { source: query.source, month: month.name, owner });
  const limits: LimitUse[] = [];
  if (month.start === monthAt(now).start)
    for (const { sourceId } of shown) limits.push(...(await limitUses(db, sourceId)));
  if (applied === undefined)
    return {
      body: html`${await withoutFile(db, of)}${columns(box({ title: "Budgets and limits", body: budgetTable(budgets, limits) }))}`,
    };
  const nobody = main.lines.find(({ kind }) => kind === "none");
  const teams = new Set(main.lines.filter(({ kind }) => kind === "id").map(({ id }) => id));
  const states = budgets.map(budgetStatus);
  const exceeded = states.filter((one) => one === "exceeded").length;
  const atRisk = states.filter((one) => one === "at_risk").length;
  const isOne = shown.length === 1;
  return {
    pill: statusOf(of),
    about: isOne
      ? html`Divided by ${DIMENSIONS[applied.divideBy].title}, rules of ${shortDay(applied.appliedAt.toISOString())}. <a href="${address(`/months/${month.name}`, { source: shown[0]?.slug })}">The bill</a> shows proof and what is missing.`
      : `All sources: ${shown.map(({ slug }) => slug).join(", ")}`,
    ...(isOne && {
      actions: html`${button(addressOf(main.question, {}, "/usage.xlsx"), "Download Excel")}${button(addressOf(main.question, {}, "/usage.csv"), "CSV")}`,
    }),
    body: html`${await notLoaded(db, of)}${warnings(notes)}${kpis([
      {
        label: main.total.sum.isUnderWay ? "Total so far" : "Total",
        value: figureShown({ ...main.total.sum, isUnderWay: false }, main),
        unit: unitOf(main),
        note: html`${since(main.total, main)} vs the month before`,
      },
      { label: "Teams", value: `${teams.size}`, note: counted(applied.rules, "rule") },
      {
        label: "No team",
        value: nobody === undefined ? "None" : figureShown({ ...nobody.sum, isUnderWay: false }, main),
        ...(nobody && {
          unit: unitOf(main),
          note: html`${percent(nobody.share)} of the total <a href="${to(UNALLOCATED)}">Assign</a>`,
        }),
      },
      {
        label: "Budgets",
        value: exceeded > 0 ? `${exceeded} exceeded` : atRisk > 0 ? `${atRisk} at risk` : `${budgets.length}`,
        note:
          exceeded > 0 && atRisk > 0 ? `${atRisk} at risk` : `${counted(budgets.length, "budget")} in all`,
      },
    ])}
    ${columns(
      box({ title: "Cost by team", id: "teams", body: teamTable(of, to) }),
      box({ title: "Budgets and limits", body: budgetTable(budgets, limits) }),
    )}
    ${columns(trend(main))}${folded(notes)}`,
  };
}

/** What the figures of the page lack: workspaces that no sync loads. */
async function notLoaded(db: Database, { shown, month, now }: Teams): Promise<Html> {
  const lines: Html[] = [];
  for (const { slug } of shown) {
    const unloaded = await expectedUnloaded(db, { source: slug, month, now });
    if (unloaded.length === 0) continue;
    const worth = costsText(unloaded.flatMap(({ costs }) => costs).slice(0, 1));
    const text = `Not included: ${counted(unloaded.length, "workspace")} of ${slug} that no sync loads${worth === "" ? "" : `, about ${worth}`}${unloaded[0]?.asIn === undefined ? "" : ` as in ${unloaded[0].asIn}`}.`;
    lines.push(
      html`<p>${text} <a href="${address(`/months/${month.name}`, { source: slug })}">View the bill</a></p>`,
    );
  }
  return lines.length === 0 ? html`` : notice("warn", html`${lines}`);
}

function teamTable({ main, beside, budgets, month }: Teams, to: (owner: string) => string): Html {
  const traces = [main, ...beside].find((one) => one.question.measure !== "cost");
  const isCost = currencyOf(main) !== undefined;
  const hasCenters = main.lines.some(
    ({ kind, name }) => kind === "id" && name !== null && name !== NO_COST_CENTER,
  );
  const cents = inCents(
    main.lines.map(({ sum }) => sum),
    main,
  );
  const row = (line: Line, n?: number) => {
    const tracesOf =
      line.kind === "total"
        ? traces?.total
        : traces?.lines.find((one) => one.kind === line.kind && one.id === line.id && one.name === line.name);
    const owner = line.kind === "id" ? line.id : line.kind === "none" ? UNALLOCATED : null;
    const title =
      owner === UNALLOCATED
        ? html`No team`
        : owner === null
          ? html`${lineTitle(line, main.question)}`
          : name(owner);
    const own = budgets.find(
      (one) => one.of?.kind === "owner" && one.of.id === line.id && line.kind === "id",
    );
    return html`<tr><th scope="row">${owner === null ? title : html`<a href="${to(owner)}">${title}</a>`}</th>
      ${hasCenters && html`<td class="opt">${line.kind === "id" && line.name !== null ? name(line.name) : ""}</td>`}
      ${isCost && html`<td class="number opt">${tracesOf === undefined || traces === undefined ? "–" : figureShown({ ...tracesOf.sum, isUnderWay: false }, traces)}</td>`}
      <td class="number lead">${figureShown({ ...line.sum, isUnderWay: false }, main, n === undefined ? undefined : cents[n])}</td><td class="share">${share(line.share)}</td>
      <td class="number opt">${line.isComparable ? (isCost ? money(line.before.amount, currencyOf(main)) : amountShown(line.before.amount)) : "–"}</td>
      <td class="number change">${since(line, main)}</td><td class="opt">${own === undefined ? "" : budgetPill(own)}</td></tr>`;
  };
  return table({
    label: "Cost by team",
    kind: "two",
    id: "table",
    caption: `By team, ${monthTitle(month)}; the rows add up to the total`,
    heads: [
      "Team",
      ...(hasCenters ? [html`<th scope="col" class="opt">Cost centre</th>`] : []),
      ...(isCost ? [html`<th scope="col" class="number opt">Traces</th>`] : []),
      numberHead(isCost ? unitOf(main) : "Traces"),
      "Share",
      html`<th scope="col" class="number opt">Before</th>`,
      numberHead("Change"),
      html`<th scope="col" class="opt">Budget</th>`,
    ],
    rows: main.lines.map((line, n) => row(line, n)),
    foot: row(main.total),
  });
}

async function teamPage(db: Database, of: Teams, owner: string): Promise<Page> {
  const { query, month, main, beside, budgets, masked, notes } = of;
  const isNobody = owner === UNALLOCATED;
  const linesOf = ({ lines }: Report) =>
    lines.filter(({ kind, id }) => (isNobody ? kind === "none" : kind === "id" && id === owner));
  const about = { source: query.source, month: month.name };
  const found = await ownedParts(db, {
    source: query.source ?? null,
    owner,
    from: month.start,
    to: month.end,
    top: MOST_LISTED + 1,
  });
  const parts = found.slice(0, MOST_LISTED);
  const own = budgets.filter((one) => one.of?.kind === "owner" && one.of.id === owner);
  const [line] = linesOf(main);
  const whole = (report: Report) => linesOf(report).reduce((sum, one) => sum + one.sum.amount, 0n);
  // In cents as in the table of all teams, whose rows add up to the total.
  const cents = inCents(
    main.lines.map(({ sum }) => sum),
    main,
  );
  const inTable = linesOf(main).reduce((sum, one) => sum + (cents[main.lines.indexOf(one)] ?? 0n), 0n);
  const figure = (report: Report) =>
    line === undefined
      ? html`–`
      : figureShown(
          { ...line.sum, isUnderWay: false, amount: whole(report) },
          report,
          report === main ? inTable : undefined,
        );
  const title = `${isNobody ? "No team" : plainName(owner)}, ${monthTitle(month)}`;
  if (parts.length === 0)
    return {
      title,
      actions: button(address("/owners", about), "All teams"),
      body: html`${warnings(notes)}<p>${isNobody ? "Everything has a team" : "Nothing belongs to this team"} in ${monthTitle(month)}.</p>`,
    };
  return {
    title,
    pill: statusOf(of),
    about: query.source === undefined ? "All sources" : `Source ${query.source}`,
    actions: html`${button(address("/owners", about), "All teams")}${button(address("/owners.xlsx", { ...about, owner }), "Download Excel")}<button type="button" data-print>Print</button>`,
    body: html`${await notLoaded(db, of)}${warnings(notes)}${kpis([
      {
        label: "Estimated cost",
        value: currencyOf(main) === undefined ? "No price" : figure(main),
        unit: currencyOf(main),
        ...(line && { note: html`${since(line, main)} vs the month before` }),
      },
      ...beside.slice(-1).map((one) => ({ label: "Traces", value: figure(one) })),
      {
        label: "Share",
        value: percent(linesOf(main).reduce((sum, one) => sum + (one.share ?? 0), 0)),
        note: html`of ${figureShown({ ...main.total.sum, isUnderWay: false }, main)} ${unitOf(main)}`,
      },
      {
        label: "Budget",
        value: own[0] === undefined ? "None" : percent(own[0].percent),
        ...(own[0] && { note: budgetPill(own[0]) }),
      },
    ])}
    ${await monthsChart(db, of, owner)}
    ${columns(box({ title: "What it consists of", body: partsTable(parts, { isNobody, masked, isCut: found.length > parts.length, whole: { currency: currencyOf(main), cents: inTable } }) }))}
    ${own.length > 0 && columns(box({ title: "Budgets", body: budgetTable(own, []) }))}
    ${isNobody && twin(`usage-etl owners suggest --from ${month.start} --to ${month.end} --json`)}${folded(notes)}`,
  };
}

/** Bars of twelve months. A month that is not loaded in whole has a mark for at least its known cost. */
async function monthsChart(
  db: Database,
  { query, shown, month, now, main }: Teams,
  owner: string,
): Promise<Html> {
  const currency = currencyOf(main);
  if (currency === undefined) return html``;
  const range: Days = { from: addMonths(month.start, -11), to: month.end };
  const costs = await ownerMonths(db, { source: query.source ?? null, owner, ...range });
  const states = new Map<string, { isComplete: boolean; isFinal: boolean }>();
  for (const source of shown) {
    const { question } = await requestedOf(
      db,
      { source: source.slug, ...range, per: "month", measure: "cost", currency },
      { source, now },
    );
    const { from, to } = question.range;
    if (from === to) continue;
    const { buckets, total } = await reportOf(
      db,
      { ...question, before: { from, to: from } },
      { now, masked: true },
    );
    buckets.forEach(({ at }, n) => {
      const before = states.get(at);
      const { isComplete = false, isFinal = false } = total.trend[n] ?? {};
      states.set(at, {
        isComplete: isComplete && before?.isComplete !== false,
        isFinal: isFinal && before?.isFinal !== false,
      });
    });
  }
  const points = Array.from({ length: 12 }, (_, n) => {
    const at = addMonths(range.from, n);
    const { isComplete = false, isFinal = false } = states.get(at) ?? {};
    const own = costs.find((one) => one.monthStart === at && one.currency === currency);
    const value = amountDrawn(amountCut(own?.cost));
    return isComplete ? { at, value, isFinal } : { at, value: null, atLeast: value, isFinal: false };
  });
  const label = `${currency} per month, ${daysText(range)}`;
  return columns(
    box({
      title: "Twelve months",
      note: currency,
      body: timeChart({ points, height: 180, label, unit: currency, isMoney: true }),
    }),
  );
}

async function withoutFile(db: Database, { query, month, masked }: Teams): Promise<Html> {
  const parts = await ownedParts(db, {
    source: query.source ?? null,
    owner: UNALLOCATED,
    from: month.start,
    to: month.end,
    top: MOST_LISTED,
  });
  return html`${notice(
    "info",
    html`<p>No teams yet. An owner file says which team pays for what: by project, tag, name or workspace.</p>
      <p>Write one from the rules below, preview it, and apply it.</p>`,
  )}${twin(`usage-etl owners plan owners.yaml`, `usage-etl owners apply owners.yaml`)}
    ${columns(box({ title: "What has no team", body: partsTable(parts, { isNobody: true, masked, isCut: parts.length === MOST_LISTED }) }))}`;
}
