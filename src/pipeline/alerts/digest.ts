import { UNALLOCATED } from "../../domain/bill/owner.ts";
import type { DigestPeriod } from "../../domain/bill/route.ts";
import { type CalendarMonth, daysText, monthAt, monthBefore } from "../../domain/months/month.ts";
import { addDays, addMonths, type Days, dayOf, daysBetween } from "../../domain/time/days.ts";
import { type Amount, amountCut, amountDrawn, amountShown, centsShown } from "../../domain/usage/amount.ts";
import { printableLine } from "../../printable.ts";
import { appliedOwners, type OwnerFigure, ownedState, ownersOf } from "../../store/bill/owners.ts";
import { trustOfSources } from "../../store/coverage/trust.ts";
import type { Database } from "../../store/db/database.ts";
import { inSnapshot } from "../../store/db/snapshot.ts";
import { usageSources } from "../../store/figures/sources.ts";
import { describeBudget, monthBudgets } from "../bill/budgets.ts";
import { factOf, firingAlerts } from "./conditions.ts";
import { idOf, type Line, linkTo, type Message } from "./message.ts";

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

export interface DigestAsked {
  readonly period: DigestPeriod;
  /** Null: of everybody. Else of these alone, without what is of no owner. */
  readonly owners: readonly string[] | null;
  /** Postgres's clock, epoch milliseconds. */
  readonly now: number;
  readonly staleAfterMs: number;
  readonly webUrl?: string | undefined;
}

/** Weekly: the month to date, up to yesterday. Monthly: the month before. */
export async function digestOf(db: Database, asked: DigestAsked): Promise<Message> {
  const { period, owners, now } = asked;
  const month = period === "weekly" ? monthAt(now - 24 * HOUR_MS) : monthBefore(monthAt(now));
  const today = dayOf(now);
  const range = { from: month.start, to: [today, month.end].sort()[0] as string };
  const lines = await inSnapshot(db, async (snapshot) => [
    ...(await linesOfSources(snapshot, { ...asked, month, range })),
    ...(await linesOfBudgets(snapshot, { month, now }, asked)),
    ...(owners === null ? await linesOfTrust(snapshot, asked) : []),
  ]);
  return {
    id: idOf("digest", period, dueSince(period, now), owners),
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
  const hasBefore = start >= dataStart && state.daysMissing === 0 && state.daysMissingBefore === 0;
  const least = state.daysMissing > 0 ? "at least " : "";
  const total = totalOf(figures, { hasBefore });
  const against = total.before === 0n ? "" : ` Changes are against ${daysText(before)}.`;
  const [currency] = Object.keys(total.costs).sort();
  const amounts = [
    describeChange(total.traces, total.before, "traces"),
    ...Object.entries(total.costs).map(([each, cost]) => `estimated cost ${least}${shownIn(cost, each)}`),
  ];
  const used = owners === null ? ` ${least}${amounts.join(", ")}.` : "";
  const ranked = figures
    .filter(({ owner }) =>
      owners === null ? figures.length > 1 || owner !== UNALLOCATED : owners.includes(owner),
    )
    .slice(0, MOST.owners);
  return [
    {
      text: `${slug}, ${daysText(range)}:${used}${against}`,
      link: linkTo(webUrl, `/owners?${new URLSearchParams({ source: slug, month: month.name })}`),
    },
    ...ranked.map((one) => {
      const [now, earlier] =
        currency === undefined
          ? [one.traces, one.tracesBefore]
          : [one.costs[currency], one.costsBefore[currency]];
      return lineOf(
        `- ${one.owner}: ${least}${describeChange(amountCut(now), amountCut(hasBefore ? earlier : null), currency ?? "traces")}`,
      );
    }),
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
  const first = [...budgets].sort((a, b) => b.percent - a.percent).slice(0, MOST.budgets);
  return first.map((one) => lineOf(describeBudget(one).replace("this month", `in ${asked.month.name}`)));
}

/** Where the platform contradicts itself, and what nobody has proved. */
async function linesOfTrust(db: Database, { staleAfterMs }: DigestAsked): Promise<Line[]> {
  const firing = await firingAlerts(db, { staleAfterMs });
  return (await trustOfSources(db)).flatMap(({ source, dataStart, finalUntil, provedUntil, openDays }) => {
    const until = (day: string) => (day <= dataStart ? "not from the start" : `until ${addDays(day, -1)}`);
    const open = openDays === 0 ? "" : ` ${openDays.toLocaleString("en-US")} daily figures are not loaded.`;
    return [
      lineOf(`${source}: final ${until(finalUntil)}, proved ${until(provedUntil)}.${open}`),
      ...(firing.get(source) ?? [])
        .filter(({ kind }) => kind !== "budget" && kind !== "unusual")
        .map((one) => lineOf(`${source}: ${factOf(one)}`)),
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

/** `318,712 traces (+5%)`. */
function describeChange(now: Amount, before: Amount, unit: string): string {
  const change = before === 0n ? "" : ` (${CHANGE.format(amountDrawn(now) / amountDrawn(before) - 1)})`;
  return `${shownIn(now, unit)}${change}`;
}

const CHANGE = new Intl.NumberFormat("en-US", {
  style: "percent",
  signDisplay: "exceptZero",
  maximumFractionDigits: 0,
});

function shownIn(amount: Amount, unit: string): string {
  return `${unit === "traces" ? amountShown(amount) : centsShown(amount)} ${unit}`;
}
