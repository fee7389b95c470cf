import type { Days } from "../../core/domain/time/days.ts";
import type { Database } from "../../core/store/db/database.ts";
import type { UsageSource } from "../../core/store/figures/sources.ts";
import { type Figure, type Report, reportOf } from "./report.ts";
import { requestedOf } from "./usage.page.ts";

/** Traces of whole months, by the first day of the month. */
export async function tracesByMonth(
  db: Database,
  { source, from, to, now }: Days & { readonly source: UsageSource; readonly now: number },
): Promise<ReadonlyMap<string, { readonly figure: Figure; readonly report: Report }>> {
  const { question } = await requestedOf(
    db,
    { source: source.slug, from, to, per: "month" },
    { source, now },
  );
  const { from: start, to: end } = question.range;
  if (start === end) return new Map();
  // The months are compared with each other, so no earlier range is read.
  const report = await reportOf(
    db,
    { ...question, before: { from: start, to: start } },
    { now, masked: true },
  );
  return new Map(
    report.buckets.map(({ at }, n) => [at, { figure: report.total.trend[n] as Figure, report }]),
  );
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
