import fc from "fast-check";
import { expect, test } from "vitest";
import { HOUR_MS, STRIDE_MS, STRIDES } from "../../../../../src/core/domain/time/stride.ts";
import type { Window } from "../../../../../src/core/domain/time/window.ts";
import { DIGEST_BYTES, WindowDigest } from "../../../../../src/core/domain/usage/digest.ts";

const START = Date.parse("2026-01-05T00:00:00Z");
const BUCKETS = 4;

type Row = readonly [id: number, bucket: number, traces: number];
const row: fc.Arbitrary<Row> = fc.tuple(
  fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 2 ** 31 - 1 })),
  fc.nat(BUCKETS - 1),
  fc.oneof(fc.nat(3), fc.maxSafeNat()),
);
const rows = fc.uniqueArray(row, { selector: ([id, bucket]) => `${id} ${bucket}`, maxLength: 12 });
const stride = fc.constantFrom(...STRIDES);

function digestOf(all: readonly Row[], window: Window): WindowDigest {
  const digest = new WindowDigest(window);
  for (const [id, bucket, traces] of all) {
    digest.add({ id, bucketHour: (window.start + bucket * STRIDE_MS[window.stride]) / HOUR_MS, traces });
  }
  return digest;
}
const windowOf = (one: Window["stride"]) => ({
  stride: one,
  start: START,
  end: START + BUCKETS * STRIDE_MS[one],
});
const whole = (all: readonly Row[], window: Window) => digestOf(all, window).of(window)?.toString("hex");

test("the same rows have the same digest in any order, and other rows another one", () => {
  fc.assert(
    fc.property(rows, rows, stride, (some, others, one) => {
      const window = windowOf(one);
      const sorted = (all: readonly Row[]) => all.map(String).sort().join();
      expect(whole(some.toReversed(), window)).toBe(whole(some, window));
      expect(whole(some, window) === whole(others, window)).toBe(sorted(some) === sorted(others));
    }),
  );
});

test("a row more, less, moved or counted differently changes the digest of its buckets, and of no other", () => {
  fc.assert(
    fc.property(rows, row, stride, (some, [id, bucket, traces], one) => {
      const window = windowOf(one);
      const without = some.filter(([otherId, otherBucket]) => otherId !== id || otherBucket !== bucket);
      const [before, after] = [
        digestOf(without, window),
        digestOf([...without, [id, bucket, traces]], window),
      ];
      for (let at = 0; at < BUCKETS; at++) {
        const part = { start: START + at * STRIDE_MS[one], end: START + (at + 1) * STRIDE_MS[one] };
        expect(before.of(part)?.equals(after.of(part) as Buffer)).toBe(at !== bucket);
        expect(after.of(part)).toHaveLength(DIGEST_BYTES);
      }
    }),
  );
});

test("a bucket without rows has zeros, one with a zero does not, and a part of a bucket has no digest", () => {
  const window = windowOf("day");
  expect(whole([], window)).toBe("0".repeat(2 * DIGEST_BYTES * BUCKETS));
  expect(whole([[1, 0, 0]], window)).not.toBe(whole([], window));
  expect(digestOf([], window).of({ start: START + HOUR_MS, end: window.end })).toBeUndefined();
});

test("counts that differ beyond their first 32 bits have other digests", () => {
  const window = windowOf("day");
  const counts = [0, 1, 2 ** 20].flatMap((high) => [0, 5].map((low) => high * 2 ** 32 + low));
  expect(new Set(counts.map((traces) => whole([[1, 0, traces]], window))).size).toBe(counts.length);
});
