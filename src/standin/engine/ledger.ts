import { findStream, type Organisation, openStream, type Sender, type Stream } from "./organisation.ts";
import { tracesByHour, tracesOfDay } from "./rhythm.ts";

/**
 * All traces in hourly rows: the seeded history, and what was added or restated since. Every answer, in any dimension,
 * stride and format, is a sum of these rows, so all answers agree.
 */
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

export interface Cell extends Sender {
  /** Any instant of the hour, epoch ms. */
  readonly at: number;
}

interface LedgerOptions {
  readonly seed: number;
  readonly organisation: Organisation;
  /** Epoch ms, the start of a UTC day; no usage before it. */
  readonly dataStart: number;
  readonly now: () => number;
}

export class Ledger {
  readonly dataStart: number;
  readonly #options: LedgerOptions;
  /** By stream: traces from the data start to the start of each day, computed as far as asked. */
  readonly #sums = new Map<Stream, number[]>();
  /** By stream and hour: difference from the seeded history. */
  readonly #edits = new Map<Stream, Map<number, number>>();
  /** Changes that show from an instant on. */
  #pending: { readonly cell: Cell; readonly delta: number; readonly from: number }[] = [];

  constructor(options: LedgerOptions) {
    this.dataStart = options.dataStart;
    this.#options = options;
  }

  /**
   * Traces of a stream between neighbouring `edges` (ascending, epoch ms): one number fewer than edges. A row counts
   * where its hour begins (our guess), so adjacent ranges count nothing twice.
   */
  counts(stream: Stream, edges: readonly number[]): Float64Array {
    this.#applyDue();
    const counts = new Float64Array(Math.max(0, edges.length - 1));
    if (stream.project.dropped) return counts;
    const until = this.#until(stream);
    const hours = edges.map((edge) => Math.ceil(edge / HOUR) * HOUR);
    let before = this.#seeded(stream, hours[0] ?? 0, until);
    for (let i = 0; i < counts.length; i++) {
      const upTo = this.#seeded(stream, hours[i + 1] ?? 0, until);
      counts[i] = upTo - before;
      before = upTo;
    }
    for (const [hour, delta] of this.#edits.get(stream) ?? []) {
      if (hour >= until) continue;
      const i = hours.findIndex((from, at) => hour >= from && hour < (hours[at + 1] ?? from));
      if (i >= 0) counts[i] = (counts[i] ?? 0) + Math.max(delta, -this.#seededHour(stream, hour, until));
    }
    return counts;
  }

  /** Traces of one hourly row, now. */
  read(cell: Cell): number {
    const stream = findStream(this.#options.organisation, cell);
    const hour = Math.floor(cell.at / HOUR) * HOUR;
    return (stream && this.counts(stream, [hour, hour + HOUR])[0]) ?? 0;
  }

  /**
   * Changes one row by `delta`, never below 0: late arrivals, traffic, restatements. A future row shows when the clock
   * reaches its hour. A row before the data start throws.
   */
  change(cell: Cell, delta: number): { before: number; after: number } {
    const hour = Math.floor(cell.at / HOUR) * HOUR;
    if (!Number.isSafeInteger(delta)) throw new RangeError(`delta ${delta} is not a whole number of traces`);
    if (!(hour >= this.dataStart)) {
      throw new RangeError(`${cell.at} is before the data start ${new Date(this.dataStart).toISOString()}`);
    }
    const stream = openStream(this.#options.organisation, cell);
    const before = this.read(cell);
    const edits = this.#edits.get(stream) ?? new Map<number, number>();
    this.#edits.set(stream, edits);
    const least = -this.#seededHour(stream, hour, Number.POSITIVE_INFINITY);
    edits.set(hour, Math.max(least, (edits.get(hour) ?? 0) + delta));
    return { before, after: this.read(cell) };
  }

  /** The same change, which shows from an instant on. */
  changeLater(cell: Cell, delta: number, from: number): void {
    // Its stream is known at once, so that an answer looks for it.
    openStream(this.#options.organisation, cell);
    this.#pending.push({ cell, delta, from });
  }

  #applyDue(): void {
    const now = this.#options.now();
    const due = this.#pending.filter(({ from }) => from <= now);
    if (due.length === 0) return;
    // First, since a change counts.
    this.#pending = this.#pending.filter(({ from }) => from > now);
    for (const { cell, delta } of due) this.change(cell, delta);
  }

  /** Usage exists up to now, and in a deleted workspace up to its deletion. */
  #until(stream: Stream): number {
    return Math.min(this.#options.now(), stream.project.workspace.deletedAt ?? Number.POSITIVE_INFINITY);
  }

  #seededHour(stream: Stream, hour: number, until: number): number {
    return this.#seeded(stream, hour + HOUR, until) - this.#seeded(stream, hour, until);
  }

  /** Seeded traces from the data start to `at` or `until`, whichever is earlier. */
  #seeded(stream: Stream, at: number, until: number): number {
    const to = Math.min(at, until);
    if (stream.weight === 0 || to <= this.dataStart) return 0;
    const day = Math.floor(to / DAY);
    const sum = this.#sumTo(stream, day);
    const hours = (to - day * DAY) / HOUR;
    if (hours === 0) return sum;
    const ofDay = this.#sumTo(stream, day + 1) - sum;
    return sum + tracesByHour(this.#options.seed, stream, day, hours, ofDay);
  }

  #sumTo(stream: Stream, day: number): number {
    const first = this.dataStart / DAY;
    const sums = this.#sums.get(stream) ?? [0];
    this.#sums.set(stream, sums);
    for (let n = sums.length; n <= day - first; n++) {
      sums.push((sums[n - 1] ?? 0) + tracesOfDay(this.#options.seed, stream, first + n - 1));
    }
    return sums[day - first] ?? 0;
  }
}
