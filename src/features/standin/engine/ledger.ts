import { findStream, type Organisation, openStream, type Sender, type Stream } from "./organisation.ts";
import { unit } from "./random.ts";
import { HOUR, LonglivedTrend, Trend } from "./trend.ts";

/** All usage is in hourly rows. Each response is a sum of these rows, so all responses agree. */
export interface Cell extends Sender {
  readonly at: number;
}

export type TraceTier = "longlived" | "shortlived";

export const deploymentMeasures = ["nodes_executed", "agent_runs", "agent_uptime_seconds"] as const;
export type DeploymentMeasure = (typeof deploymentMeasures)[number];

export interface Changed {
  readonly before: number;
  readonly after: number;
}

export interface LedgerOptions {
  readonly seed: number;
  readonly organisation: Organisation;
  /** Start of a UTC day. */
  readonly start: number;
  readonly now: () => number;
}

export interface LedgerRange {
  /** Default: all. */
  readonly workspaceId?: string | undefined;
  /** A row counts where it begins (our guess), so adjacent ranges count no row twice. */
  readonly start: number;
  readonly end: number;
}

/** Throws for an instant before the start, and for a fraction as `amount`. */
export function hourOf(start: number, at: number, amount: number): number {
  if (!Number.isSafeInteger(amount)) throw new RangeError(`${amount} is not a whole number`);
  const hour = Math.floor(at / HOUR) * HOUR;
  if (hour >= start) return hour;
  throw new RangeError(`${at} is before the data start ${new Date(start).toISOString()}`);
}

export class Ledger {
  readonly start: number;
  readonly #streams: Stream[];
  readonly #now: () => number;
  readonly #traces: Rows;
  readonly #longlived: Rows;
  #pending: { readonly cell: Cell; readonly from: number }[] = [];

  constructor({ seed, organisation, start, now }: LedgerOptions) {
    this.start = start;
    this.#streams = organisation.streams;
    this.#now = now;
    const trend = new Trend(seed, start);
    const longlived = new LonglivedTrend(seed, trend, now);
    this.#traces = new Rows((stream, at) => trend.upTo(stream, at));
    this.#longlived = new Rows((stream, at) => longlived.upTo(stream, at), this.#traces);
  }

  /** Traces between neighbouring `edges` (ascending). A row counts where its hour begins (our guess). `tier` null: both. */
  counts(stream: Stream, edges: readonly number[], tier: TraceTier | null = null): Float64Array {
    this.#applyDue();
    const now = this.#now();
    if (tier === "longlived") return this.#longlived.counts(stream, edges, now);
    const all = this.#traces.counts(stream, edges, now);
    if (tier === null) return all;
    const longlived = this.#longlived.counts(stream, edges, now);
    return all.map((traces, i) => traces - (longlived[i] ?? 0));
  }

  read(cell: Cell, tier: "longlived" | null = null): number {
    this.#applyDue();
    return rowOf(tier === null ? this.#traces : this.#longlived, this.#streams, cell, this.#now());
  }

  /**
   * Changes one row, never below 0. A future row shows at its hour. Takes short-lived traces away first. Throws for a row
   * before the data start.
   */
  change(cell: Cell, delta: number, tier: TraceTier = "shortlived"): Changed {
    const hour = hourOf(this.start, cell.at, delta);
    const stream = openStream(this.#streams, cell);
    const before = this.read(cell);
    const traces = this.#traces.of(stream, hour);
    const longlived = this.#longlived.of(stream, hour);
    const after = Math.max(0, traces + delta);
    this.#traces.set(stream, hour, after);
    this.#longlived.set(stream, hour, longlived + (tier === "longlived" ? after - traces : 0));
    return { before, after: this.read(cell) };
  }

  addLater(cell: Cell, from: number): void {
    // Opened at once, so that responses include the stream.
    openStream(this.#streams, cell);
    this.#pending.push({ cell, from });
  }

  /**
   * Makes at most `traces` of one row long-lived, and returns all long-lived traces of the row. Traces stay in the hour of
   * receipt (our guess).
   */
  upgrade(cell: Cell, traces: number): Changed {
    const hour = hourOf(this.start, cell.at, traces);
    const before = this.read(cell, "longlived");
    const stream = findStream(this.#streams, cell);
    if (stream === undefined || this.#now() < hour) return { before, after: before };
    this.#longlived.set(stream, hour, this.#longlived.of(stream, hour) + Math.max(0, traces));
    return { before, after: this.read(cell, "longlived") };
  }

  #applyDue(): void {
    const now = this.#now();
    const due = this.#pending.filter(({ from }) => from <= now);
    if (due.length === 0) return;
    // First, because `change` calls this method again.
    this.#pending = this.#pending.filter(({ from }) => from > now);
    for (const { cell } of due) this.change(cell, 1);
  }
}

/**
 * No measure is proportional to another one, so mixing up two gives a wrong sum (our own). Start: docs/platform.md, Contracts.
 */
export class DeploymentLedger {
  readonly start: number;
  readonly #streams: Stream[];
  readonly #now: () => number;
  readonly #rows: Readonly<Record<DeploymentMeasure, Rows>>;

  constructor({ seed, organisation, start, now }: LedgerOptions) {
    this.start = start;
    this.#streams = organisation.deploymentStreams;
    this.#now = now;
    const trend = new Trend(seed + 15_485_863, start);
    const nodesEach = (stream: Stream) => 2 + 9 * unit(seed, stream.index + 700_001, 0);
    const secondsEach = (stream: Stream) => 11 + (stream.index % 40);
    this.#rows = {
      agent_runs: new Rows((stream, at) => trend.upTo(stream, at)),
      nodes_executed: new Rows((stream, at) => Math.floor(trend.upTo(stream, at) * nodesEach(stream))),
      agent_uptime_seconds: new Rows(
        (stream, at) => trend.upTo(stream, at) * secondsEach(stream) + standby(stream, at, start),
      ),
    };
  }

  counts(stream: Stream, edges: readonly number[], measure: DeploymentMeasure): Float64Array {
    return this.#rows[measure].counts(stream, edges, this.#now());
  }

  /** Changes one row, never below 0. Throws for a row before the start. */
  change(cell: Cell, measure: DeploymentMeasure, delta: number): Changed {
    const hour = hourOf(this.start, cell.at, delta);
    const stream = openStream(this.#streams, cell);
    const rows = this.#rows[measure];
    const read = () => rowOf(rows, this.#streams, cell, this.#now());
    const before = read();
    rows.set(stream, hour, rows.of(stream, hour) + delta);
    return { before, after: read() };
  }
}

function rowOf(rows: Rows, streams: readonly Stream[], cell: Cell, now: number): number {
  const stream = findStream(streams, cell);
  const hour = Math.floor(cell.at / HOUR) * HOUR;
  return (stream && rows.counts(stream, [hour, hour + HOUR], now)[0]) ?? 0;
}

/** Seconds of idle replicas, which belong to no user or key (our guess). */
function standby({ replicas, begins, ends }: Stream, at: number, start: number): number {
  const from = Math.max(start, begins * 24 * HOUR);
  const to = Math.min(at, ends * 24 * HOUR);
  return replicas * Math.max(0, Math.floor((to - from) / 1000));
}

/** Sum from the start to an instant. Never falls. */
type UpTo = (stream: Stream, at: number) => number;

class Rows {
  readonly #seeded: UpTo;
  /** No row exceeds the row of `whole`. */
  readonly #whole: Rows | undefined;
  /** Changes of the seeded history by stream and hour (epoch ms). */
  readonly #edits = new Map<Stream, Map<number, number>>();

  constructor(seeded: UpTo, whole?: Rows) {
    this.#seeded = seeded;
    this.#whole = whole;
  }

  /** The row as of `until`. Default: the end of its hour. */
  of(stream: Stream, hour: number, until?: number): number {
    const count = this.#seededIn(stream, hour, until) + (this.#edits.get(stream)?.get(hour) ?? 0);
    return this.#within(count, stream, hour, until);
  }

  set(stream: Stream, hour: number, wanted: number): void {
    const edits = this.#edits.get(stream) ?? new Map<number, number>();
    const count = this.#within(wanted, stream, hour);
    this.#edits.set(stream, edits.set(hour, count - this.#seededIn(stream, hour)));
  }

  counts(stream: Stream, edges: readonly number[], now: number): Float64Array {
    const counts = new Float64Array(Math.max(0, edges.length - 1));
    if (stream.project.dropped) return counts;
    // A deleted workspace has usage until its deletion.
    const until = Math.min(now, stream.project.workspace.deletedAt ?? now);
    const hours = edges.map((edge) => Math.ceil(edge / HOUR) * HOUR);
    const sums = hours.map((hour) => this.#seeded(stream, Math.min(hour, until)));
    for (let i = 0; i < counts.length; i++) counts[i] = (sums[i + 1] ?? 0) - (sums[i] ?? 0);
    for (const hour of this.#edited(stream)) {
      const i = hour < until ? bucketOf(hours, hour) : -1;
      const change = this.of(stream, hour, until) - this.#seededIn(stream, hour, until);
      if (i >= 0) counts[i] = (counts[i] ?? 0) + change;
    }
    return counts;
  }

  #within(count: number, stream: Stream, hour: number, until?: number): number {
    const most = this.#whole?.of(stream, hour, until) ?? Number.POSITIVE_INFINITY;
    return Math.min(Math.max(0, count), most);
  }

  #edited(stream: Stream): Set<number> {
    const ofWhole = this.#whole === undefined ? [] : this.#whole.#edited(stream);
    return new Set([...(this.#edits.get(stream)?.keys() ?? []), ...ofWhole]);
  }

  #seededIn(stream: Stream, hour: number, until = hour + HOUR): number {
    return this.#seeded(stream, Math.min(hour + HOUR, until)) - this.#seeded(stream, Math.min(hour, until));
  }
}

/** -1: outside of the edges, which ascend. */
export function bucketOf(edges: readonly number[], at: number): number {
  return edges.findIndex((from, i) => at >= from && at < (edges[i + 1] ?? from));
}
