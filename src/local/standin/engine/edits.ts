import type { Stream } from "./organisation.ts";

/** By stream and hour (epoch ms): difference from the seeded history. */
export class Edits {
  readonly #edits = new Map<Stream, Map<number, number>>();

  of(stream: Stream, hour: number): number {
    return this.#edits.get(stream)?.get(hour) ?? 0;
  }

  set(stream: Stream, hour: number, difference: number): void {
    const edits = this.#edits.get(stream) ?? new Map<number, number>();
    this.#edits.set(stream, edits.set(hour, difference));
  }

  hours(stream: Stream): Iterable<number> {
    return this.#edits.get(stream)?.keys() ?? [];
  }
}

/** Index of the bucket that holds an instant, -1 outside; edges ascend. */
export function bucketOf(edges: readonly number[], at: number): number {
  return edges.findIndex((from, i) => at >= from && at < (edges[i + 1] ?? from));
}
