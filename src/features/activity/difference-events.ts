import { type Amount, amountOf } from "../../core/domain/usage/amount.ts";
import { MEASURE_DIGITS } from "../../core/domain/usage/meter.ts";
import type { Database } from "../../core/store/db/database.ts";
import { worthOf } from "../costs/worth.store.ts";
import type { ListedDifference } from "./difference-list.store.ts";

/** One difference: its lines show the same usage in several dimensions. */
export interface DifferenceEvent {
  readonly lines: readonly ListedDifference[];
  /** The line, or the first of the lines, whose dimension counts. */
  readonly first: ListedDifference;
  readonly isOpen: boolean;
  readonly stored: Amount;
  readonly other: Amount;
  /** The amount that the bill would gain or, below zero, lose. For a restatement: has gained. */
  readonly amount: Amount;
}

const UNCOUNTED: readonly string[] = ["name_differs", "bucket_end_differs"];

/** Groups lines of one source, as `countOpenDifferences` counts them. */
export function eventsOf(lines: readonly ListedDifference[]): DifferenceEvent[] {
  const events = Map.groupBy(lines, ({ says, kind, stride, from, to, workspaceId, meter, measure }) =>
    JSON.stringify([says, says === "total" ? kind : stride, from, to, workspaceId, meter, measure]),
  );
  return [...events.values()].map((all) => {
    // Lines of one dimension add up. Dimensions show the same usage, so the one that counts is the workspace or the largest.
    const sums = [...Map.groupBy(all, ({ groupBy }) => groupBy).values()].map(sumOf);
    const whole =
      sums.find(({ first }) => first.groupBy === "workspace") ??
      sums.reduce((most, one) => (sizeOf(one.amount) > sizeOf(most.amount) ? one : most));
    return { ...whole, lines: all, isOpen: all.some(isOpen) };
  });
}

const isOpen = ({ state }: ListedDifference) => state === "open" || state === "platform_disagrees";
const sizeOf = (amount: Amount) => (amount < 0n ? -amount : amount);

function sumOf(lines: readonly ListedDifference[]) {
  const first = lines[0] as ListedDifference;
  const isRestated = first.says === "restatement";
  const amount = lines.reduce((sum, line) => sum + changeOf(line), 0n);
  // The newest restatement of each id has the stored number.
  const stored = [...new Map(lines.toReversed().map((line) => [line.dimensionId, line])).values()].reduce(
    (sum, line) => sum + exact(line, line.storedAmount),
    0n,
  );
  return { first, stored, amount, other: isRestated ? stored - amount : stored + amount };
}

function changeOf(line: ListedDifference): Amount {
  if (UNCOUNTED.includes(line.kind)) return 0n;
  const change = exact(line, line.otherAmount) - exact(line, line.storedAmount);
  return line.says === "restatement" ? -change : change;
}

function exact({ measure }: ListedDifference, amount: number | null): Amount {
  return amountOf((amount ?? 0).toFixed(MEASURE_DIGITS[measure]));
}

/** Returns the worth of each event in money, in their order. Undefined: no price is valid. */
export function worthOfEvents(db: Database, source: string, events: readonly DifferenceEvent[]) {
  return worthOf(
    db,
    events.map(({ first: { workspaceId, meter, measure, to }, amount }) => {
      const day = new Date(Date.parse(to) - 1).toISOString().slice(0, 10);
      return { source, workspaceId, meter, measure, day, quantity: amount };
    }),
  );
}
