import type { Days } from "../../core/domain/time/days.ts";
import { type Amount, amountOf, amountText, minorDigits } from "../../core/domain/usage/amount.ts";
import type { PricedMeasure } from "../costs/price.ts";
import {
  billedDays,
  keyOf,
  type MatchInputs,
  type StoredLine,
  type Target,
  targetOf,
  type WhyNot,
} from "./match-inputs.ts";
import { lineCost, type PriceSteps, Pricing, type RoundingRule, type Row, type Unit } from "./pricing.ts";
import { type InvoiceRule, tierOf } from "./rule.ts";

export const LINE_STATES = [
  "agrees",
  "within_tolerance",
  "quantity_differs",
  "price_differs",
  "only_on_invoice",
  "only_here",
  "not_comparable",
] as const;
export type LineState = (typeof LINE_STATES)[number];

/** A line of the invoice beside that of our bill, or a line that only our bill has. */
export interface MatchedLine {
  readonly lineNumber: number | null;
  readonly state: LineState;
  /** Only for `not_comparable`. */
  readonly why: WhyNot | null;
  readonly measure: PricedMeasure | null;
  readonly sku: string | null;
  readonly period: Days | null;
  /** Days of our bill that the line is compared with. */
  readonly billed: Days | null;
  readonly rule: InvoiceRule | undefined;
  /** The platform's id, or the invoice's word for a workspace that is not known here. Null: the whole organization. */
  readonly workspaceId: string | null;
  readonly quantityHere: Amount | null;
  readonly unitPriceHere: Amount | null;
  /** Exact cost of our bill. */
  readonly costHere: Amount | null;
}

/** A usage line with what it charges. `cell`: the workspace; `""` for the whole organization. */
export interface ComparedLine {
  readonly lineNumber: number;
  readonly cell: string;
  readonly tierFrom: Amount | null;
  readonly tierTo: Amount | null;
  readonly quantity: Amount | null;
  readonly unitPrice: Amount | null;
  readonly amount: Amount;
}

/** The usage of one SKU in one period: the lines of the invoice, and our bill. */
export interface Compared {
  readonly sku: string;
  readonly measure: PricedMeasure;
  readonly period: Days;
  readonly billed: Days;
  readonly rule: InvoiceRule | undefined;
  readonly lines: readonly ComparedLine[];
  readonly pricing: Pricing;
}

export interface Prepared {
  readonly compared: readonly Compared[];
  readonly others: readonly {
    readonly line: StoredLine;
    readonly why: WhyNot;
    readonly rule: InvoiceRule | undefined;
  }[];
}

/** Sorts the lines of an invoice by SKU and period, beside the usage and prices of our bill. */
export function prepare(inputs: MatchInputs): Prepared {
  const { invoice, lines } = inputs;
  const others: { line: StoredLine; why: WhyNot; rule: InvoiceRule | undefined }[] = [];
  const groups = new Map<
    string,
    { sku: string; target: Extract<Target, { measure: unknown }>; lines: ComparedLine[] }
  >();
  const idOf = workspaceIds(inputs);
  // Few SKUs have many charges.
  const skus = new Map(
    inputs.charges
      .filter(({ isBill }) => isBill)
      .map((one) => [`${one.sku} ${one.currency} ${keyOf(one)}`, one] as const),
  );
  for (const line of lines) {
    const target = targetOf(line, inputs);
    if ("why" in target) {
      others.push({ line, why: target.why, rule: target.rule });
      continue;
    }
    const sku = skuOf(target);
    if ("why" in sku) {
      others.push({ line, why: sku.why, rule: target.rule });
      continue;
    }
    const key = `${sku.sku} ${keyOf(target.period)}`;
    const group = groups.get(key) ?? { sku: sku.sku, target, lines: [] };
    groups.set(key, group);
    group.lines.push({
      lineNumber: line.lineNumber,
      cell: line.workspace === null ? "" : idOf(line.workspace),
      ...{ tierFrom: tierOf(line.text)?.from ?? null, tierTo: tierOf(line.text)?.to ?? null },
      quantity: line.quantity === null ? null : amountOf(line.quantity),
      unitPrice: line.unitPrice === null ? null : amountOf(line.unitPrice),
      amount: amountOf(line.amount),
    });
  }
  const pricingFor = pricings(inputs);
  const compared = [...groups.values()].map(({ sku, target, lines }): Compared => {
    const { period, measure, rule } = target;
    const billed = billedDays(period);
    const pricing = pricingFor(sku, billed, true);
    return { sku, measure, period, billed, rule, lines: withStarts(lines), pricing };
  });
  return { compared: [...compared, ...onlyHere(inputs, compared, pricingFor)], others };

  function skuOf(target: Extract<Target, { measure: unknown }>): { sku: string } | { why: WhyNot } {
    const { measure, period } = target;
    const billed = keyOf(billedDays(period));
    const charged = [...skus.values()].filter((one) => one.measure === measure && keyOf(one) === billed);
    const valid = inputs.prices.filter(
      (one) =>
        one.measure === measure &&
        one.validFrom < period.to &&
        (one.validTo === null || one.validTo > period.from),
    );
    const priced = [...charged, ...valid].filter(({ sku }) => target.sku === null || sku === target.sku);
    const inCurrency = priced.filter(({ currency }) => currency === invoice.currency);
    const [sku, ...more] = new Set(inCurrency.map((one) => one.sku));
    if (sku === undefined) return { why: priced.length === 0 ? "no_price" : "currency" };
    return more.length > 0 ? { why: "several_skus" } : { sku };
  }
}

/** A tier that is written from 10001 on begins after the 10000 at which another one ends. */
function withStarts(lines: readonly ComparedLine[]): ComparedLine[] {
  const ends = new Set(lines.map(({ tierTo }) => tierTo));
  return lines.map((line) => {
    const before = line.tierFrom === null ? null : line.tierFrom - amountOf(1);
    return line.tierFrom !== null && !ends.has(line.tierFrom) && ends.has(before)
      ? { ...line, tierFrom: before }
      : line;
  });
}

/** An invoice names a workspace by its id or its name. A name that several workspaces have is no id. */
function workspaceIds({ workspaces, unread }: MatchInputs): (text: string) => string {
  const known = new Map<string, string>();
  const twice = new Set<string>();
  for (const { id, name } of [
    ...unread.map((one) => ({ id: one.workspaceId, name: one.name })),
    ...workspaces,
  ]) {
    known.set(id.toLowerCase(), id);
    if (name === null) continue;
    const other = known.get(name.toLowerCase());
    if (other !== undefined && other !== id) twice.add(name.toLowerCase());
    known.set(name.toLowerCase(), id);
  }
  return (text) => {
    const key = text.trim().toLowerCase();
    return twice.has(key) ? text.trim() : (known.get(key) ?? text.trim());
  };
}

function pricings(inputs: MatchInputs): (sku: string, days: Days, isBill: boolean) => Pricing {
  const stored = new Map(
    inputs.prices.map((price): [number, PriceSteps] => [
      price.priceId,
      {
        ...price,
        tiers: price.tiers.map(({ from, price: unit }) => ({ from: amountOf(from), price: amountOf(unit) })),
      },
    ]),
  );
  const charges = Map.groupBy(inputs.charges, (one) => `${one.sku} ${keyOf(one)} ${one.isBill}`);
  return (sku, days, isBill) => {
    const own = (charges.get(`${sku} ${keyOf(days)} ${isBill}`) ?? []).filter(
      (one) => one.currency === inputs.invoice.currency,
    );
    const rows = own.map((one): Row => {
      const [from, price] = [amountOf(one.fromQuantity), amountOf(one.unitPrice)];
      const steps = stored.get(one.priceId) ?? goneSteps(own, one.priceId);
      stored.set(one.priceId, steps);
      return { workspace: one.workspaceId, from, price, quantity: amountOf(one.quantity), steps };
    });
    const prices = inputs.prices.filter(
      (one) =>
        one.sku === sku &&
        one.currency === inputs.invoice.currency &&
        one.validFrom < days.to &&
        (one.validTo === null || one.validTo > days.from),
    );
    return new Pricing(
      rows,
      prices.map(({ priceId }) => stored.get(priceId) as PriceSteps),
    );
  };
}

/** A price of a closed month that is no longer imported: its charges show the tiers that they reached. */
function goneSteps(charges: readonly MatchInputs["charges"][number][], priceId: number): PriceSteps {
  const own = charges.filter((one) => one.priceId === priceId);
  const tiers = new Map(own.map((one) => [amountOf(one.fromQuantity), amountOf(one.unitPrice)]));
  return {
    priceId,
    scope: `gone ${own[0]?.sku}`,
    isOfWorkspace: false,
    countedOver: "source",
    validFrom: "",
    tiers: [...tiers].map(([from, price]) => ({ from, price })).sort((a, b) => (a.from < b.from ? -1 : 1)),
  };
}

/** SKUs of a compared month that no invoice charges. The first invoice of the month shows them. */
function onlyHere(
  { charges, invoice, elsewhere, isFirst }: MatchInputs,
  compared: readonly Compared[],
  pricingFor: ReturnType<typeof pricings>,
): Compared[] {
  if (!isFirst) return [];
  const shown = new Set(compared.map((one) => `${one.sku} ${keyOf(one.billed)}`));
  const apart = new Set(elsewhere.map((one) => `${one.measure} ${keyOf(one)}`));
  const left = charges.filter(
    (one) =>
      one.isBill &&
      one.currency === invoice.currency &&
      !shown.has(`${one.sku} ${keyOf(one)}`) &&
      !apart.has(`${one.measure} ${keyOf(one)}`) &&
      compared.some((other) => keyOf(other.billed) === keyOf(one)),
  );
  const groups = Map.groupBy(left, (one) => `${one.sku} ${keyOf(one)}`);
  return [...groups.values()].map(([first]) => {
    const { sku, measure, from, to } = first as (typeof left)[number];
    const days = { from, to };
    return {
      sku,
      measure,
      period: days,
      billed: days,
      rule: undefined,
      lines: [],
      pricing: pricingFor(sku, days, true),
    };
  });
}

/** The workspaces of each cell. Lines of the whole organization are for all workspaces that no other line names. */
export function cellsOf({ lines, pricing }: Compared): Map<string, string[]> {
  const cells = new Map<string, string[]>(lines.map(({ cell }) => [cell, []]));
  const whole = cells.get("");
  for (const workspace of pricing.workspaces) {
    const own = cells.get(workspace);
    if (own !== undefined) own.push(workspace);
    else if (whole !== undefined) whole.push(workspace);
    else cells.set(workspace, [workspace]);
  }
  return cells;
}

/**
 * Pairs the lines of a cell with those of our bill: first by tier and price, then by tier, then lines that name no tier in their
 * order.
 */
export function pairs(
  lines: readonly ComparedLine[],
  units: readonly Unit[],
): { readonly line: ComparedLine | undefined; readonly unit: Unit | undefined }[] {
  const free = [...units];
  const found = new Map<ComparedLine, Unit>();
  const isOfTier = ({ tierFrom }: ComparedLine, unit: Unit) => tierFrom === unit.from;
  const passes: ((line: ComparedLine, unit: Unit) => boolean)[] = [
    (line, unit) => (line.tierFrom === null || isOfTier(line, unit)) && line.unitPrice === unit.price,
    isOfTier,
    ({ tierFrom }) => tierFrom === null,
  ];
  for (const isPair of passes) {
    for (const line of lines) {
      if (found.has(line)) continue;
      const at = free.findIndex((unit) => isPair(line, unit));
      if (at !== -1) found.set(line, free.splice(at, 1)[0] as Unit);
    }
  }
  return [
    ...lines.map((line) => ({ line, unit: found.get(line) })),
    ...free.map((unit) => ({ line: undefined, unit })),
  ];
}

export function roundingOf(rule: InvoiceRule | undefined, currency: string): RoundingRule {
  return { rounding: rule?.rounding ?? "half_up", digits: minorDigits(currency) };
}

/** Our bill of one SKU beside the lines, before anything is explained. */
export function matchedLines(compared: Compared, currency: string): MatchedLine[] {
  const { sku, measure, period, billed, pricing, rule } = compared;
  const rounding = roundingOf(rule, currency);
  const linesOf = Map.groupBy(compared.lines, ({ cell }) => cell);
  return [...cellsOf(compared)].flatMap(([cell, workspaces]) =>
    pairs(linesOf.get(cell) ?? [], pricing.units(workspaces)).map(
      ({ line, unit }): MatchedLine => ({
        ...{ lineNumber: line?.lineNumber ?? null, why: null, measure, sku, period, billed, rule },
        workspaceId: cell === "" ? null : cell,
        quantityHere: unit?.quantity ?? null,
        unitPriceHere: unit?.price ?? null,
        costHere: unit === undefined ? null : lineCost(unit.quantity, unit.price),
        state: stateOf(line, unit),
      }),
    ),
  );

  function stateOf(line: ComparedLine | undefined, unit: Unit | undefined): LineState {
    if (line === undefined) return "only_here";
    if (unit === undefined) return "only_on_invoice";
    const cost = lineCost(unit.quantity, unit.price, rounding);
    const isSameQuantity = line.quantity === null || line.quantity === unit.quantity;
    if (isSameQuantity && (line.unitPrice ?? unit.price) === unit.price && line.amount === cost)
      return "agrees";
    if (isWithin(line.amount - cost, line.amount, rule)) return "within_tolerance";
    return isSameQuantity ? "price_differs" : "quantity_differs";
  }
}

/** The tolerance is the greater of an amount and a per cent of the line. */
export function isWithin(difference: Amount, amount: Amount, rule: InvoiceRule | undefined): boolean {
  if (rule === undefined || (rule.toleranceAmount === null && rule.tolerancePercent === null)) return false;
  const size = (value: Amount) => (value < 0n ? -value : value);
  return (
    (rule.toleranceAmount !== null && size(difference) <= amountOf(rule.toleranceAmount)) ||
    // Both sides times a hundred and the scale of an amount, so that nothing is rounded.
    (rule.tolerancePercent !== null &&
      size(difference) * 100n * 10n ** 10n <= size(amount) * amountOf(rule.tolerancePercent))
  );
}

export interface Suggestion {
  readonly text: string;
  readonly measure: PricedMeasure;
  readonly sku: string;
  readonly quantity: string;
  readonly workspaceId: string | null;
  readonly period: Days;
}

/** Lines without a rule whose quantity is exactly that of usage here. A person decides whether that is a rule. */
export function suggestions(inputs: MatchInputs, { others }: Prepared): Suggestion[] {
  const sums = new Map<
    string,
    { one: MatchInputs["charges"][number]; workspaceId: string | null; quantity: Amount }
  >();
  for (const one of inputs.charges.filter(({ isBill }) => isBill)) {
    for (const workspaceId of [one.workspaceId, null]) {
      const key = `${one.sku} ${keyOf(one)} ${workspaceId}`;
      const sum = sums.get(key) ?? { one, workspaceId, quantity: 0n };
      sum.quantity += amountOf(one.quantity);
      sums.set(key, sum);
    }
  }
  const byQuantity = Map.groupBy(sums.values(), ({ quantity }) => quantity);
  return others.flatMap(({ line, why }) => {
    const quantity = why !== "no_rule" || line.quantity === null ? 0n : amountOf(line.quantity);
    const found = quantity === 0n ? [] : (byQuantity.get(quantity) ?? []);
    const unique = new Map(found.map((sum) => [sum.one.sku, sum]));
    return [...unique.values()].map(({ one, workspaceId }) => ({
      ...{
        text: line.sumText ?? line.text,
        measure: one.measure,
        sku: one.sku,
        quantity: amountText(quantity),
      },
      ...{ workspaceId, period: { from: one.from, to: one.to } },
    }));
  });
}
