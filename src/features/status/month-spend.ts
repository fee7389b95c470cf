import { sql } from "kysely";
import { type Amount, amountDrawn, amountOf, percentOf } from "../../core/domain/usage/amount.ts";
import { FORECAST_DAYS, monthForecast } from "../../core/domain/usage/forecast.ts";
import type { Database } from "../../core/store/db/database.ts";
import { query } from "../../core/store/db/query.ts";
import type { UsageSource } from "../../core/store/figures/sources.ts";
import type { Figure, Report } from "../figures/report.ts";
import { monthReports } from "../figures/statement.ts";
import { appliedOwners } from "../owners/owners.store.ts";

/** Usage or cost of a month, of one source or summed over several. */
export interface Spend {
  /** Null: traces. */
  readonly currency: string | null;
  readonly by: "owner" | "workspace";
  readonly amount: Amount;
  /** False: a part is not loaded, or has no price, so the amount is a lower bound. */
  readonly isComplete: boolean;
  /** Percent since the same days of the month before. Null: the two cannot be compared. */
  readonly change: number | null;
  /** The days of the month before that `change` is about. */
  readonly before: Report["question"]["before"];
  /** The largest first. `id` null: what has no team or no project. */
  readonly parts: readonly {
    readonly id: string | null;
    readonly name: string;
    readonly amount: Amount;
    readonly byDay: ReadonlyMap<string, Amount>;
  }[];
  readonly days: readonly (Figure & { readonly at: string; readonly unusual: string | undefined })[];
  readonly daysBefore: readonly (Figure & { readonly at: string })[];
}

export interface MonthSpend {
  readonly traces: Spend;
  /** By currency, the first one is the most used. */
  readonly costs: readonly Spend[];
}

/** Undefined: no day of the month is expected to be loaded. */
export async function monthSpend(
  db: Database,
  { sources, ...given }: { sources: readonly UsageSource[]; month: string; now: number; masked: boolean },
): Promise<MonthSpend | undefined> {
  const by = (await appliedOwners(db)) === undefined ? "workspace" : "owner";
  const traces: Report[] = [];
  const priced: Report[] = [];
  for (const source of sources) {
    const reports = await monthReports(db, { ...given, source, by });
    if (reports === undefined) continue;
    traces.push(reports.traces);
    priced.push(...reports.priced);
  }
  if (traces.length === 0) return undefined;
  const byCurrency = Map.groupBy(priced, ({ question }) => question.currency ?? "");
  const costs = [...byCurrency.values()].map((own) => summed(own, by));
  return { traces: summed(traces, by), costs: costs.filter(({ amount }) => amount !== 0n) };
}

function summed(reports: readonly Report[], by: Spend["by"]): Spend {
  const sum = (amounts: readonly Amount[]) => amounts.reduce((all, one) => all + one, 0n);
  const totals = reports.map(({ total }) => total);
  const [{ question }] = reports as [Report];
  const parts = new Map<
    string,
    { id: string | null; name: string; amount: Amount; byDay: Map<string, Amount> }
  >();
  for (const { lines, buckets } of reports)
    for (const {
      kind,
      id,
      name,
      sum: { amount },
      trend,
    } of lines) {
      const own = kind === "id" ? id : null;
      const key = JSON.stringify(own);
      const part = parts.get(key) ?? {
        id: own,
        name: (by === "owner" ? id : name) ?? id ?? "",
        amount: 0n,
        byDay: new Map(),
      };
      parts.set(key, { ...part, amount: part.amount + amount });
      buckets.forEach(({ at }, n) => {
        part.byDay.set(at, (part.byDay.get(at) ?? 0n) + (trend[n]?.amount ?? 0n));
      });
    }
  const compared = sum(totals.map((one) => one.compared));
  const before = sum(totals.map((one) => one.before.amount));
  return {
    currency: question.measure === "cost" ? (question.currency ?? "") : null,
    by,
    amount: sum(totals.map((one) => one.sum.amount)),
    isComplete: totals.every((one) => one.sum.isComplete),
    change: totals.every(({ isComparable }) => isComparable) ? percentOf(compared - before, before) : null,
    before: question.before,
    parts: [...parts.values()].sort((a, b) =>
      a.id === null ? 1 : b.id === null ? -1 : a.amount < b.amount ? 1 : a.amount > b.amount ? -1 : 0,
    ),
    days: together(
      reports.flatMap(({ buckets, total, unusual }) =>
        buckets.map(({ at }, n) => ({ at, ...(total.trend[n] as Figure), unusual: unusual.get(at) })),
      ),
    ),
    daysBefore: together(
      reports.flatMap(({ trendBefore }) => trendBefore.map((one) => ({ ...one, unusual: undefined }))),
    ),
  };
}

type Day = Spend["days"][number];

/** Adds figures of a day. The sum is as complete, final and proved as its worst part. */
function together(days: readonly Day[]): Day[] {
  const byDay = Map.groupBy(days, ({ at }) => at);
  return [...byDay]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([at, all]) => ({
      at,
      amount: all.reduce((sum, one) => sum + one.amount, 0n),
      isComplete: all.every((one) => one.isComplete),
      isFinal: all.every((one) => one.isFinal),
      isProved: all.every((one) => one.isProved),
      isUnderWay: all.some((one) => one.isUnderWay),
      isUnpriced: all.some((one) => one.isUnpriced),
      unusual: all.flatMap(({ unusual }) => unusual ?? []).join(" ") || undefined,
    }));
}

/**
 * Forecasts the amount of the current month from its days and the final days before it. Null if a day of the month before
 * today is not complete, or less than two weeks are final.
 */
export async function spendForecast(
  db: Database,
  spend: Spend,
  { sources, today }: { sources: readonly string[]; today: string },
): Promise<number | null> {
  const { currency, days } = spend;
  const [first] = days;
  if (first === undefined) return null;
  const isOfCost = currency !== null;
  const earlier = await query<{ day: string; amount: string }>(db)`
    select f.usage_date::text as day, sum(${isOfCost ? sql`f.estimated_cost` : sql`f.traces`})::text as amount
    from ${isOfCost ? sql`reporting.fct_cost_workspace_daily` : sql`reporting.fct_usage_workspace_daily`} f
    where f.source_id = any (${[...sources]}::text[]) and ${isOfCost ? sql`f.currency = ${currency}` : sql`true`}
      and f.usage_date >= ${first.at}::date - ${FORECAST_DAYS}::integer and f.usage_date < ${first.at}::date
    group by 1 having bool_and(f.is_final) order by 1
  `;
  return monthForecast(
    [
      ...earlier.map(({ day, amount }) => ({ day, amount: amountDrawn(amountOf(amount)), isFinal: true })),
      ...days.map(({ at, amount, isComplete, isFinal }) => ({
        day: at,
        amount: isComplete ? amountDrawn(amount) : null,
        isFinal,
      })),
    ],
    today,
  );
}
