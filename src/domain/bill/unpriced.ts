/** Usage of a source on days for which no price of any SKU is valid. */
export interface UnpricedUsage {
  /** All stored prices. Without any, no costs are estimated and no day counts as unpriced. */
  readonly prices: number;
  readonly days: number;
  readonly traces: number;
  /** ISO days; null where there are none. */
  readonly firstDay: string | null;
  readonly lastDay: string | null;
}

/** `3 days with 1,200 traces (2026-03-01 to 2026-03-09) have no price, ...`; undefined where every day has one. */
export function describeUnpriced({ days, traces, firstDay, lastDay }: UnpricedUsage): string | undefined {
  if (days === 0) return undefined;
  const [what, when] = days === 1 ? ["1 day", firstDay] : [`${days} days`, `${firstDay} to ${lastDay}`];
  return `${what} with ${traces.toLocaleString("en-US")} traces (${when}) ${days === 1 ? "has" : "have"} no price, so the estimated costs leave them out. See reporting.usage_unpriced_daily.`;
}

/** What the estimates of costs leave out. */
export function describeCosts(costs: UnpricedUsage): string {
  if (costs.prices === 0) return "No prices are imported, so no costs are estimated.";
  return describeUnpriced(costs) ?? "Every loaded day with usage has a price.";
}
