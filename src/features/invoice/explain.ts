import type { Days } from "../../core/domain/time/days.ts";
import { type Amount, amountOf } from "../../core/domain/usage/amount.ts";
import {
  type Compared,
  type ComparedLine,
  cellsOf,
  isWithin,
  type MatchedLine,
  matchedLines,
  pairs,
  prepare,
  roundingOf,
  type Suggestion,
  suggestions,
} from "./match.ts";
import { keyOf, type MatchInputs, type WhyNot } from "./match-inputs.ts";
import { lineCost, type Pricing, type Tier } from "./pricing.ts";

/**
 * Causes of a difference, in the order in which they are worked out. Each is our bill priced again with one thing changed, on top
 * of all changes before it, less our bill before that change. So causes never overlap, and with the remainder they are the
 * difference.
 */
const CAUSES = [
  "rounding",
  "period",
  "changes",
  "upgrades",
  "days_open",
  "unread_workspace",
  "counted_over",
  "price",
  "not_reported",
  "seat",
  "credit",
  "tax",
  "adjustment",
] as const;
export type Cause = (typeof CAUSES)[number];

export interface NamedCause {
  readonly cause: Cause;
  /** How much higher the invoice is because of it. */
  readonly amount: Amount;
  readonly sku: string | null;
  readonly period: Days | null;
  /** Null: all workspaces. */
  readonly workspaceId: string | null;
  /** How much more usage the invoice has because of it. Null: the same usage. */
  readonly quantity: Amount | null;
  readonly lineNumber: number | null;
  /** Of `days_open`. */
  readonly days: { readonly notLoaded: number; readonly notFinal: number } | null;
}

/** A part of the remainder: what no cause explains. */
export interface Unexplained {
  readonly amount: Amount;
  readonly why: "usage" | "tiers" | "arithmetic" | "only_here" | "total" | WhyNot;
  readonly sku: string | null;
  readonly period: Days | null;
  readonly workspaceId: string | null;
  /** Usage of the invoice less that of our bill after all causes. Null: the invoice does not write it. */
  readonly quantity: Amount | null;
  readonly lineNumber: number | null;
  readonly isTolerated: boolean;
}

export interface Explanation {
  readonly currency: string;
  readonly total: Amount;
  /** Our bill of the usage that the invoice charges, exact. */
  readonly bill: Amount;
  readonly causes: readonly NamedCause[];
  readonly remainder: Amount;
  readonly unexplained: readonly Unexplained[];
  readonly lines: readonly MatchedLine[];
  readonly suggestions: readonly Suggestion[];
}

interface AddedUsage {
  readonly workspaceId: string;
  readonly quantity: Amount;
  readonly days?: NamedCause["days"];
  /** Several workspaces may have it. */
  readonly isShared?: boolean;
}

const OTHER_CAUSES: Partial<Record<WhyNot, Cause>> = {
  ...{
    no_price: "price",
    not_reported: "not_reported",
    seat: "seat",
    credit: "credit",
    tax: "tax",
    adjustment: "adjustment",
  },
};

export function explain(inputs: MatchInputs): Explanation {
  const { invoice } = inputs;
  const prepared = prepare(inputs);
  const causes: NamedCause[] = [];
  const unexplained: Unexplained[] = [];
  const lines: MatchedLine[] = [];
  let bill = 0n;
  for (const compared of prepared.compared) {
    lines.push(...matchedLines(compared, invoice.currency));
    const part = explainUsage(compared, inputs);
    bill += part.bill;
    causes.push(...part.causes);
    unexplained.push(...part.unexplained);
  }
  for (const { line, why, rule } of prepared.others) {
    const amount = amountOf(line.amount);
    const cause = OTHER_CAUSES[why];
    const about = {
      amount,
      sku: null,
      period: null,
      workspaceId: null,
      quantity: null,
      lineNumber: line.lineNumber,
    };
    if (amount !== 0n && cause !== undefined) causes.push({ cause, ...about, days: null });
    else if (amount !== 0n) unexplained.push({ why, ...about, isTolerated: false });
    lines.push({
      ...{
        lineNumber: line.lineNumber,
        state: "not_comparable",
        why,
        measure: null,
        sku: null,
        period: null,
        billed: null,
        rule,
      },
      ...{ workspaceId: line.workspace, quantityHere: null, unitPriceHere: null, costHere: null },
    });
  }
  const total = amountOf(invoice.total);
  const charged = inputs.lines.reduce((sum, { amount }) => sum + amountOf(amount), 0n);
  if (total !== charged) {
    const nothing = { sku: null, period: null, workspaceId: null, quantity: null, lineNumber: null };
    unexplained.push({ amount: total - charged, why: "total", ...nothing, isTolerated: false });
  }
  const explained = causes.reduce((sum, { amount }) => sum + amount, 0n);
  return {
    ...{ currency: invoice.currency, total, bill, remainder: total - bill - explained, unexplained },
    causes: causes.toSorted((a, b) => CAUSES.indexOf(a.cause) - CAUSES.indexOf(b.cause)),
    lines: lines.toSorted(
      (a, b) => (a.lineNumber ?? Number.MAX_SAFE_INTEGER) - (b.lineNumber ?? Number.MAX_SAFE_INTEGER),
    ),
    suggestions: suggestions(inputs, prepared),
  };
}

function explainUsage(compared: Compared, inputs: MatchInputs) {
  const { sku, measure, period, billed, rule, lines } = compared;
  let pricing = compared.pricing;
  const rounding = roundingOf(rule, inputs.invoice.currency);
  const linesOf = Map.groupBy(lines, ({ cell }) => cell);
  const isNamed = (workspace: string) => linesOf.has(workspace);
  const cellOf = (workspace: string) => (isNamed(workspace) || !linesOf.has("") ? workspace : "");
  const causes: NamedCause[] = [];
  const costs = new Map<string, Amount>();
  let cells = cellsOf({ ...compared, pricing });
  const exact = pricing
    .units(pricing.workspaces)
    .reduce((sum, unit) => sum + lineCost(unit.quantity, unit.price), 0n);

  const starts = lines.map(({ tierFrom }) => tierFrom ?? 0n);
  const lowest = starts.sort((a, b) => (a < b ? -1 : 1))[0] ?? 0n;
  const invoicedOf = (cell: string) => invoiced(linesOf.get(cell) ?? [], lowest, pricing.countedOver);

  /** Prices cells again, and returns how much higher they are. */
  const costAgain = (changed: Iterable<string>) => {
    let more = 0n;
    for (const cell of changed) {
      const units = pricing.units(cells.get(cell) ?? []);
      const cost = units.reduce((sum, unit) => sum + lineCost(unit.quantity, unit.price, rounding), 0n);
      more += cost - (costs.get(cell) ?? 0n);
      costs.set(cell, cost);
    }
    return more;
  };
  const costAllAgain = () => {
    cells = cellsOf({ ...compared, pricing });
    return costAgain(new Set([...cells.keys(), ...costs.keys()]));
  };
  const name = (cause: Cause, amount: Amount, about: Partial<NamedCause> = {}) => {
    if (amount === 0n && (about.quantity ?? 0n) === 0n) return;
    const nothing = { workspaceId: null, quantity: null, lineNumber: null, days: null };
    causes.push({ ...nothing, ...about, cause, amount, sku, period });
  };
  const quantityOf = (cell: string) =>
    (cells.get(cell) ?? []).reduce((sum, workspace) => sum + pricing.quantityOf(workspace), 0n);
  /**
   * Changes the usage of workspaces if that brings their cells nearer to the invoice. `isSure`: also if it does not, unless the
   * cell agrees already, because a later cause may offset it.
   */
  const addUsage = (
    cause: Cause,
    all: readonly AddedUsage[],
    isSure: (cell: string, more: Amount) => boolean = () => false,
  ) => {
    for (const [cell, own] of Map.groupBy(all, ({ workspaceId }) => cellOf(workspaceId))) {
      const more = own.reduce((sum, { quantity }) => sum + quantity, 0n);
      const target = invoicedOf(cell);
      const left = target === null ? 0n : target - quantityOf(cell);
      if (left === 0n || (size(left - more) >= size(left) && !isSure(cell, more))) continue;
      for (const { workspaceId, quantity, days = null, isShared = false } of own) {
        if (pricing.quantityOf(workspaceId) + quantity < 0n) continue;
        const changed = pricing.add(workspaceId, quantity);
        // Without a price, usage changes no amount.
        if (changed.length === 0) continue;
        const workspaces = cells.get(cell) ?? [];
        cells.set(cell, workspaces.includes(workspaceId) ? workspaces : [...workspaces, workspaceId]);
        const amount = costAgain(new Set(changed.map(cellOf)));
        name(cause, amount, { workspaceId: isShared ? null : workspaceId, quantity, days });
      }
    }
  };
  const ofPeriod = <One extends Days & { measure: string; workspaceId: string }>(all: readonly One[]) =>
    all
      .filter((one) => one.measure === measure && keyOf(one) === keyOf(period))
      .sort((a, b) => (a.workspaceId < b.workspaceId ? -1 : 1));

  name("rounding", costAllAgain() - exact);
  // The rest is about lines. A SKU that only our bill has is unexplained.
  if (lines.length > 0) {
    if (keyOf(period) !== keyOf(billed)) {
      pricing = pricing.copy();
      const used = inputs.charges.filter(
        (one) => !one.isBill && one.sku === sku && keyOf(one) === keyOf(period),
      );
      const before = pricing.workspaces.reduce((sum, workspace) => sum + pricing.quantityOf(workspace), 0n);
      const quantities = new Map<string, Amount>();
      for (const { workspaceId, quantity } of used)
        quantities.set(workspaceId, (quantities.get(workspaceId) ?? 0n) + amountOf(quantity));
      pricing.replace(quantities);
      const after = [...quantities.values()].reduce((sum, quantity) => sum + quantity, 0n);
      name("period", costAllAgain(), { quantity: after - before });
    }
    const amounts = (all: MatchInputs["changes"]) =>
      ofPeriod(all).map(({ workspaceId, quantity }) => ({ workspaceId, quantity: amountOf(quantity) }));
    const open = Map.groupBy(ofPeriod(inputs.openDays), ({ workspaceId }) => cellOf(workspaceId));
    // On which day the platform counts an upgrade is not known, so only an exact agreement is evidence.
    const upgrades = Map.groupBy(amounts(inputs.upgrades), ({ workspaceId }) => cellOf(workspaceId));
    const isOffset = (cell: string) => upgrades.has(cell) || open.has(cell) || counts(cell) > 0n;
    addUsage("changes", amounts(inputs.changes), isOffset);
    for (const [cell, own] of upgrades) {
      const more = own.reduce((sum, { quantity }) => sum + quantity, 0n);
      if (invoicedOf(cell) === quantityOf(cell) + more) addUsage("upgrades", own);
    }
    for (const [cell, days] of open) {
      const target = invoicedOf(cell);
      const notLoaded = days.reduce((sum, one) => sum + one.daysNotLoaded, 0);
      const notFinal = days.reduce((sum, one) => sum + one.daysNotFinal, 0);
      const quantity = target === null ? 0n : target - quantityOf(cell) - counts(cell);
      // Days that are not loaded never make the invoice lower.
      if (quantity > 0n || notFinal > 0) {
        const [{ workspaceId }] = days as [(typeof days)[number]];
        const isShared = days.length > 1;
        addUsage(
          "days_open",
          [{ workspaceId, quantity, isShared, days: { notLoaded, notFinal } }],
          () => true,
        );
      }
    }
    const known = new Set(inputs.workspaces.map(({ id }) => id));
    const unread = new Map(amounts(inputs.unread).map((one) => [one.workspaceId, one.quantity]));
    const named = [...linesOf.keys()].filter((cell) => cell !== "" && !known.has(cell)).sort();
    const others = linesOf.has("")
      ? [...unread.keys()].filter((workspace) => !named.includes(workspace))
      : [];
    addUsage(
      "unread_workspace",
      [...named, ...others].map((workspaceId) => ({
        workspaceId,
        quantity: unread.get(workspaceId) ?? invoicedOf(workspaceId) ?? 0n,
      })),
    );
    name("counted_over", countAsInvoiced());
    name("price", priceAsInvoiced());
  }
  const unexplained = [...new Set([...cells.keys(), ...linesOf.keys()])].flatMap((cell): Unexplained[] => {
    const own = linesOf.get(cell) ?? [];
    const amount = own.reduce((sum, one) => sum + one.amount, 0n) - (costs.get(cell) ?? 0n);
    if (amount === 0n) return [];
    const target = invoicedOf(cell);
    const quantity = target === null ? null : target - quantityOf(cell);
    const odd = own.find((one) => !isProduct(one, rounding));
    const why =
      own.length === 0 ? "only_here" : odd !== undefined ? "arithmetic" : quantity === 0n ? "tiers" : "usage";
    const lineNumber = odd?.lineNumber ?? (own.length === 1 ? (own[0]?.lineNumber ?? null) : null);
    const isTolerated = isWithin(
      amount,
      own.reduce((sum, one) => sum + one.amount, 0n),
      rule,
    );
    const about = { sku, period, workspaceId: cell || null, quantity, lineNumber };
    return [{ amount, why, ...about, isTolerated }];
  });
  return { bill: exact, causes, unexplained };

  /** Usage of workspaces that no sync loads is a cause of its own. */
  function counts(cell: string): Amount {
    if (cell !== "") return 0n;
    return ofPeriod(inputs.unread).reduce(
      (sum, one) => sum + (isNamed(one.workspaceId) ? 0n : amountOf(one.quantity)),
      0n,
    );
  }

  /** Counts tiers for all workspaces together or for each one, whichever is nearer to the lines of the invoice. */
  function countAsInvoiced(): Amount {
    if (!pricing.hasTiers) return 0n;
    const other = pricing.copy();
    other.recount(pricing.countedOver === "source" ? "workspace" : "source");
    if (distance(other) < distance(pricing)) pricing = other;
    takeDivision();
    return costAllAgain();
  }

  function distance(counted: Pricing): Amount {
    const tiersOf = otherTiers(counted);
    const priced = tiersOf.size === 0 ? counted : counted.copy();
    if (tiersOf.size > 0) priced.reprice((workspace) => tiersOf.get(workspace));
    return [...cells].reduce<Amount>((sum, [cell, workspaces]) => {
      const paired = pairs(linesOf.get(cell) ?? [], priced.units(workspaces));
      const off = paired.map(({ line, unit }) =>
        line?.quantity == null ? 0n : size(line.quantity - (unit?.quantity ?? 0n)),
      );
      return off.reduce((all, one) => all + one, sum);
    }, 0n);
  }

  /**
   * No document says which workspaces get the tiers that an organization fills. If the invoice has the same usage of each
   * workspace and of each tier, its division is as good as ours.
   */
  function takeDivision(): void {
    if (pricing.countedOver === "workspace") return;
    const divided = new Map<string, Map<Amount, Amount>>();
    for (const { cell, tierFrom, quantity } of lines) {
      if (cell === "" || tierFrom === null || quantity === null) return;
      const own = divided.get(cell) ?? new Map<Amount, Amount>();
      own.set(tierFrom, (own.get(tierFrom) ?? 0n) + quantity);
      divided.set(cell, own);
    }
    const tiers = pricing.units(pricing.workspaces);
    const ofTier = (from: Amount) =>
      [...divided.values()].reduce((sum, own) => sum + (own.get(from) ?? 0n), 0n);
    const isSame =
      new Set(tiers.map(({ from }) => from)).size === tiers.length &&
      tiers.every(({ from, quantity }) => quantity === ofTier(from)) &&
      pricing.workspaces.every(
        (workspace) =>
          pricing.quantityOf(workspace) ===
          [...(divided.get(workspace)?.values() ?? [])].reduce((sum, one) => sum + one, 0n),
      );
    if (!isSame) return;
    for (const [cell, own] of divided)
      pricing.take(
        cell,
        tiers.flatMap(({ from, price }) =>
          own.get(from) ? [{ from, price, quantity: own.get(from) as Amount }] : [],
        ),
      );
  }

  /** Takes the unit prices of the invoice, and its tiers if they begin elsewhere. */
  function priceAsInvoiced(): Amount {
    const tiersOf = otherTiers(pricing);
    if (tiersOf.size > 0) {
      pricing.reprice((workspace) => tiersOf.get(workspace));
      takeDivision();
    }
    for (const [cell, workspaces] of cells) {
      for (const { line, unit } of pairs(linesOf.get(cell) ?? [], pricing.units(workspaces))) {
        if (line?.unitPrice != null && unit !== undefined && line.unitPrice !== unit.price)
          pricing.setPrice(workspaces, unit, line.unitPrice);
      }
    }
    return costAllAgain();
  }

  /** Tiers of workspaces whose lines name tiers that begin at other quantities than ours. */
  function otherTiers(counted: Pricing): Map<string, Tier[]> {
    const tiersOf = new Map<string, Tier[]>();
    const ours = new Set(counted.units(counted.workspaces).map(({ from }) => from));
    for (const [cell, workspaces] of cells) {
      const tiers = (linesOf.get(cell) ?? [])
        .flatMap(({ tierFrom, unitPrice }) =>
          tierFrom === null || unitPrice === null ? [] : [{ from: tierFrom, price: unitPrice }],
        )
        .sort((a, b) => (a.from < b.from ? -1 : 1));
      const isWhole = tiers.length === linesOf.get(cell)?.length && tiers[0]?.from === 0n;
      if (isWhole && tiers.some(({ from }) => !ours.has(from)))
        for (const workspace of workspaces) tiersOf.set(workspace, tiers);
    }
    return tiersOf;
  }
}

/**
 * Usage of a cell by the invoice. If it shows no first tier anywhere, the tiers below are full. Null: it does not write all
 * quantities, or not which workspace filled these tiers.
 */
function invoiced(
  lines: readonly ComparedLine[],
  lowest: Amount,
  countedOver: Pricing["countedOver"],
): Amount | null {
  if (lines.length === 0 || lines.some(({ quantity }) => quantity === null)) return null;
  const isShared = countedOver === "source" && lines[0]?.cell !== "";
  return lowest > 0n && isShared ? null : sumOf(lines) + lowest;
}

function sumOf(lines: readonly ComparedLine[]): Amount {
  return lines.reduce((sum, { quantity }) => sum + (quantity ?? 0n), 0n);
}

function isProduct(
  { quantity, unitPrice, amount }: ComparedLine,
  rule: ReturnType<typeof roundingOf>,
): boolean {
  return quantity === null || unitPrice === null || lineCost(quantity, unitPrice, rule) === amount;
}

function size(amount: Amount): Amount {
  return amount < 0n ? -amount : amount;
}
