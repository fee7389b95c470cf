import { HOUR_MS, STRIDE_MS } from "../time/stride.ts";
import type { Interval, Window } from "../time/window.ts";
import type { NumberedRow } from "./response-keys.ts";

export const DIGEST_BYTES = 16;
const LANES = 4;

/**
 * A digest of one scope's rows in a window: 128 bits for each bucket, in the order of the buckets. Each row is mixed as
 * MurmurHash3_x86_128 mixes a block. A bucket's digest is the sum of its rows in each 32-bit lane, so the order of rows does
 * not matter. Collisions can be constructed on purpose.
 */
export class WindowDigest {
  readonly #window: Window;
  readonly #bucketHours: number;
  readonly #lanes: Uint32Array;
  readonly #traced: Uint8Array;

  constructor(window: Window) {
    this.#window = window;
    this.#bucketHours = STRIDE_MS[window.stride] / HOUR_MS;
    const buckets = (window.end - window.start) / STRIDE_MS[window.stride];
    this.#lanes = new Uint32Array(buckets * LANES);
    this.#traced = new Uint8Array(buckets);
  }

  add({ id, bucketHour, traces }: NumberedRow): void {
    const high = Math.floor(traces / 2 ** 32);
    let h1 = mixed(id, 0x239b961b, 15, 0xab0e9789);
    let h2 = mixed(bucketHour, 0xab0e9789, 16, 0x38b34ae5);
    let h3 = mixed(traces | 0, 0x38b34ae5, 17, 0xa1e38b93);
    let h4 = mixed(high, 0xa1e38b93, 18, 0x239b961b);
    // Each lane depends on the lane before it.
    h1 = (Math.imul(rotated(h1, 19), 5) + 0x561ccd1b) | 0;
    h2 = (Math.imul((rotated(h2, 17) + h3) | 0, 5) + 0x0bcaa747) | 0;
    h3 = (Math.imul((rotated(h3, 15) + h4) | 0, 5) + 0x96cd1c35) | 0;
    h4 = (Math.imul((rotated(h4, 13) + h1) | 0, 5) + 0x32ac3b17) | 0;
    h1 = (h1 + h2 + h3 + h4) | 0;
    h2 = (h2 + h1) | 0;
    h3 = (h3 + h1) | 0;
    h4 = (h4 + h1) | 0;
    h1 = finished(h1);
    h2 = finished(h2);
    h3 = finished(h3);
    h4 = finished(h4);
    h1 = (h1 + h2 + h3 + h4) | 0;
    const bucket = (bucketHour - this.#window.start / HOUR_MS) / this.#bucketHours;
    if (traces > 0) this.#traced[bucket] = 1;
    const at = LANES * bucket;
    const lanes = this.#lanes;
    lanes[at] = (lanes[at] as number) + h1;
    lanes[at + 1] = (lanes[at + 1] as number) + h2 + h1;
    lanes[at + 2] = (lanes[at + 2] as number) + h3 + h1;
    lanes[at + 3] = (lanes[at + 3] as number) + h4 + h1;
  }

  traced(): Interval[] {
    const bucketMs = STRIDE_MS[this.#window.stride];
    const parts: Interval[] = [];
    for (let first = this.#traced.indexOf(1); first >= 0; first = this.#traced.indexOf(1, first)) {
      const next = this.#traced.indexOf(0, first);
      const after = next < 0 ? this.#traced.length : next;
      parts.push({
        start: this.#window.start + first * bucketMs,
        end: this.#window.start + after * bucketMs,
      });
      first = after;
    }
    return parts;
  }

  /** The bytes of a part of the window. Undefined unless the part consists of whole buckets. */
  of({ start, end }: Interval): Buffer | undefined {
    const bucketMs = STRIDE_MS[this.#window.stride];
    const [first, after] = [start, end].map((instant) => (instant - this.#window.start) / bucketMs);
    if (!Number.isInteger(first) || !Number.isInteger(after)) return undefined;
    const lanes = this.#lanes.subarray((first as number) * LANES, (after as number) * LANES);
    return Buffer.from(lanes.buffer, lanes.byteOffset, lanes.byteLength);
  }
}

function mixed(word: number, before: number, turn: number, after: number): number {
  return Math.imul(rotated(Math.imul(word, before), turn), after);
}

function rotated(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
}

/** A bijection in which each bit of the result depends on each bit of the word. */
function finished(word: number): number {
  let h = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
