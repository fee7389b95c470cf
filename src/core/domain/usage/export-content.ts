import { HOUR_MS, STRIDE_MS } from "../time/stride.ts";
import type { Window } from "../time/window.ts";
import { rotated } from "./digest.ts";
import type { NumberedRow } from "./response-keys.ts";

interface BucketContent {
  readonly records: number;
  readonly traces: number;
  /** Signed 64 bits: exclusive or of the hashes of the records. */
  readonly hash: bigint;
}

export interface ContentKey {
  readonly workspace: number;
  /** 64 bits of a hash of id and measure: the high and the low word. */
  readonly seed: readonly [high: number, low: number];
}

/** Above this, two amounts may have the same Postgres hash, so the bucket is not compared by hash. */
const MOST_TRACES = 2 ** 32 - 1;
/** Initial state of Postgres's hash functions for a value of 4 bytes. */
const INITIAL = (0x9e3779b9 + 4 + 3923095) | 0;
const WORDS = 4;

/**
 * Condenses an export by bucket and workspace into words that Postgres computes from stored records
 * (store/proof/compare-export.ts), so that only unequal buckets are compared record by record. A record's hash is Postgres's
 * `hashint8extended(traces, seed)` with the seed of its key. A bucket with a key twice has more records than are stored, so
 * it is compared record by record.
 */
export class ExportContent {
  readonly #window: Window;
  readonly #bucketHours: number;
  readonly #buckets: number;
  readonly #records: Float64Array;
  readonly #traces: Float64Array;
  /** Two words by workspace and bucket, high and low. */
  readonly #hashes: Int32Array;
  readonly #unknown: Uint8Array;
  /** Four words by key number: three with which its hash begins, and its workspace plus one (0 if the key is new). */
  #seeds = new Int32Array(WORDS * 1024);

  constructor(window: Window, workspaces: number) {
    this.#window = window;
    this.#bucketHours = STRIDE_MS[window.stride] / HOUR_MS;
    this.#buckets = (window.end - window.start) / STRIDE_MS[window.stride];
    const all = this.#buckets * workspaces;
    this.#records = new Float64Array(all);
    this.#traces = new Float64Array(all);
    this.#hashes = new Int32Array(2 * all);
    this.#unknown = new Uint8Array(all);
  }

  /** `keyOf` is called for a new key only. */
  add({ id, bucketHour, traces }: NumberedRow, keyOf: (id: number) => ContentKey): void {
    if (traces === 0) return;
    const seed = id * WORDS;
    if ((this.#seeds[seed + 3] ?? 0) === 0) this.#create(id, keyOf(id));
    const seeds = this.#seeds;
    const bucket = (bucketHour - this.#window.start / HOUR_MS) / this.#bucketHours;
    const at = ((seeds[seed + 3] as number) - 1) * this.#buckets + bucket;
    if (traces > MOST_TRACES) this.#unknown[at] = 1;
    this.#records[at] = (this.#records[at] as number) + 1;
    this.#traces[at] = (this.#traces[at] as number) + traces;
    const [high, low] = finished(
      ((seeds[seed] as number) + traces) | 0,
      seeds[seed + 1] as number,
      seeds[seed + 2] as number,
    );
    const hashes = this.#hashes;
    hashes[2 * at] = (hashes[2 * at] as number) ^ high;
    hashes[2 * at + 1] = (hashes[2 * at + 1] as number) ^ low;
  }

  *hours(): Generator<number, void, undefined> {
    for (let i = 0; i < this.#buckets; i++) yield this.#window.start / HOUR_MS + i * this.#bucketHours;
  }

  /** Undefined if other records could have the same content. */
  of(workspace: number, bucketHour: number): BucketContent | undefined {
    const at = workspace * this.#buckets + (bucketHour - this.#window.start / HOUR_MS) / this.#bucketHours;
    if (this.#unknown[at] === 1) return undefined;
    const [high, low] = [this.#hashes[2 * at] as number, this.#hashes[2 * at + 1] as number];
    return {
      records: this.#records[at] as number,
      traces: this.#traces[at] as number,
      hash: (BigInt(high) << 32n) | BigInt(low >>> 0),
    };
  }

  #create(id: number, { workspace, seed }: ContentKey): void {
    if ((id + 1) * WORDS > this.#seeds.length) {
      const words = 2 * Math.max(this.#seeds.length, (id + 1) * WORDS);
      // `transfer` frees the old memory at once; a copy would leave it to a later collection.
      this.#seeds = new Int32Array(this.#seeds.buffer.transfer(words * 4));
    }
    this.#seeds.set([...begun(...seed), workspace + 1], id * WORDS);
  }
}

/** Postgres's `hash_bytes_uint32_extended` (Bob Jenkins's lookup3) before the value is added. A seed of 0 is not mixed in. */
function begun(high: number, low: number): [number, number, number] {
  let [a, b, c] = [INITIAL, INITIAL, INITIAL];
  if (high === 0 && low === 0) return [a, b, c];
  a = (a + high) | 0;
  b = (b + low) | 0;
  a = ((a - c) | 0) ^ rotated(c, 4);
  c = (c + b) | 0;
  b = ((b - a) | 0) ^ rotated(a, 6);
  a = (a + c) | 0;
  c = ((c - b) | 0) ^ rotated(b, 8);
  b = (b + a) | 0;
  a = ((a - c) | 0) ^ rotated(c, 16);
  c = (c + b) | 0;
  b = ((b - a) | 0) ^ rotated(a, 19);
  a = (a + c) | 0;
  c = ((c - b) | 0) ^ rotated(b, 4);
  b = (b + a) | 0;
  return [a, b, c];
}

/** Ends that function: returns the high and the low word of the hash. */
function finished(first: number, second: number, third: number): [high: number, low: number] {
  let [a, b, c] = [first, second, third];
  c = ((c ^ b) - rotated(b, 14)) | 0;
  a = ((a ^ c) - rotated(c, 11)) | 0;
  b = ((b ^ a) - rotated(a, 25)) | 0;
  c = ((c ^ b) - rotated(b, 16)) | 0;
  a = ((a ^ c) - rotated(c, 4)) | 0;
  b = ((b ^ a) - rotated(a, 14)) | 0;
  c = ((c ^ b) - rotated(b, 24)) | 0;
  return [b, c];
}
