import type { Config } from "../../core/base/config.ts";
import type { Notes } from "../../terminal/check.ts";
import type { CheckedSource } from "../feature.ts";
import { type BillPart, billPartsOf, type LearnedBillPart } from "./bill-terms.store.ts";
import { describeCosts } from "./price.ts";
import { endingPrices, unpricedMeasures, unpricedUsage } from "./prices.store.ts";

export async function checkCosts(_: Config, checked: CheckedSource, notes: Notes): Promise<void> {
  const { source, sourceId, store } = checked;
  if (store === undefined || sourceId === undefined) return;
  const { db } = store;
  for (const part of await billPartsOf(db, sourceId)) notes.pass("bill", describeBillPart(part));
  const costs = await unpricedUsage(db, sourceId);
  const message = describeCosts(costs);
  if (costs.days === 0) notes.pass("costs", message);
  else notes.warn("costs", { code: "usage_unpriced", message, next: PRICE_IT });
  if (costs.prices === 0) return;
  const measures = await unpricedMeasures(db, source.slug);
  if (measures.length > 0)
    notes.warn("costs", {
      code: "usage_unpriced",
      message: `Usage of this month or the last has no price: ${measures.join(", ")}.`,
      next: `${PRICE_IT} \`usage-etl bill\` lists usage without a price.`,
    });
  for (const { measure, lastDay } of await endingPrices(db, { sourceId, withinDays: ENDING_DAYS }))
    notes.warn("costs", {
      code: "prices_end",
      message: `The prices of ${measure} end: in at least one workspace, ${lastDay} is the last day with a price.`,
      next: "Import later prices with `usage-etl prices import FILE`. Without them, usage after that day has no cost.",
    });
}

export const BILL_WORDS: Readonly<Record<BillPart, string>> = {
  provider_totals: "the billing provider's totals",
  usage_limits: "usage limits",
  billing_period: "the billing period",
  resource_tags: "tags of resources",
  names: "names of API keys and sandboxes",
  all_workspaces: "workspaces with usage that no sync loads",
  audit_log: "changes in the audit log",
  members: "members of the organization",
  gateway_spend: "spend through the gateway",
  engine_units: "Engine units",
  engine_limit: "the Engine limit",
};

/** Loading usage does not need the bill, so a refused part is no failure. */
function describeBillPart({ part, refusal, requestedAt }: LearnedBillPart): string {
  const when = requestedAt.toISOString().slice(0, 10);
  if (refusal === null) return `${BILL_WORDS[part]}: read, last on ${when}`;
  return `${BILL_WORDS[part]}: not read on ${when}; it is requested again ${part === "all_workspaces" ? "weekly" : "daily"} (${refusal})`;
}

const ENDING_DAYS = 31;

const PRICE_IT = "Import prices that are valid on these days with `usage-etl prices import FILE`.";
