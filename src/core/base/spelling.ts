import { closest, distance } from "fastest-levenshtein";

export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const candidate = closest(word, candidates);
  return candidate !== undefined && distance(word, candidate) <= 3 ? candidate : undefined;
}

export function didYouMean(word: string, candidates: readonly string[]): string {
  const near = nearest(word, candidates);
  return near === undefined ? "" : `; did you mean ${near}?`;
}

export function mostAlike(word: string, candidates: readonly string[], most: number): string[] {
  return candidates.toSorted((a, b) => distance(word, a) - distance(word, b)).slice(0, most);
}
