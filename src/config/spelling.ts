import { closest, distance } from "fastest-levenshtein";

/** The candidate that is at most three single-letter edits away and closest, for "did you mean". */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const candidate = closest(word, candidates);
  return candidate !== undefined && distance(word, candidate) <= 3 ? candidate : undefined;
}

/** The candidates that are spelled most like the word, the closest first. */
export function mostAlike(word: string, candidates: readonly string[], most: number): string[] {
  return candidates.toSorted((a, b) => distance(word, a) - distance(word, b)).slice(0, most);
}
