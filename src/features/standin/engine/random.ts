/** 32 bits mixed as in murmur3, so that neighbouring days are unrelated. */
function hash(a: number, b: number, c: number): number {
  let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13) ^ b, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16) ^ c, 0x27d4eb2f);
  h = Math.imul(h ^ (h >>> 15), 0x85ebca6b);
  return (h ^ (h >>> 13)) >>> 0;
}

/** In [0, 1), from these integers alone, whatever was called before. */
export function unit(a: number, b: number, c: number): number {
  return hash(a, b, c) / 2 ** 32;
}

export type Dice = ReturnType<typeof dice>;

/** A sequence from the seed alone (mulberry32). */
export function dice(seed: number) {
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
    if (item === undefined) throw new Error("pick: the list is empty");
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
    return hex.join("").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  };
  return { next, below, pick, some, uuid };
}
