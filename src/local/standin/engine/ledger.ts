import { between, Course, HOUR, type UpTo } from "./course.ts";
import { bucketOf, Edits } from "./edits.ts";
import {
  findStream,
  type Organisation,
  openStream,
  type Sender,
  type Stream,
  untilOf,
} from "./organisation.ts";
import { LonglivedCourse } from "./retention.ts";

/**
 * All traces in hourly rows: the seeded history, and what was added, restated or upgraded since. Every answer, in any
 * dimension, tier, stride and format, is a sum of these rows, so all answers agree.
 */
export interface Cell extends Sender {
  /** Any instant of the hour, epoch ms. */
  readonly at: number;
}

export type TraceTier = "longlived" | "shortlived";

interface LedgerOptions {
  readonly seed: number;
  readonly organisation: Pick<Organisation, "streams">;
  /** Epoch ms, the start of a UTC day; no usage before it. */
  readonly dataStart: number;
  readonly now: () => number;
}

export class Ledger {
  readonly dataStart: number;
  readonly #options: LedgerOptions;
  readonly #seeded: UpTo;
  readonly #seededLonglived: UpTo;
  readonly #edits = new Edits();
  readonly #longlivedEdits = new Edits();
  /** Changes that show from an instant on. */
  #pending: { readonly change: () => void; readonly from: number }[] = [];

  constructor(options: LedgerOptions) {
    this.dataStart = options.dataStart;
    this.#options = options;
    const course = new Course(options.seed, options.dataStart);
    const longlived = new LonglivedCourse(options.seed, course, options.now);
    this.#seeded = (stream, at) => course.upTo(stream, at);
    this.#seededLonglived = (stream, at) => longlived.upTo(stream, at);
  }

  /**
   * Traces of a stream between neighbouring `edges` (ascending, epoch ms): one number fewer than edges. A row counts
   * where its hour begins (our guess), so adjacent ranges count nothing twice. Null: of both tiers.
   */
  counts(stream: Stream, edges: readonly number[], tier: TraceTier | null = null): Float64Array {
    this.#applyDue();
    if (stream.project.dropped) return new Float64Array(Math.max(0, edges.length - 1));
    const until = untilOf(stream, this.#options.now());
    const hours = edges.map((edge) => Math.ceil(edge / HOUR) * HOUR);
    const all = between(this.#seeded, stream, hours, until);
    for (const hour of this.#edits.hours(stream)) {
      const i = hour < until ? bucketOf(hours, hour) : -1;
      const seeded = hourOf(this.#seeded, stream, hour, until);
      if (i >= 0) all[i] = (all[i] ?? 0) + this.#traces(stream, hour, until) - seeded;
    }
    if (tier === null) return all;
    const longlived = this.#longlivedCounts(stream, hours, until);
    return tier === "longlived" ? longlived : all.map((traces, i) => traces - (longlived[i] ?? 0));
  }

  /** Traces of one hourly row, now. */
  read(cell: Cell, tier: TraceTier | null = null): number {
    const stream = findStream(this.#options.organisation, cell);
    const hour = Math.floor(cell.at / HOUR) * HOUR;
    return (stream && this.counts(stream, [hour, hour + HOUR], tier)[0]) ?? 0;
  }

  /**
   * Changes one row by `delta`, never below 0: late arrivals, traffic, restatements. A future row shows when the clock
   * reaches its hour. A row before the data start throws. What is taken is short-lived as long as there is any.
   */
  change(cell: Cell, delta: number, tier: TraceTier = "shortlived"): { before: number; after: number } {
    const hour = this.#hourOf(cell, delta);
    const stream = openStream(this.#options.organisation, cell);
    const before = this.read(cell);
    const traces = this.#traces(stream, hour);
    const after = Math.max(0, traces + delta);
    const longlived = this.#longlived(stream, hour) + (tier === "longlived" ? after - traces : 0);
    this.#edits.set(stream, hour, after - hourOf(this.#seeded, stream, hour));
    this.#setLonglived(stream, hour, longlived);
    return { before, after: this.read(cell) };
  }

  /** The same change, which shows from an instant on. */
  changeLater(cell: Cell, delta: number, from: number): void {
    // Its stream is known at once, so that an answer looks for it.
    openStream(this.#options.organisation, cell);
    this.#pending.push({ change: () => this.change(cell, delta), from });
  }

  /**
   * Makes so many short-lived traces of one row long-lived, as many as there are, and returns the row's long-lived ones.
   * They stay in the hour of their receipt (our guess: usage is counted when it is received). `from`: shows from then on.
   */
  upgrade(cell: Cell, traces: number, from?: number): { before: number; after: number } {
    const hour = this.#hourOf(cell, traces);
    const before = this.read(cell, "longlived");
    if (from !== undefined && from > this.#options.now()) {
      this.#pending.push({ change: () => this.upgrade(cell, traces), from });
      return { before, after: before };
    }
    const stream = findStream(this.#options.organisation, cell);
    if (stream === undefined || this.#options.now() < hour) return { before, after: before };
    this.#setLonglived(stream, hour, this.#longlived(stream, hour) + Math.max(0, traces));
    return { before, after: this.read(cell, "longlived") };
  }

  #longlivedCounts(stream: Stream, hours: readonly number[], until: number): Float64Array {
    const counts = between(this.#seededLonglived, stream, hours, until);
    const edited = new Set([...this.#edits.hours(stream), ...this.#longlivedEdits.hours(stream)]);
    for (const hour of edited) {
      const i = hour < until ? bucketOf(hours, hour) : -1;
      const seeded = hourOf(this.#seededLonglived, stream, hour, until);
      if (i >= 0) counts[i] = (counts[i] ?? 0) + this.#longlived(stream, hour, until) - seeded;
    }
    return counts;
  }

  /** Of one row; without `until` as it will be when its hour is over. */
  #traces(stream: Stream, hour: number, until?: number): number {
    return Math.max(0, hourOf(this.#seeded, stream, hour, until) + this.#edits.of(stream, hour));
  }

  /** Never more than the row has. */
  #longlived(stream: Stream, hour: number, until?: number): number {
    const seeded = hourOf(this.#seededLonglived, stream, hour, until);
    const wanted = Math.max(0, seeded + this.#longlivedEdits.of(stream, hour));
    return Math.min(wanted, this.#traces(stream, hour, until));
  }

  #setLonglived(stream: Stream, hour: number, wanted: number): void {
    const longlived = Math.min(Math.max(0, wanted), this.#traces(stream, hour));
    this.#longlivedEdits.set(stream, hour, longlived - hourOf(this.#seededLonglived, stream, hour));
  }

  #applyDue(): void {
    const now = this.#options.now();
    const due = this.#pending.filter(({ from }) => from <= now);
    if (due.length === 0) return;
    // First, since a change counts.
    this.#pending = this.#pending.filter(({ from }) => from > now);
    for (const { change } of due) change();
  }

  #hourOf({ at }: Cell, traces: number): number {
    if (!Number.isSafeInteger(traces)) throw new RangeError(`${traces} is not a whole number of traces`);
    const hour = Math.floor(at / HOUR) * HOUR;
    if (hour >= this.dataStart) return hour;
    throw new RangeError(`${at} is before the data start ${new Date(this.dataStart).toISOString()}`);
  }
}

/** Seeded part of one row. */
function hourOf(upTo: UpTo, stream: Stream, hour: number, until = hour + HOUR): number {
  return upTo(stream, Math.min(hour + HOUR, until)) - upTo(stream, Math.min(hour, until));
}
