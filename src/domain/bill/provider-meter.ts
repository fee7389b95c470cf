/** What of the billing provider's totals can be compared: traces of all tiers, and those with extended retention. */
export const PROVIDER_METERS = ["traces", "longlived"] as const;
export type ProviderMeter = (typeof PROVIDER_METERS)[number];

/** In words. */
export const METER_WORDS: Readonly<Record<ProviderMeter, string>> = {
  traces: "traces",
  longlived: "extended traces",
};

/** Words that say nothing of what is counted. */
const FILLERS = new Set(["langsmith", "base", "charge", "charges", "data", "retention", "usage", "count"]);
const EXTENDED = new Set(["extended", "longlived", "upgrade", "upgrades"]);

/**
 * The meter that a billable metric counts, by its name (docs/platform.md, Bill): `LangSmith Traces (Base Charge)`, `LangSmith
 * Traces (Extended Data Retention Upgrades)`. Undefined for any other name: a metric that is guessed wrong would differ for ever.
 */
export function meterOfMetric(name: string | null): ProviderMeter | undefined {
  const words =
    (name ?? "")
      .toLowerCase()
      .replaceAll(/long[\s_-]lived/g, "longlived")
      .match(/[a-z0-9]+/g) ?? [];
  const said = words.filter((word) => !FILLERS.has(word));
  const rest = said.filter((word) => word !== "traces" && word !== "trace");
  if (rest.length === said.length) return undefined;
  if (rest.length === 0) return "traces";
  return rest.every((word) => EXTENDED.has(word)) ? "longlived" : undefined;
}
