const RANGES = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0x061c, 0x061c],
  [0x200e, 0x200f],
  [0x2028, 0x202e],
  [0x2066, 0x2069],
] as const;

export function controlsIn(text: string): number[] {
  return [...text]
    .map((one) => one.charCodeAt(0))
    .filter((code) => RANGES.some(([from, to]) => code >= from && code <= to));
}
