import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../core/base/errors.ts";
import { readInstant } from "../core/base/instant.ts";
import { Duration } from "../core/base/luxon.ts";
import { STRIDES, type Stride } from "../core/domain/time/stride.ts";
import type { Interval } from "../core/domain/time/window.ts";
import {
  groupingsFor,
  METER,
  METER_NAME,
  type Meter,
  meterOf as meterOfTerms,
} from "../core/domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../core/domain/usage/record.ts";

export interface RangeOptions {
  readonly from?: number;
  readonly to?: number;
}

export interface MeterOptions {
  readonly kind: string;
  readonly tier: string;
}

export interface SelectionOptions extends MeterOptions {
  readonly stride: Stride;
  readonly groupBy?: GroupBy;
  readonly workspace?: readonly string[];
}

export function withSource(command: Command): Command {
  return command.option("--source <slug>", "only this source; default: every configured one");
}

export function withRange(command: Command): Command {
  return command
    .option("--from <time>", "start, UTC, such as 2026-03-01 or 2026-03-01T05:00", parseInstant)
    .option("--to <time>", "end, UTC, not included", parseInstant);
}

export function withSelection(command: Command): Command {
  return withMeter(withGrouping(command))
    .addOption(new Option("--stride <stride>", "size of the time buckets").choices(STRIDES).default("day"))
    .option("--workspace <id...>", "only these workspaces", collectIds);
}

function collectIds(id: string, before: readonly string[] = []): string[] {
  return [...before, id.toLowerCase()];
}

export function withGrouping(command: Command): Command {
  return command.addOption(new Option("--group-by <dimension>", "only this dimension").choices(GROUPINGS));
}

/** Without a default, a command without these options uses all loaded meters. */
export function withMeter(command: Command, byDefault: Partial<MeterOptions> = METER.traces): Command {
  const wordsOf = (name: keyof MeterOptions) => [
    ...new Set(Object.values(METER).map((terms) => terms[name])),
  ];
  return command
    .addOption(new Option("--kind <kind>", "kind of usage").choices(wordsOf("kind")).default(byDefault.kind))
    .addOption(
      new Option("--tier <tier>", "retention tier of traces")
        .choices(wordsOf("tier"))
        .default(byDefault.tier),
    );
}

/** Undefined: all loaded meters. Error: `tier_unknown`. */
export function requestedMeter({ kind, tier }: Partial<MeterOptions>): Meter | undefined {
  if (kind === undefined && tier === undefined) return undefined;
  return meterOf({ kind: kind ?? METER.traces.kind, tier: tier ?? METER.traces.tier });
}

/** Error: `tier_unknown` for a tier of deployments, which have no tiers. */
export function meterOf({ kind, tier }: MeterOptions): Meter {
  const meter = meterOfTerms(kind, tier);
  if (meter !== undefined) return meter;
  throw new UsageError({
    code: "tier_unknown",
    message: `--tier ${tier} cannot be combined with --kind ${kind}: only traces have retention tiers.`,
    next: "Leave --tier out.",
  });
}

export function parseInstant(text: string): number {
  const read = readInstant(text);
  if (typeof read === "number") return read;
  throw new InvalidArgumentError(read);
}

/** Errors: `range_reversed`; `range_missing` if an end is missing and has no default. */
export function rangeOf(options: RangeOptions, fallback?: Interval): Interval {
  const start = options.from ?? fallback?.start;
  const end = options.to ?? fallback?.end;
  if (start === undefined || end === undefined) {
    throw new UsageError({
      code: "range_missing",
      message: `${start === undefined ? "--from" : "--to"} is missing.`,
      next: "Give both options, such as --from 2026-03-01 --to 2026-04-01. The day of --to is not included.",
    });
  }
  if (start >= end) {
    throw new UsageError({
      code: "range_reversed",
      message: `--from ${new Date(start).toISOString()} is not before --to ${new Date(end).toISOString()}.`,
      next: "Swap the two. The day of --to is not included: one day is --from 2026-03-01 --to 2026-03-02.",
    });
  }
  return { start, end };
}

/** Default: all dimensions of the meter. Error: `dimension_unknown`. */
export function groupingsOf({ groupBy }: { readonly groupBy?: GroupBy }, meter: Meter): readonly GroupBy[] {
  const groupings = groupingsFor(meter, groupBy === undefined ? GROUPINGS : [groupBy]);
  if (groupings.length > 0) return groupings;
  throw new UsageError({
    code: "dimension_unknown",
    message: `The platform does not split ${METER_NAME[meter]} by ${groupBy}.`,
    next: `Choose one of: ${METER[meter].groupings.join(", ")}.`,
  });
}

/** A run or backfill number is a Postgres integer. Errors: `run_unknown`, `backfill_unknown`. */
export function numberOf(what: "run" | "backfill", text: string): number {
  const id = Number(text);
  if (Number.isSafeInteger(id) && id > 0 && id < 2 ** 31) return id;
  throw new UsageError({
    code: `${what}_unknown`,
    message: `${text} is not the number of a ${what}.`,
    next: `Run \`usage-etl ${what === "run" ? "runs" : "backfill"} list\` to see their numbers.`,
  });
}

/** `setTimeout` allows at most 24 days. */
const LONGEST_MS = 20 * 86_400_000;

export function parseDuration(text: string): number {
  const value = Duration.fromISO(text);
  const ms = value.isValid ? value.toMillis() : Number.NaN;
  if (ms > 0 && ms <= LONGEST_MS) return ms;
  throw new InvalidArgumentError(
    ms > LONGEST_MS ? "It is more than 20 days." : "It is not an ISO 8601 duration such as PT30M.",
  );
}

export function wholeNumber(most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isSafeInteger(value) || value < 0)
      throw new InvalidArgumentError("It is not a whole number.");
    if (value <= most) return value;
    throw new InvalidArgumentError(`It is more than ${most}.`);
  };
}
