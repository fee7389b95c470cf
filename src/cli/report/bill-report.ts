import { METER_WORDS, PROVIDER_OUTCOMES, type ProviderOutcome } from "../../domain/bill/provider.ts";
import type { ProviderResult, ReadBill } from "../../pipeline/bill/read-bill.ts";
import type { ReadPart } from "../../pipeline/bill/read-terms.ts";
import { EXIT } from "../session/exit.ts";
import { instant, table } from "./output.ts";

/** Totals of a meter that nothing was said about: the comparison is not complete. */
const NOT_COMPARED: readonly ProviderOutcome[] = [
  "not_final",
  "unknown_value",
  "other_period",
  "not_whole",
  "several_metrics",
  "no_metric",
];

const SHOWN = 50;

type Total = ProviderResult["months"][number]["totals"][number];

/** Limits and periods are read beside it. That the key may not is no fault of the comparison. */
export function exitOfBill({ provider, failed: parts }: ReadBill): number {
  if (provider === undefined || parts.length > 0) return EXIT.partlyFailed;
  const { refusal, failed, findings } = provider;
  if (refusal !== null) return EXIT.refused;
  if (failed.length > 0) return EXIT.partlyFailed;
  if (findings.length > 0) return EXIT.mismatch;
  const totals = provider.months.flatMap((month) => month.totals);
  return totals.some((one) => one.meter === "traces" && NOT_COMPARED.includes(one.outcome))
    ? EXIT.partlyFailed
    : EXIT.done;
}

/** What `--json` shows: every total that was read, also those that are not compared. */
export function billToData({ provider, limits, period, failed: parts }: ReadBill) {
  const terms = { usageLimits: limits ?? null, billingPeriod: period ?? null, failedParts: parts };
  if (provider === undefined) return terms;
  const { refusal, months, findings, failed, requests, restated } = provider;
  const totals = months.flatMap(({ month, totals: all }) =>
    all.map(({ metricId, metricName, meter, workspaceId, value, outcome, storedTraces }) => ({
      ...{ month, meter, workspaceId, value, outcome, storedTraces, metricId, metricName },
    })),
  );
  return { refusal, requests, restated, differences: findings.length, findings, failed, totals, ...terms };
}

export function describeBill(source: string, bill: ReadBill): string {
  const { provider, limits, period, failed } = bill;
  const terms = [
    ...failed.map(({ part, code, message }) => `not read: ${part.replace("_", " ")}: ${message} [${code}]`),
    ...(limits === undefined ? [] : [describePart("usage limits", limits)]),
    ...(period === undefined ? [] : [describePart("billing period", period)]),
  ];
  return [...(provider === undefined ? [] : [describeProvider(source, provider)]), ...terms].join("\n");
}

function describePart(what: string, { read, refusal }: ReadPart): string {
  if (refusal !== null) return `${what}: refused to this key. ${refusal}`;
  return `${what}: ${read} read`;
}

function describeProvider(source: string, provider: ProviderResult): string {
  const { refusal, months, findings, failed, requests, restated } = provider;
  if (refusal !== null) {
    return `${source}: the server does not show the billing provider's totals to this key, so no month was compared. ${refusal}`;
  }
  const totals = months.flatMap((month) => month.totals.map((one) => ({ ...one, month: month.month })));
  const of = (outcome: ProviderOutcome) => totals.filter((one) => one.outcome === outcome);
  const lines = [
    `${source}: ${requests} requests compared ${of("equal").length + of("differs").length} totals (months x workspaces x meters). ` +
      `${of("equal").length} are equal, ${findings.length} differ. ${restated} counts restated.`,
  ];
  if (findings.length > 0) {
    const rows = findings
      .slice(0, SHOWN)
      .map((f) => [
        instant(f.start).slice(0, 7),
        f.workspaceId,
        f.meter === "traces" ? "all" : "extended",
        f.storedTraces,
        f.controlTraces,
      ]);
    lines.push(table(["month", "workspace", "tier", "stored", "provider"], rows));
    lines.push("Nothing was changed: ask the platform which number it bills.");
  }
  if (findings.length > SHOWN) {
    lines.push(`... and ${findings.length - SHOWN} more in reporting.usage_reconciliation`);
  }
  for (const { month, code, message } of failed) lines.push(`not compared: ${month}: ${message} [${code}]`);
  return [...lines, ...notesOf(totals)].join("\n");
}

/** One line for each reason, meter or metric: what is not compared, and why. */
function notesOf(totals: readonly (Total & { month: string })[]): string[] {
  const left = totals.filter(
    ({ outcome }) => !["equal", "differs", "sum_of_workspaces", "not_loaded"].includes(outcome),
  );
  const groups = Map.groupBy(left, ({ outcome, meter, metricName }) =>
    JSON.stringify([outcome, meter, meter === null ? metricName : null]),
  );
  return [...groups.values()].map((some) => {
    const [{ outcome, meter, metricName, metricId }] = some as [(typeof some)[number]];
    const months = [...new Set(some.map((one) => one.month))].sort();
    const ids = [...new Set(some.flatMap(({ workspaceId }) => workspaceId ?? []))];
    const when = months.length === 1 ? months[0] : `${months[0]} to ${months.at(-1)}`;
    const what = meter === null ? `metric ${JSON.stringify(metricName ?? metricId)}` : METER_WORDS[meter];
    const whose =
      ids.length === 0 ? "" : ids.length > 3 ? `, ${ids.length} workspaces` : `, ${ids.join(", ")}`;
    return `not compared: ${what}, ${when}${whose}: ${PROVIDER_OUTCOMES[outcome]}`;
  });
}
