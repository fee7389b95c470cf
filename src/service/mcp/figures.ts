import { describeUnpricedDays } from "../../domain/bill/price.ts";
import { monthTitle } from "../../domain/months/month.ts";
import { addDays, type Days, dayOf, monthStart, monthsOfDays } from "../../domain/time/days.ts";
import type { Interval } from "../../domain/time/window.ts";
import { amountText } from "../../domain/usage/amount.ts";
import type { LoadedWorkspace } from "../../store/figures/loaded.ts";
import type { Per } from "../../store/figures/records.ts";
import type { UsageWorkspace } from "../../store/figures/sources.ts";
import { laterCosts } from "../../store/months/closed-costs.ts";
import { type ClosedMonth, closedMonths } from "../../store/months/closed-months.ts";
import { changedMonths } from "../../store/months/month-adjustments.ts";
import { bucketsOf, type State } from "../web/figures/loaded-time.ts";
import { NO_INVOICE, type Question, whyEmpty } from "../web/figures/question.ts";
import { type Figure, type Line, type Report, reportOf } from "../web/figures/report.ts";
import { lineTitle, stateWord, unitOf } from "../web/figures/tables.ts";
import type { Asked } from "./input.ts";

/** Figures of usage and costs as an answer: each with what it can claim, and all of it with the days that are missing. */

/** Figures of lines by bucket in one answer. */
const MOST_FIGURES = 1_000;

interface Wanted {
  /** Whether each line has its figure of every bucket too. */
  readonly byBucket: boolean;
  /** Lines of ids. */
  readonly rows: number;
}

export async function figuresOf(asked: Asked, question: Question, wanted: Wanted) {
  const { range, source, workspace, by, measure } = question;
  const about = {
    source: source.slug,
    workspace: workspace === undefined ? null : { id: workspace.id, name: workspace.name },
    by,
    measure,
    ...daysOf(range),
  };
  if (range.from === range.to)
    return { ...about, total: null, lines: [], notes: [`There is nothing to show. ${whyEmpty(question)}`] };
  const buckets = wanted.byBucket ? bucketsOf(range, question.per).length : 1;
  const rows = Math.max(1, Math.min(wanted.rows, Math.floor(MOST_FIGURES / buckets)));
  const { db, now, masked } = asked;
  const report = await reportOf(db, { ...question, rows }, { now, masked });
  const closed = await closedOf(asked, source.sourceId, {
    ...range,
    measure,
    workspace,
    isFinal: report.total.sum.isFinal,
  });
  const lineOf = (line: Line) => ({
    ...namesOf(line, question),
    ...figureOf(line.sum, question),
    share_percent: line.share,
    change_percent: line.change,
    ...(wanted.byBucket && { [`per_${question.per}`]: courseOf(line, report) }),
  });
  return {
    ...about,
    unit: unitOf(report),
    compared_with: question.before.from < question.before.to ? daysOf(question.before) : null,
    total: lineOf(report.total),
    lines: report.lines.map(lineOf),
    ...claimsOf(report.total.sum),
    ...closed,
    missing: spansOf(
      report.gaps.map(({ missing, ...one }) => ({ ...one, spans: missing })),
      question.per,
    ),
    provisional: report.provisional.slice(0, MOST_SPANS).map((one) => spanOf(one, question.per)),
    notes: [
      ...notesOf(report),
      ...(rows < wanted.rows
        ? [
            `Lines were limited to ${rows}: with a figure for each of ${buckets} ${question.per}s, more would be too long.`,
          ]
        : []),
      ...(await sinceCloses(asked, question)),
    ],
  };
}

/** Half-open, as all ranges; the last day says what that means. */
export function daysOf({ from, to }: Days) {
  return { from, to, last_day: from < to ? addDays(to, -1) : null };
}

/** Counts are numbers, money and units exact decimals. Null: not all of it is loaded, which is not zero. */
function figureOf(figure: Figure, { measure }: Pick<Question, "measure">) {
  const text = amountText(figure.amount);
  const amount = MONEY.has(measure) ? text : Number(text);
  return {
    amount: figure.isComplete ? amount : null,
    ...(figure.isComplete ? {} : { amount_loaded: amount }),
    state: stateWord(figure),
  };
}

/** Whose amounts have digits after the point. */
const MONEY: ReadonlySet<Question["measure"]> = new Set(["cost", "spend_usd", "lcu", "lsu"]);

export function claimsOf({ isComplete, isFinal, isProved }: State) {
  return { is_complete: isComplete, is_final: isFinal, is_proved: isProved };
}

function namesOf(line: Line, question: Question) {
  if (line.kind === "total") return {};
  if (line.kind === "id") return { id: line.id, name: line.name };
  return { id: null, name: lineTitle(line, question) };
}

function courseOf(line: Line, { buckets, question }: Report) {
  return buckets.map(({ at }, n) => ({ at, ...figureOf(line.course[n] as Figure, question) }));
}

/**
 * Which months of a range are closed, and whether a figure of all of it is. A close keeps traces of all tiers, and costs if it was one of
 * costs too: those of other usage only as far as that was final. Of a workspace that it left out it keeps nothing.
 */
export async function closedOf(
  { db }: Asked,
  sourceId: number,
  about: Days & {
    readonly measure: Question["measure"];
    readonly workspace?: UsageWorkspace | undefined;
    /** Of costs. */
    readonly isFinal?: boolean;
  },
) {
  const { from, to, measure, workspace, isFinal = false } = about;
  const months = monthsOfDays({ from, to }).map((month) => month.from.slice(0, 7));
  const closed = await closedMonths(db, { sourceId, from: monthStart(from), to });
  const later =
    measure === "cost" ? await laterCosts(db, { sourceId, from, to, workspace: workspace?.key }) : [];
  const keeps = ({ costsClosedAt, without }: ClosedMonth) =>
    (measure === "traces" || (measure === "cost" && costsClosedAt !== null && isFinal)) &&
    (workspace === undefined ? without.length === 0 : !without.includes(workspace.id));
  return {
    is_closed:
      months.length > 0 &&
      months.every((month) => closed.some((one) => one.month === month && keeps(one))) &&
      !later.some(({ isUnkept }) => isUnkept),
    closed_months: closed.map(monthOf),
  };
}

function monthOf({ month, closedAt, costsClosedAt, traces, without }: ClosedMonth) {
  return {
    month,
    closed_at: closedAt,
    costs_closed_at: costsClosedAt,
    closed_traces_of_all_workspaces: traces,
    workspaces_left_out: without,
  };
}

const MOST_WORKSPACES = 20;
const MOST_SPANS = 20;

/** Times of some workspaces, of which an answer lists the first. */
export function spansOf(
  parts: readonly (Pick<LoadedWorkspace, "workspaceId" | "name"> & { readonly spans: readonly Interval[] })[],
  per: Per = "day",
) {
  const some = parts.filter(({ spans }) => spans.length > 0);
  return {
    workspaces: some.length,
    listed: some.slice(0, MOST_WORKSPACES).map(({ workspaceId, name, spans }) => ({
      workspace_id: workspaceId,
      workspace_name: name,
      parts: spans.length,
      listed: spans.slice(0, MOST_SPANS).map((one) => spanOf(one, per)),
    })),
  };
}

function spanOf({ start, end }: Interval, per: Per) {
  const at = (instant: number) =>
    per === "hour" ? `${new Date(instant).toISOString().slice(0, 19)}Z` : dayOf(instant);
  return { from: at(start), to: at(end) };
}

/** What a reader must know before they believe the figures. */
function notesOf({ question, total, lines, unpriced }: Report): string[] {
  const { asked, range, source, perNote, measure, today, find } = question;
  const leftOut = describeUnpricedDays(unpriced);
  return [
    ...(perNote === undefined ? [] : [perNote]),
    ...(asked.from < range.from
      ? [`Usage of ${source.slug} begins on ${source.dataStart}: days before it are left out.`]
      : []),
    ...(asked.to > range.to ? [`Today is ${today}: later days are left out.`] : []),
    ...(total.sum.isUnderWay ? [`${today} is under way: its figures grow until it ends.`] : []),
    ...(measure === "spend_usd" ? [NO_INVOICE] : []),
    ...(leftOut === undefined
      ? []
      : [
          `${leftOut} have no valid price, or their month was closed without their cost, so these costs leave them out.`,
        ]),
    ...(find === undefined || lines.some(({ kind }) => kind === "id")
      ? []
      : [`Nothing has ${JSON.stringify(find)} in its name or id.`]),
    ...(lines.some(({ kind }) => kind === "rest")
      ? ["The line without an id that says The rest stands for all others. The lines add up to the total."]
      : []),
  ];
}

/** Traces are those of now, and costs of a closed month those of its close. */
async function sinceCloses({ db }: Asked, question: Question): Promise<string[]> {
  const { source, workspace, range, measure, currency } = question;
  if (measure !== "traces" && measure !== "cost") return [];
  const about = { sourceId: source.sourceId, ...range, workspace: workspace?.key };
  const changed = await changedMonths(db, about);
  const later = measure === "cost" ? await laterCosts(db, about) : [];
  return [
    ...changed.map(({ month, closedTraces, netTraces, hasCosts }) => {
      const since = `${monthTitle({ start: month })} was closed with ${closedTraces} traces of ${workspace === undefined ? "all workspaces" : "this workspace"}, and has ${Math.abs(netTraces)} ${netTraces > 0 ? "more" : "fewer"} now.`;
      return `${since} ${measure === "cost" && hasCosts ? "Closed costs are those of the close." : "These figures are those of now."}`;
    }),
    ...later
      .filter((one) => one.currency === currency && Number(one.more) !== 0)
      .map(
        ({ month, more }) =>
          `What was asked for of ${monthTitle({ start: month })} costs ${more.replace("-", "")} ${currency} ${more.startsWith("-") ? "less" : "more"} now than its close kept. These costs are those of the close: bills of later months have the difference as corrections.`,
      ),
  ];
}
