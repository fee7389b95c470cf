import { closest, distance } from "fastest-levenshtein";

/** The candidate that is at most three single-letter edits away and closest, for "did you mean". */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const candidate = closest(word, candidates);
  return candidate !== undefined && distance(word, candidate) <= 3 ? candidate : undefined;
}
