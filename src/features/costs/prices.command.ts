import type { Command } from "commander";
import { UsageError } from "../../core/base/errors.ts";
import { counted } from "../../core/base/printable.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import type { Database } from "../../core/store/db/database.ts";
import { tableOf } from "../../terminal/output.ts";
import { commandActor, inSession, type Session } from "../../terminal/session.ts";
import { importPrices } from "./import-prices.ts";
import {
  describeUnpriced,
  isForSame,
  isOnNoInvoice,
  measureOf,
  overlaps,
  type Price,
  type TieredPrice,
} from "./price.ts";
import { readPriceFile } from "./price-file.ts";
import {
  adjustedCosts,
  costlessMonths,
  deploymentUnitsSince,
  listPrices,
  type PriceGap,
  priceGaps,
  unpricedUsage,
} from "./prices.store.ts";

export const examples = [
  ["prices import prices.csv", "add and change prices"],
  ["prices import prices.csv --replace", "and remove those that the file does not hold"],
  ["prices list", "what is stored"],
] as const;

export function define(prices: Command): void {
  prices
    .command("import <file>")
    .description(
      "import all prices of a CSV file, or none (columns: sku,unit_price,currency,valid_from,valid_to,source,workspace,from_quantity,counted_over,measure)",
    )
    .option("--replace", "remove stored prices that the file does not hold", false)
    .option(
      "--estimate",
      "accept prices of deployments by runs or uptime from October 2026 on, which no invoice counts",
      false,
    )
    .option("--yes", "remove all prices if the file holds none", false)
    .action(inSession(importFile));
  prices.command("list").description("show the stored prices").action(inSession(list));
}

async function importFile(
  { output, ...session }: Session,
  { replace, estimate, yes }: { replace: boolean; estimate: boolean; yes: boolean },
  file = "",
): Promise<undefined> {
  const lines = await readPriceFile(file);
  if (lines.length === 0 && !(replace && yes)) throw noPrices(file, replace);
  const store = await session.migratedStore();
  const { stored, ...counts } = await importPrices(store, {
    file,
    lines,
    replace,
    estimate,
    by: commandActor(),
  });
  output.data(
    { ...counts, stored: stored.length },
    ({ added, unchanged, removed, charges, chargesChanged }) =>
      `${counted(added, "price")} added, ${unchanged} unchanged, ${removed} removed; ${stored.length} stored.\n` +
      `Daily costs were computed again: ${charges} stored, ${chargesChanged} new, changed or removed.`,
  );
  for (const note of await notesOf(store.db, stored)) output.note(note);
}

/** With `--replace`, a file without lines would remove every price. */
function noPrices(file: string, replace: boolean): UsageError {
  return new UsageError({
    code: "price_file_empty",
    message: `${file} holds no prices, only a header. ${replace ? "With --replace it would remove every stored price." : "There is nothing to import."}`,
    next: replace
      ? "Nothing was changed. To remove all prices, so that no costs are estimated, add --yes."
      : "Add prices to the file and import it again.",
  });
}

async function list({ output, ...session }: Session): Promise<undefined> {
  const { db } = await session.migratedStore();
  const prices = (await listPrices(db)).map(({ priceId: _, ...price }) => price);
  output.data(prices, describePrices);
}

function describePrices(prices: readonly TieredPrice[]): string {
  if (prices.length === 0) {
    return "No prices are stored, so no costs are estimated. Import some with `usage-etl prices import FILE`.";
  }
  const shown = prices.flatMap(({ tiers, unitPrice, ...price }) =>
    [{ fromQuantity: 0, unitPrice }, ...tiers].map((tier) => ({
      ...price,
      ...tier,
      countedOver: tiers.length === 0 ? null : price.countedOver,
      measure: measureOf(price),
    })),
  );
  const hasTiers = prices.some(({ tiers }) => tiers.length > 0);
  return tableOf(shown, {
    sku: "sku",
    "unit price": "unitPrice",
    currency: "currency",
    "valid from": "validFrom",
    "valid to": "validTo",
    source: ({ source }) => source ?? "(all)",
    workspace: ({ workspace }) => workspace ?? "(all)",
    "from quantity": hasTiers && "fromQuantity",
    "counted over": hasTiers && "countedOver",
    measure: shown.some(({ measure }) => measure !== "traces") && "measure",
  });
}

export async function notesOf(db: Database, stored: readonly Price[]): Promise<string[]> {
  const notes = (await priceGaps(db)).map(describeGap);
  for (const { source, sourceId } of await listSources(db)) {
    const unpriced = describeUnpriced(await unpricedUsage(db, sourceId));
    if (unpriced !== undefined) notes.push(`Source ${source}: ${unpriced}`);
  }
  const together = sharedDays(stored);
  if (together !== undefined) {
    notes.push(
      `${together} are valid on the same days. Each is charged for everything that it counts on those days. If one should replace the other, import the whole file with --replace: it removes prices that the file does not hold.`,
    );
  }
  if (stored.some((price) => measureOf(price) === "agent_uptime_seconds")) {
    notes.push(
      "Agent uptime is a raw sum over replicas, and the invoice counts deduplicated standby minutes. Their estimate is higher than the invoice.",
    );
  }
  const unitsSince = await deploymentUnitsSince(db);
  if (stored.some((price) => isOnNoInvoice(price, unitsSince))) {
    notes.push(
      `From ${unitsSince} on deployments are charged by compute and storage units (LCU, LSU). From then on, costs of runs and uptime are estimates that no invoice has.`,
    );
  }
  const adjusted = await adjustedCosts(db);
  if (adjusted.length > 0) {
    notes.push(
      `Closed months keep their cost. Today's prices and counts would give another: ${adjusted.join(", ")}. See reporting_detail.fct_close_cost.`,
    );
  }
  const costless = await costlessMonths(db);
  if (costless.length > 0 && stored.length > 0) {
    notes.push(
      `These months were closed without costs: ${costless.join(", ")}. \`usage-etl close MONTH\` closes the costs of one.`,
    );
  }
  return notes;
}

function describeGap({ sku, source, workspace, from, to }: PriceGap): string {
  return `SKU ${sku} of ${workspace ?? source ?? "every source"} has no price from ${from} to ${to} (not included): one price ends and the next begins later.`;
}

/** Two SKUs on one day are right if both are charged, and wrong for two tiers of one price. */
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
