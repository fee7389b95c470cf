import type { DigestPeriod } from "../../domain/bill/alert-route.ts";
import { UNALLOCATED } from "../../domain/bill/owner.ts";
import { type CalendarMonth, daysText, monthAt, monthBefore } from "../../domain/months/month.ts";
import { addDays, addMonths, type Days, dayOf, daysBetween } from "../../domain/time/days.ts";
import { type Amount, amountCut, amountDrawn, amountShown, centsShown } from "../../domain/usage/amount.ts";
import { counted, printableLine } from "../../printable.ts";
import { appliedOwners, type OwnerFigure, ownedState, ownersOf } from "../../store/bill/owners.ts";
import { trustOfSources } from "../../store/coverage/trust.ts";
import type { Database } from "../../store/db/database.ts";
import { inSnapshot } from "../../store/db/snapshot.ts";
import { usageSources } from "../../store/figures/sources.ts";
import { describeBudget, monthBudgets } from "../bill/budgets.ts";
import { type ConditionSettings, factOf, firingAlerts, idOf } from "./conditions.ts";
import { type Line, linkTo, type Message } from "./message.ts";

/** What somebody reads once a week or month: what was used, by whom, and how far it can be trusted. */

const HOUR_MS = 3_600_000;
/** After the night's comparisons. */
const AT_HOUR = 6;
/** Of the month: then the days of the one before are final and compared, by the default of USAGE_SETTLE_AFTER. */
const MONTHLY_ON = 5;
const MOST = { owners: 8, budgets: 10 };

/** When the newest digest was due, epoch milliseconds: Mondays and the fifth of each month, at 06:00 UTC. */
export function dueSince(period: DigestPeriod, now: number): number {
  const today = dayOf(now - AT_HOUR * HOUR_MS);
  const at = Date.parse(today);
  const weekday = (new Date(at).getUTCDay() + 6) % 7;
  const fifth = (month: string) => `${month.slice(0, 8)}0${MONTHLY_ON}`;
  const day =
    period === "weekly"
      ? addDays(today, -weekday)
      : today >= fifth(today)
        ? fifth(today)
        : fifth(addMonths(`${today.slice(0, 8)}01`, -1));
  return Date.parse(day) + AT_HOUR * HOUR_MS;
}

export interface DigestAsked extends ConditionSettings {
  readonly period: DigestPeriod;
  /** Null: of everybody. Else of these alone, without what is of no owner. */
  readonly owners: readonly string[] | null;
  /** Postgres's clock, epoch milliseconds. */
  readonly now: number;
  readonly webUrl?: string | undefined;
}

/** The one that was due last, by figures of now. Weekly: the month up to the day before. Monthly: the month before. */
export async function digestOf(db: Database, asked: DigestAsked): Promise<Message> {
  const { period, owners, now } = asked;
  const due = dueSince(period, now);
  const month = period === "weekly" ? monthAt(due - 24 * HOUR_MS) : monthBefore(monthAt(due));
  const range = { from: month.start, to: [dayOf(due), month.end].sort()[0] as string };
  const lines = await inSnapshot(db, async (snapshot) => [
    ...(await linesOfSources(snapshot, { ...asked, month, range })),
    ...(await linesOfBudgets(snapshot, { month, now }, asked)),
    ...(owners === null ? await linesOfTrust(snapshot, asked) : []),
  ]);
  return {
    id: idOf("digest", period, due, owners),
    subject: `usage-etl: ${period} digest, ${daysText(range)}`,
    lines: lines.map((line) => ({ ...line, text: printableLine(line.text) })),
    alerts: [],
  };
}

type OfMonth = DigestAsked & { readonly month: CalendarMonth; readonly range: Days };

async function linesOfSources(db: Database, asked: OfMonth): Promise<Line[]> {
  const lines: Line[] = [];
  for (const { slug, dataStart } of await usageSources(db)) {
    const from = [asked.range.from, dataStart].sort()[1] as string;
    if (from < asked.range.to)
      lines.push(
        ...(await linesOfSource(db, { slug, dataStart }, { ...asked, range: { from, to: asked.range.to } })),
      );
  }
  if ((await appliedOwners(db)) === undefined)
    lines.push(lineOf("Nothing has an owner: no owner file is applied. See usage-etl owners suggest."));
  return lines;
}

async function linesOfSource(
  db: Database,
  { slug, dataStart }: { slug: string; dataStart: string },
  { range, month, owners, webUrl }: OfMonth,
): Promise<Line[]> {
  const start = addMonths(range.from, -1);
  // As many days, but all of the month before against a whole month.
  const same = addDays(start, daysBetween(range));
  const before = { from: start, to: range.to === month.end || same > month.start ? month.start : same };
  const { figures } = await ownersOf(db, { source: slug, range, ended: range, before });
  const state = await ownedState(db, { source: slug, range, before });
  // Days that are not loaded would look like a change.
  const isAlike = range.to === month.end || daysBetween(before) === daysBetween(range);
  const hasBefore = isAlike && start >= dataStart && state.daysMissing === 0 && state.daysMissingBefore === 0;
  const least = state.daysMissing > 0 ? "at least " : "";
  const total = totalOf(figures, { hasBefore });
  const against = total.before === 0n ? "" : ` Changes are against ${daysText(before)}.`;
  const currencies = Object.keys(total.costs).sort();
  const amounts = [
    describeChange(total.traces, total.before, "traces"),
    ...currencies.map((each) => `estimated cost ${least}${shownIn(total.costs[each] ?? 0n, each)}`),
  ];
  const used = owners === null ? ` ${least}${amounts.join(", ")}.` : "";
  const priced = currencies.length === 0 ? "" : " Costs are of what has a price.";
  const ranked = figures.filter(({ owner }) =>
    owners === null ? figures.length > 1 || owner !== UNALLOCATED : owners.includes(owner),
  );
  const ofOwner = (one: OwnerFigure) => {
    const traces = amountCut(one.traces);
    if (currencies.length === 0)
      return describeChange(traces, amountCut(hasBefore ? one.tracesBefore : null), "traces");
    const costs = Object.entries(one.costs).map(([each, cost]) =>
      describeChange(amountCut(cost), amountCut(hasBefore ? one.costsBefore[each] : null), each),
    );
    return costs.length === 0 ? `${shownIn(traces, "traces")} without a price` : costs.join(", ");
  };
  return [
    {
      text: `${slug}, ${daysText(range)}:${used}${against}${priced}`,
      link: linkTo(webUrl, `/owners?${new URLSearchParams({ source: slug, month: month.name })}`),
    },
    ...ranked.slice(0, MOST.owners).map((one) => lineOf(`- ${one.owner}: ${least}${ofOwner(one)}`)),
    ...(ranked.length > MOST.owners
      ? [lineOf(`- and ${counted(ranked.length - MOST.owners, "owner")} more`)]
      : []),
    ...(owners !== null && ranked.length === 0 ? [lineOf(`- nothing of ${owners.join(", ")}`)] : []),
    ...(state.daysUndivided > 0
      ? [
          lineOf(
            `- not divided between owners yet: ${counted(state.daysUndivided, "day")} of workspaces. They count for who has the rest.`,
          ),
        ]
      : []),
    ...(state.open.length > 0
      ? [lineOf(`- not final: ${counted(state.open.length, "day")}, whose figures may still change.`)]
      : []),
  ];
}

/** What is on the way to be used up first. */
async function linesOfBudgets(
  db: Database,
  asked: Parameters<typeof monthBudgets>[1],
  { owners }: DigestAsked,
): Promise<Line[]> {
  const budgets = (await monthBudgets(db, asked)).filter(
    ({ of }) => owners === null || (of?.kind === "owner" && owners.includes(of.id)),
  );
  const known = budgets.flatMap((one) => (one.period === null ? [] : { ...one, period: one.period }));
  const first = known.sort((a, b) => (b.percent ?? 0) - (a.percent ?? 0)).slice(0, MOST.budgets);
  const [more, unknown] = [known.length - first.length, budgets.length - known.length];
  return [
    ...first.map((one) =>
      lineOf(describeBudget(one).replace(/this (month|billing period)/, `in ${daysText(one.period)}`)),
    ),
    ...(more > 0 ? [lineOf(`And ${counted(more, "budget")} more, of which less is used.`)] : []),
    ...(unknown > 0 ? [lineOf(`Not known of ${counted(unknown, "budget")}: its billing period.`)] : []),
  ];
}

/** Where the platform contradicts itself, and what nobody has proved. */
async function linesOfTrust(db: Database, asked: DigestAsked): Promise<Line[]> {
  const firing = await firingAlerts(db, asked);
  return (await trustOfSources(db)).flatMap(({ source, dataStart, finalUntil, provedUntil, gapDays }) => {
    const until = (is: string, day: string) =>
      day <= dataStart ? `no day is ${is} yet` : `${is} until ${addDays(day, -1)}`;
    const open = gapDays === 0 ? "" : ` ${gapDays.toLocaleString("en-US")} daily figures are not loaded.`;
    const news = (firing.get(source) ?? []).filter(({ kind }) => kind !== "budget" && kind !== "unusual");
    return [
      lineOf(`${source}: ${until("final", finalUntil)}, ${until("proved", provedUntil)}.${open}`),
      ...news.map((one) => lineOf(`${source}: ${factOf(one)}`)),
    ];
  });
}

function lineOf(text: string): Line {
  return { text, link: null };
}

/** `before`: traces, 0 without any to compare with. */
function totalOf(
  figures: readonly OwnerFigure[],
  { hasBefore }: { hasBefore: boolean },
): { traces: Amount; before: Amount; costs: Record<string, Amount> } {
  const costs: Record<string, Amount> = {};
  let [traces, before] = [0n, 0n];
  for (const one of figures) {
    traces += amountCut(one.traces);
    if (hasBefore) before += amountCut(one.tracesBefore);
    for (const [currency, cost] of Object.entries(one.costs))
      costs[currency] = (costs[currency] ?? 0n) + amountCut(cost);
  }
  return { traces, before, costs };
}

/** `318,712 traces (+5 %)`. */
function describeChange(now: Amount, before: Amount, unit: string): string {
  const change =
    before === 0n ? "" : ` (${CHANGE.format(100 * (amountDrawn(now) / amountDrawn(before) - 1))} %)`;
  return `${shownIn(now, unit)}${change}`;
}

const CHANGE = new Intl.NumberFormat("en-US", {
  signDisplay: "exceptZero",
  maximumFractionDigits: 0,
});

function shownIn(amount: Amount, unit: string): string {
  return `${unit === "traces" ? amountShown(amount) : centsShown(amount)} ${unit}`;
}
