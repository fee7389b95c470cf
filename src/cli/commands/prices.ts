import type { Command } from "commander";
import { overlaps, type Price } from "../../domain/price.ts";
import { importPrices } from "../../pipeline/import-prices.ts";
import { listPrices } from "../../store/report/prices.ts";
import { readPriceFile } from "../prices/price-file.ts";
import { table } from "../report/output.ts";
import { inSession, requireSchema, type Session } from "../session/session.ts";

export function addPricesCommands(program: Command): void {
  const prices = program.command("prices").description("unit prices, from which costs are estimated");
  prices
    .command("import <file>")
    .description(
      "all prices of a CSV file (sku,unit_price,currency,valid_from,valid_to,source,workspace) or JSON array, or none",
    )
    .option("--replace", "the file is the whole price list: what it lacks is removed", false)
    .action(inSession(importFile));
  prices.command("list").description("the prices that are stored").action(inSession(list));
}

async function importFile(
  { output, ...session }: Session,
  { replace }: { replace: boolean },
  file = "",
): Promise<undefined> {
  const lines = await readPriceFile(file);
  const store = await session.store();
  await requireSchema(store);
  const { stored, ...counts } = await importPrices(store, { file, lines, replace });
  output.data({ ...counts, stored: stored.length }, ({ added, unchanged, removed }) =>
    [`${added} prices added, ${unchanged} unchanged, ${removed} removed; ${stored.length} stored.`].join(
      "\n",
    ),
  );
  const together = sharedDays(stored);
  if (together !== undefined) {
    output.note(`${together} are valid on the same days: each is charged for every trace of those days.`);
  }
}

/** Two SKUs that are valid on one day: right for a charge on top of another, wrong for two tiers of one. */
function sharedDays(prices: readonly Price[]): string | undefined {
  for (const one of prices) {
    const other = prices.find(
      (price) => price.sku > one.sku && overlaps(one, price) && isForSame(one, price),
    );
    if (other !== undefined) return `The SKUs ${one.sku} and ${other.sku}`;
  }
  return undefined;
}

/** Whether some usage may be charged by both; a price for all stands for each. */
function isForSame(one: Price, other: Price): boolean {
  const meets = (a: string | null, b: string | null) => a === null || b === null || a === b;
  return meets(one.source, other.source) && meets(one.workspace, other.workspace);
}

async function list({ output, ...session }: Session): Promise<undefined> {
  const store = await session.store();
  await requireSchema(store);
  output.data(
    (await listPrices(store.db)).map(({ priceId: _, ...price }) => price),
    (prices) =>
      prices.length === 0
        ? "No prices: no costs are estimated. `usage-etl prices import FILE` enters some."
        : table(
            ["sku", "unit price", "currency", "valid from", "valid to", "source", "workspace"],
            prices.map((one) => [
              one.sku,
              one.unitPrice,
              one.currency,
              one.validFrom,
              one.validTo,
              one.source ?? "(all)",
              one.workspace ?? "(all)",
            ]),
          ),
  );
}
