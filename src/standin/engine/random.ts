/**
 * Seeded randomness. Two kinds, because they serve two ends: `hash` gives the same number for the same place at
 * any time and in any order (the history), `dice` gives a sequence (building the organisation, fault rates).
 */

/** A 32-bit hash of three integers; murmur3's mixing, so that neighbouring days share nothing. */
function hash(a: number, b: number, c: number): number {
  let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13) ^ b, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16) ^ c, 0x27d4eb2f);
  h = Math.imul(h ^ (h >>> 15), 0x85ebca6b);
  return (h ^ (h >>> 13)) >>> 0;
}

/** The hash as a number in [0, 1). */
export function unit(a: number, b: number, c: number): number {
  return hash(a, b, c) / 2 ** 32;
}

export interface Dice {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform in 0 .. n-1. */
  below(n: number): number;
  pick<T>(from: readonly T[]): T;
  /** `count` different items, fewer when there are fewer. */
  some<T>(from: readonly T[], count: number): T[];
  /** A version 4 UUID. */
  uuid(): string;
}

/** A sequence that depends on the seed alone (mulberry32). */
export function dice(seed: number): Dice {
  let state = hash(seed, 1, 2);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number): number => Math.floor(next() * n);
  const pick = <T>(from: readonly T[]): T => {
    const item = from[below(from.length)];
    if (item === undefined) throw new Error("pick: nothing to pick from");
    return item;
  };
  const some = <T>(from: readonly T[], count: number): T[] => {
    const left = [...from];
    const taken: T[] = [];
    while (taken.length < count && left.length > 0) taken.push(...left.splice(below(left.length), 1));
    return taken;
  };
  const uuid = (): string => {
    const hex = Array.from({ length: 32 }, () => below(16).toString(16));
    hex[12] = "4";
    hex[16] = (8 + below(4)).toString(16);
    const text = hex.join("");
    return [8, 12, 16, 20, 32].map((end, i) => text.slice([0, 8, 12, 16, 20][i], end)).join("-");
  };
  return { next, below, pick, some, uuid };
}
