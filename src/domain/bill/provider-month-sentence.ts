import { METER_WORDS, type ProviderMeter } from "./provider-meter.ts";
import { PROVIDER_OUTCOMES, type ProviderOutcome } from "./provider-reading.ts";

interface ProviderFacts {
  readonly readAt: string | null;
  readonly refusal: string | null;
  readonly outcomes: readonly {
    readonly meter: ProviderMeter;
    readonly outcome: ProviderOutcome;
    readonly workspaces: number;
  }[];
  readonly changedSince: number;
}

/** What the billing provider's totals say of a month: what was compared and when, and what was not and why. */
export function describeProviderMonth(of: ProviderFacts): string {
  if (of.readAt === null) {
    return of.refusal === null
      ? "not compared with the billing provider: its totals were not read. `usage-etl totals --provider` reads them."
      : "not compared with the billing provider: the server does not show its totals to this key.";
  }
  // A meter that is not loaded is no part of what was asked for.
  const said = of.outcomes.filter(({ outcome }) => outcome !== "not_loaded");
  const parts = said.map(({ meter, outcome, workspaces }) => {
    const whose =
      workspaces === 0 ? "" : ` of ${workspaces} ${workspaces === 1 ? "workspace" : "workspaces"}`;
    const isCompared = outcome === "equal" || outcome === "differs";
    const what = isCompared
      ? outcome === "equal"
        ? "equal"
        : "DIFFERENT"
      : `not compared (${PROVIDER_OUTCOMES[outcome]})`;
    return `${METER_WORDS[meter]}${whose} ${what}`;
  });
  const since =
    of.changedSince === 0
      ? ""
      : ` Final counts of ${of.changedSince} ${of.changedSince === 1 ? "workspace" : "workspaces"} changed since, so compare again: \`usage-etl totals --provider\``;
  return `compared with the billing provider on ${of.readAt.slice(0, 10)}: ${parts.length === 0 ? "it holds nothing of this month" : parts.join("; ")}.${since}`;
}
