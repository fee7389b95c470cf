import { between, Course, HOUR, type UpTo } from "./course.ts";
import { bucketOf, Edits } from "./edits.ts";
import type { Cell } from "./ledger.ts";
import { findStream, type Organisation, openStream, type Stream, untilOf } from "./organisation.ts";
import { unit } from "./random.ts";

export const deploymentMeasures = ["nodes_executed", "agent_runs", "agent_uptime_seconds"] as const;
export type DeploymentMeasure = (typeof deploymentMeasures)[number];

interface DeploymentLedgerOptions {
  readonly seed: number;
  readonly organisation: Organisation;
  /** Epoch ms, the start of a UTC day: deployment usage has a beginning of its own (docs/platform.md, Contracts). */
  readonly start: number;
  readonly now: () => number;
}

/**
 * What deployments used, in hourly rows, as the ledger of traces. Nothing follows from traces, and no measure from
 * another: a reader that mixes them up finds wrong sums. How they relate is our own.
 */
export class DeploymentLedger {
  readonly start: number;
  readonly #options: DeploymentLedgerOptions;
  readonly #seeded: Record<DeploymentMeasure, UpTo>;
  readonly #edits = {
    nodes_executed: new Edits(),
    agent_runs: new Edits(),
    agent_uptime_seconds: new Edits(),
  };

  constructor(options: DeploymentLedgerOptions) {
    const { seed, start } = options;
    this.start = start;
    this.#options = options;
    const course = new Course(seed + 15_485_863, start);
    const runs: UpTo = (stream, at) => course.upTo(stream, at);
    const nodesEach = (stream: Stream) => 2 + 9 * unit(seed, stream.index + 700_001, 0);
    this.#seeded = {
      agent_runs: runs,
      nodes_executed: (stream, at) => Math.floor(runs(stream, at) * nodesEach(stream)),
      agent_uptime_seconds: (stream, at) =>
        runs(stream, at) * (11 + (stream.index % 40)) + standby(stream, at, start),
    };
  }

  /** As of the ledger of traces, for one measure. */
  counts(stream: Stream, edges: readonly number[], measure: DeploymentMeasure): Float64Array {
    if (stream.project.dropped) return new Float64Array(Math.max(0, edges.length - 1));
    const until = untilOf(stream, this.#options.now());
    const hours = edges.map((edge) => Math.ceil(edge / HOUR) * HOUR);
    const upTo = this.#seeded[measure];
    const counts = between(upTo, stream, hours, until);
    for (const hour of this.#edits[measure].hours(stream)) {
      const i = hour < until ? bucketOf(hours, hour) : -1;
      const seeded = upTo(stream, Math.min(hour + HOUR, until)) - upTo(stream, hour);
      const change = Math.max(-seeded, this.#edits[measure].of(stream, hour));
      if (i >= 0) counts[i] = (counts[i] ?? 0) + change;
    }
    return counts;
  }

  /** One measure of one hourly row, now. */
  read(cell: Cell, measure: DeploymentMeasure): number {
    const stream = findStream(this.#streams, cell);
    const hour = Math.floor(cell.at / HOUR) * HOUR;
    return (stream && this.counts(stream, [hour, hour + HOUR], measure)[0]) ?? 0;
  }

  /** Changes one measure of one row by `delta`, never below 0. A row before the start throws. */
  change(cell: Cell, measure: DeploymentMeasure, delta: number): { before: number; after: number } {
    if (!Number.isSafeInteger(delta)) throw new RangeError(`delta ${delta} is not a whole number`);
    const hour = Math.floor(cell.at / HOUR) * HOUR;
    if (!(hour >= this.start)) {
      throw new RangeError(`${cell.at} is before the first usage ${new Date(this.start).toISOString()}`);
    }
    const stream = openStream(this.#streams, cell);
    const before = this.read(cell, measure);
    const upTo = this.#seeded[measure];
    const least = -(upTo(stream, hour + HOUR) - upTo(stream, hour));
    const edits = this.#edits[measure];
    edits.set(stream, hour, Math.max(least, edits.of(stream, hour) + delta));
    return { before, after: this.read(cell, measure) };
  }

  get #streams() {
    return { streams: this.#options.organisation.deploymentStreams };
  }
}

/** Seconds of the replicas that stand by whether anything runs or not; counted for nobody (our guess). */
function standby({ replicas, begins, ends }: Stream, at: number, start: number): number {
  const from = Math.max(start, begins * 24 * HOUR);
  const to = Math.min(at, ends * 24 * HOUR);
  return replicas * Math.max(0, Math.floor((to - from) / 1000));
}
