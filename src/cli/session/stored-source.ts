import { UsageError } from "../../errors.ts";

/** The one of these that is meant. Error: `source_unknown` where none has the slug, or several are there and none is named. */
export function storedSource<S extends { readonly source: string }>(
  stored: readonly S[],
  slug: string | undefined,
): S {
  const meant = slug === undefined ? stored : stored.filter(({ source }) => source === slug);
  const [first] = meant;
  if (first !== undefined && meant.length === 1) return first;
  throw new UsageError({
    code: "source_unknown",
    message:
      first === undefined
        ? `${slug === undefined ? "No source" : `Source ${slug}`} is stored.`
        : "Several sources are stored.",
    next:
      first === undefined
        ? "Run `usage-etl source list` to see the stored sources."
        : `Name one with --source: ${meant.map(({ source }) => source).join(", ")}.`,
  });
}
