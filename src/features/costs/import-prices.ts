import { refuseGiven } from "../../core/base/given-file.ts";
import { nearest } from "../../core/base/spelling.ts";
import type { Store } from "../../core/store/db/database.ts";
import { type Actor, recordAction } from "../../core/store/work/operator-actions.ts";
import {
  describePrice,
  isForSame,
  isOnNoInvoice,
  joinTiers,
  measureOf,
  overlaps,
  type PlacedPrice,
  type Price,
  type PriceLine,
  scopeOf,
  textOf,
} from "./price.ts";
import {
  closedMeasures,
  deploymentUnitsSince,
  knownWorkspaces,
  listPrices,
  lockPrices,
  replacePrices,
} from "./prices.store.ts";

/**
 * Stores all prices of a file or none, and computes all costs again. Stored prices keep their number; `replace` removes those
 * that the file lacks. `by`: for the audit record. `estimate`: also accepts prices of deployments by runs or uptime, which no
 * invoice counts. Error: `file_invalid`, with every line whose source or workspace is unknown or whose price overlaps another.
 */
export async function importPrices(
  store: Store,
  {
    file,
    lines,
    replace,
    estimate = false,
    by,
  }: { file: string; lines: readonly PriceLine[]; replace: boolean; estimate?: boolean; by?: Actor },
) {
  return store.transaction(async ({ db }) => {
    await lockPrices(db);
    const { resolved, problems } = resolveWorkspaces(await knownWorkspaces(db), lines);
    const { joined, problems: tierProblems } = joinTiers(resolved);
    const wanted = new Set(joined.map(({ price }) => textOf(price)));
    const { same = [], others = [] } = Object.groupBy(await listPrices(db), (price) =>
      wanted.has(textOf(price)) ? "same" : "others",
    );
    const kept = replace ? [] : others;
    refuseGiven(file, [
      ...problems,
      ...tierProblems,
      ...(estimate ? [] : uninvoicedProblems(joined, await deploymentUnitsSince(db))),
      ...measureProblems({ kept, joined, closed: await closedMeasures(db) }),
      ...overlapsOf(kept, joined),
    ]);
    const there = new Set(same.map(textOf));
    const added = joined.map(({ price }) => price).filter((price) => !there.has(textOf(price)));
    const removed = replace ? others : [];
    const removedIds = removed.map(({ priceId }) => priceId);
    const computed = await replacePrices(db, { removed: removedIds, added });
    if (by !== undefined) {
      const detail = `${file}: ${added.length} added, ${removed.length} removed`;
      await recordAction(db, by, { sourceId: null, action: "prices.import", detail });
    }
    return {
      added: added.length,
      unchanged: joined.length - added.length,
      removed: removed.length,
      stored: [...same, ...kept, ...added],
      ...computed,
    };
  });
}

function resolveWorkspaces(
  known: readonly { source: string; workspaces: readonly string[] }[],
  lines: readonly PriceLine[],
): { resolved: PriceLine[]; problems: string[] } {
  const problems: string[] = [];
  const resolved = lines.flatMap(({ where, price }) => {
    const { source, workspace } = price;
    const among = known.filter((one) => source === null || one.source === source);
    if (among.length === 0 && source !== null) {
      const sources = known.map((one) => one.source);
      problems.push(`${where}, column "source": ${unknown("source", source, sources)}`);
      return [];
    }
    if (workspace === null) return [{ where, price }];
    const [owner, ...others] = among.filter(({ workspaces }) => workspaces.includes(workspace));
    if (owner !== undefined && others.length === 0) {
      return [{ where, price: { ...price, source: owner.source } }];
    }
    const workspaces = among.flatMap((one) => one.workspaces);
    const why =
      owner === undefined
        ? unknown("workspace", workspace, workspaces)
        : `${workspace} is a workspace of ${[owner, ...others].map((one) => one.source).join(" and ")}: give the source too`;
    problems.push(`${where}, column "workspace": ${why}`);
    return [];
  });
  return { resolved, problems };
}

function unknown(what: string, value: string, known: readonly string[]): string {
  const near = nearest(value, known);
  const hint =
    near === undefined ? `known are ${known.slice(0, 5).join(", ") || "none"}` : `did you mean ${near}?`;
  return `${JSON.stringify(value)} is not a known ${what}; ${hint}`;
}

function uninvoicedProblems(joined: readonly PlacedPrice[], unitsSince: string): string[] {
  return joined
    .filter(({ price }) => isOnNoInvoice(price, unitsSince))
    .map(
      ({ where, price }) =>
        `${where}, column "valid_to": from ${unitsSince} on deployments are charged by compute and storage units (LCU, LSU), not by ${measureOf(price)}. End the price on ${unitsSince}, or import the file with --estimate`,
    );
}

function measureProblems(given: {
  kept: readonly Price[];
  joined: readonly PlacedPrice[];
  closed: ReadonlyMap<string, string>;
}): string[] {
  const others: { where?: string; price: Price }[] = given.kept.map((price) => ({ price }));
  const counted = new Map(given.closed);
  for (const price of given.kept) counted.set(price.sku, measureOf(price));
  return given.joined.flatMap(({ where, price }) => {
    const problems: string[] = [];
    const before = counted.get(price.sku);
    if (before !== undefined && before !== measureOf(price)) {
      problems.push(
        `${where}, column "measure": SKU ${price.sku} counts ${before} elsewhere, in this file, a stored price or a closed month. Give this price its own SKU`,
      );
    }
    counted.set(price.sku, before ?? measureOf(price));
    const twice = others.find(
      (one) =>
        [measureOf(one.price), measureOf(price)].sort().join() === "shortlived,traces" &&
        overlaps(one.price, price) &&
        isForSame(one.price, price),
    );
    if (twice !== undefined) {
      problems.push(
        `${where}, column "measure": short-lived traces would be charged twice, since traces include them: see ${twice.where ?? "a stored price"} (${describePrice(twice.price)}). Price either all traces, with long-lived ones on top, or each tier separately`,
      );
    }
    others.push({ where, price });
    return problems;
  });
}

function overlapsOf(stored: readonly Price[], lines: readonly PlacedPrice[]): string[] {
  const byScope = Map.groupBy(
    stored.map((price): { where?: string; price: Price } => ({ price })),
    ({ price }) => scopeOf(price),
  );
  return lines.flatMap((line) => {
    const { validFrom, validTo } = line.price;
    const before = byScope.get(scopeOf(line.price)) ?? [];
    byScope.set(scopeOf(line.price), [...before, line]);
    const other = before.find(({ price }) => overlaps(price, line.price));
    if (other === undefined) return [];
    const remedy =
      other.where === undefined
        ? ". End one where the other starts, or use --replace to remove prices that the file does not hold"
        : "";
    return [
      `${line.where}, column "valid_from": ${validFrom} to ${validTo ?? "further notice"} overlaps ${other.where ?? "a stored price"} (${describePrice(other.price)})${remedy}`,
    ];
  });
}
