import type { Amount } from "../../core/domain/usage/amount.ts";
import type { CountedOver } from "../costs/price.ts";
import type { Rounding } from "./rule.ts";

/** Quantities and prices are amounts, so a product has twice the digits of an amount. */
type Product = bigint;

const AMOUNT = 10n ** 10n;

export interface Tier {
  readonly from: Amount;
  readonly price: Amount;
}

export interface PriceSteps {
  readonly priceId: number;
  /** Prices of one scope share the quantities that fill their tiers. */
  readonly scope: string;
  readonly isOfWorkspace: boolean;
  readonly countedOver: CountedOver;
  readonly validFrom: string;
  readonly tiers: readonly Tier[];
}

/** The usage of a workspace in one tier of a price. */
export interface Row extends Tier {
  readonly workspace: string;
  readonly steps: PriceSteps;
  readonly quantity: Amount;
}

/** One line of a bill: the usage of a cell in one tier. */
export interface Unit extends Tier {
  readonly quantity: Amount;
}

export interface RoundingRule {
  readonly rounding: Rounding;
  /** Digits of the currency after the point. */
  readonly digits: number;
}

/** The price of a quantity on one line, rounded as the issuer rounds it. Without a rule, to the digits of an amount. */
export function lineCost(quantity: Amount, price: Amount, rule?: RoundingRule): Amount {
  const isWhole = rule === undefined || rule.rounding === "none";
  return rounded(quantity * price, isWhole ? 10 : rule.digits, rule?.rounding === "down");
}

function rounded(product: Product, digits: number, isDown: boolean): Amount {
  const step = 10n ** BigInt(20 - digits);
  const size = product < 0n ? -product : product;
  const steps = (size + (isDown ? 0n : step / 2n)) / step;
  const amount = (steps * step) / AMOUNT;
  return product < 0n ? -amount : amount;
}

/** Divides the usage after the first `position` units by tier. */
function fill(position: Amount, quantity: Amount, tiers: readonly Tier[]): Unit[] {
  const end = position + quantity;
  return tiers.flatMap((tier, at) => {
    const next = tiers[at + 1]?.from;
    const from = tier.from > position ? tier.from : position;
    const to = next === undefined || next > end ? end : next;
    return to > from ? [{ from: tier.from, price: tier.price, quantity: to - from }] : [];
  });
}

/**
 * The usage of one SKU and period by workspace and tier, priced as on our bill. Each method changes one thing, and returns the
 * workspaces whose rows changed.
 */
export class Pricing {
  readonly #rows = new Map<string, Row[]>();
  readonly #general: PriceSteps | undefined;
  countedOver: CountedOver;

  /** `prices`: all prices of the SKU in the period, also those without usage. */
  constructor(rows: readonly Row[], prices: readonly PriceSteps[]) {
    for (const [workspace, own] of Map.groupBy(rows, (row) => row.workspace)) this.#rows.set(workspace, own);
    // A price of the source takes precedence over one of all sources.
    const general = prices.filter(({ isOfWorkspace }) => !isOfWorkspace);
    this.#general = general
      .sort((a, b) => (a.scope[0] === b.scope[0] ? byTime(a, b) : a.scope < b.scope ? -1 : 1))
      .at(-1);
    this.countedOver = (this.#general ?? rows[0]?.steps)?.countedOver ?? "source";
  }

  get hasTiers(): boolean {
    return [...this.#rows.values()].some((own) => own.some(({ steps }) => steps.tiers.length > 1));
  }

  /** In the order of their ids. */
  get workspaces(): string[] {
    return [...this.#rows.keys()].sort();
  }

  copy(): Pricing {
    const copy = new Pricing(
      [...this.#rows.values()].flat(),
      this.#general === undefined ? [] : [this.#general],
    );
    copy.countedOver = this.countedOver;
    return copy;
  }

  quantityOf(workspace: string): Amount {
    return sumOf(this.#rows.get(workspace) ?? []);
  }

  /** Usage of workspaces by tier, lowest first. */
  units(workspaces: Iterable<string>): Unit[] {
    const units = new Map<string, { from: Amount; price: Amount; quantity: Amount }>();
    for (const workspace of workspaces) {
      for (const { from, price, quantity } of this.#rows.get(workspace) ?? []) {
        const key = `${from} ${price}`;
        const unit = units.get(key);
        if (unit === undefined) units.set(key, { from, price, quantity });
        else unit.quantity += quantity;
      }
    }
    return [...units.values()].sort((a, b) => compare(a.from, b.from) || compare(b.price, a.price));
  }

  /** Adds usage to a workspace at the end of the period, or removes it. */
  add(workspace: string, quantity: Amount): string[] {
    const own = this.#rows.get(workspace) ?? [];
    const steps =
      own
        .map((row) => row.steps)
        .sort(byTime)
        .at(-1) ?? this.#general;
    if (steps === undefined || quantity === 0n) return [];
    if (this.#isCountedApart(steps) || steps.tiers.length === 1) {
      const last = { workspace, steps, from: 0n, price: 0n, quantity };
      this.#rows.set(workspace, refilled([...own, last], new Map()));
      return [workspace];
    }
    if (quantity > 0n) {
      const added = fill(this.#pooled(steps), quantity, steps.tiers).map((unit) => ({
        workspace,
        steps,
        ...unit,
      }));
      this.#rows.set(workspace, [...own, ...added]);
      return [workspace];
    }
    this.#rows.set(workspace, without(own, -quantity));
    return [workspace, ...this.#moveDown(steps)];
  }

  /** Replaces the usage of all workspaces. */
  replace(quantities: ReadonlyMap<string, Amount>): void {
    const steps = new Map([...this.#rows].map(([workspace, [row]]) => [workspace, row?.steps]));
    this.#rows.clear();
    for (const [workspace, quantity] of [...quantities].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const own = steps.get(workspace) ?? this.#general;
      if (own !== undefined)
        this.#rows.set(workspace, [{ workspace, steps: own, from: 0n, price: 0n, quantity }]);
    }
    this.recount(this.countedOver);
  }

  /** Fills the tiers again, for all workspaces together or for each one. Together, they are filled in the order of the ids. */
  recount(countedOver: CountedOver): void {
    this.countedOver = countedOver;
    const positions = new Map<string, Amount>();
    const all = [...this.#rows.values()].flat();
    const pooled = all.filter(({ steps }) => !this.#isCountedApart(steps));
    const apart = all.filter(({ steps }) => this.#isCountedApart(steps));
    const rows = [
      ...[...Map.groupBy(apart, (row) => row.workspace).values()].flatMap((own) => refilled(own, new Map())),
      ...refilled(pooled, positions),
    ];
    for (const workspace of this.#rows.keys()) this.#rows.set(workspace, []);
    for (const row of rows) this.#rows.get(row.workspace)?.push(row);
  }

  /** Takes other tiers for the usage of a workspace. `tiersOf`: undefined if the workspace keeps its own. */
  reprice(tiersOf: (workspace: string) => readonly Tier[] | undefined): void {
    for (const [workspace, own] of this.#rows) {
      const tiers = tiersOf(workspace);
      if (tiers !== undefined)
        this.#rows.set(
          workspace,
          own.map((row) => ({ ...row, steps: { ...row.steps, tiers } })),
        );
    }
    this.recount(this.countedOver);
  }

  /** Divides a workspace's usage by tier as given. */
  take(workspace: string, units: readonly Unit[]): void {
    const steps = this.#rows.get(workspace)?.at(-1)?.steps ?? this.#general;
    if (steps !== undefined)
      this.#rows.set(
        workspace,
        units.map((unit) => ({ workspace, steps, ...unit })),
      );
  }

  setPrice(workspaces: Iterable<string>, unit: Tier, price: Amount): void {
    for (const workspace of workspaces) {
      const own = this.#rows.get(workspace) ?? [];
      this.#rows.set(
        workspace,
        own.map((row) => (row.from === unit.from && row.price === unit.price ? { ...row, price } : row)),
      );
    }
  }

  #isCountedApart({ isOfWorkspace }: PriceSteps): boolean {
    return isOfWorkspace || this.countedOver === "workspace";
  }

  #pooled({ scope }: PriceSteps): Amount {
    return sumOf([...this.#rows.values()].flat().filter(({ steps }) => steps.scope === scope));
  }

  /** Usage of higher tiers moves into room that removed usage has left in lower ones. */
  #moveDown({ priceId, tiers, scope }: PriceSteps): string[] {
    const changed = new Set<string>();
    const rows = [...this.#rows.values()].flat();
    const isHere = ({ steps }: Row) => steps.scope === scope;
    tiers.forEach((tier, at) => {
      const end = tiers[at + 1]?.from;
      if (end === undefined) return;
      const filled = sumOf(rows.filter((row) => isHere(row) && row.from === tier.from));
      let room = end - tier.from - filled;
      if (room <= 0n) return;
      const higher = rows.filter((row) => row.steps.priceId === priceId && row.from > tier.from);
      for (const row of higher.sort(
        (a, b) => compare(b.from, a.from) || (a.workspace < b.workspace ? 1 : -1),
      )) {
        const moved = least(room, row.quantity);
        if (moved <= 0n) continue;
        room -= moved;
        rows.splice(
          rows.indexOf(row),
          1,
          { ...row, quantity: row.quantity - moved },
          { ...row, ...tier, quantity: moved },
        );
        changed.add(row.workspace);
      }
    });
    for (const workspace of changed) {
      this.#rows.set(
        workspace,
        rows.filter((row) => row.workspace === workspace && row.quantity !== 0n),
      );
    }
    return [...changed];
  }
}

/** Prices follow each other in time; the workspaces of one price in the order of their ids. */
function refilled(rows: readonly Row[], positions: Map<string, Amount>): Row[] {
  const inOrder = [...rows].sort(
    (a, b) =>
      byTime(a.steps, b.steps) || (a.workspace < b.workspace ? -1 : a.workspace > b.workspace ? 1 : 0),
  );
  const parts = Map.groupBy(inOrder, ({ steps, workspace }) => `${steps.priceId} ${workspace}`);
  return [...parts.values()].flatMap((part) => {
    const [{ workspace, steps }] = part as [Row];
    const [position, quantity] = [positions.get(steps.scope) ?? 0n, sumOf(part)];
    positions.set(steps.scope, position + quantity);
    return quantity <= 0n
      ? []
      : fill(position, quantity, steps.tiers).map((unit) => ({ workspace, steps, ...unit }));
  });
}

/** Removes usage from the highest tiers. */
function without(rows: readonly Row[], quantity: Amount): Row[] {
  let left = quantity;
  return rows
    .toSorted((a, b) => -byTime(a.steps, b.steps) || compare(b.from, a.from))
    .flatMap((row) => {
      const taken = least(left, row.quantity);
      left -= taken;
      return taken === row.quantity ? [] : [{ ...row, quantity: row.quantity - taken }];
    });
}

function sumOf(rows: readonly { readonly quantity: Amount }[]): Amount {
  return rows.reduce((sum, { quantity }) => sum + quantity, 0n);
}

function byTime(one: PriceSteps, other: PriceSteps): number {
  return one.validFrom < other.validFrom ? -1 : one.validFrom > other.validFrom ? 1 : 0;
}

function compare(one: bigint, other: bigint): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function least(one: bigint, other: bigint): bigint {
  return compare(one, other) < 0 ? one : other;
}
