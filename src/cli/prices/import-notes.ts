import { describeUnpriced, isForSame, measureOf, overlaps, type Price } from "../../domain/bill/price.ts";
import { listSources } from "../../store/activity/overview.ts";
import { adjustedCosts, type PriceGap, priceGaps, unpricedUsage } from "../../store/bill/prices.ts";
import type { Database } from "../../store/db/database.ts";

/** What somebody who imported prices should know of them, read from the tables. `stored`: all stored prices. */
export async function notesOf(db: Database, stored: readonly Price[]): Promise<string[]> {
  const notes = (await priceGaps(db)).map(describeGap);
  for (const { source, sourceId } of await listSources(db)) {
    const unpriced = describeUnpriced(await unpricedUsage(db, sourceId));
    if (unpriced !== undefined) notes.push(`Source ${source}: ${unpriced}`);
  }
  const together = sharedDays(stored);
  if (together !== undefined) {
    notes.push(
      `${together} are valid on the same days. Each is charged for everything that it counts on those days.`,
    );
  }
  if (stored.some((price) => measureOf(price) === "agent_uptime_seconds")) {
    notes.push(
      "Agent uptime is a raw sum over replicas, and the invoice counts deduplicated standby minutes. Their estimate is higher than the invoice.",
    );
  }
  const adjusted = await adjustedCosts(db);
  if (adjusted.length > 0) {
    notes.push(
      `Closed months keep their cost. The prices and counts of now give another: ${adjusted.join(", ")}. See reporting.usage_month_close_cost.`,
    );
  }
  return notes;
}

function describeGap({ sku, source, workspace, from, to }: PriceGap): string {
  return `SKU ${sku} of ${workspace ?? source ?? "every source"} has no price from ${from} to ${to} (not included): one price ends and the next begins later.`;
}

/** Two SKUs valid on one day: right if one is charged on top of the other, wrong for two tiers of one price. */
function sharedDays(prices: readonly Price[]): string | undefined {
  for (const one of prices) {
    const other = prices.find(
      (price) =>
        price.sku > one.sku &&
        measureOf(price) === measureOf(one) &&
        overlaps(one, price) &&
        isForSame(one, price),
    );
    if (other !== undefined) return `The SKUs ${one.sku} and ${other.sku}`;
  }
  return undefined;
}
