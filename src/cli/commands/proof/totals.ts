import { type Command, Option } from "commander";
import { METER_WORDS } from "../../../domain/bill/provider-meter.ts";
import { PROVIDER_OUTCOMES, type ProviderOutcome } from "../../../domain/bill/provider-reading.ts";
import { REACHES, type Reach } from "../../../domain/planning/control.ts";
import { METER_NAME, meterFlags } from "../../../domain/usage/meter.ts";
import { numberName } from "../../../domain/usage/number-name.ts";
import { shownId } from "../../../domain/usage/record.ts";
import type { ProviderResult } from "../../../pipeline/bill/check-provider.ts";
import { type ReadBill, readBill } from "../../../pipeline/bill/read-bill.ts";
import type { ReadPart } from "../../../pipeline/bill/read-terms.ts";
import { checkTotals, type TotalsResult } from "../../../pipeline/proof/check-totals.ts";
import { dimensionText } from "../../report/load-report.ts";
import { instant, table } from "../../report/output.ts";
import { EXIT } from "../../session/exit.ts";
import { inSession, type Session } from "../../session/session.ts";
import { reportPerSource } from "../../session/sources.ts";

const SHOWN = 50;

export function define(command: Command): void {
  command
    .addOption(
      new Option("--reach <reach>", "how far back: the current month, three months, or all time")
        .choices(REACHES)
        .default("quarter"),
    )
    .option("--provider", "compare months with the totals of the billing provider instead")
    .action(inSession(run));
}

async function run(
  session: Session,
  { reach, provider = false }: { reach: Reach; provider?: boolean },
): Promise<number> {
  if (provider) return runProvider(session, reach);
  return reportPerSource(session, {
    kind: "totals",
    work: (source) =>
      session.output.progress({ label: "totals", unit: "windows" }, (update) =>
        checkTotals(source, reach, update),
      ),
    exitOf: ({ failures, unverified, daysNotFinal, othersNotFinal, differences }) => {
      if (failures + unverified + daysNotFinal + othersNotFinal > 0) return EXIT.partlyFailed;
      return differences > 0 ? EXIT.mismatch : EXIT.done;
    },
    describe: (results) => Object.values(results).map(describeTotals).join("\n"),
  });
}

async function runProvider(session: Session, reach: Reach): Promise<number> {
  return reportPerSource(session, {
    kind: "totals",
    work: (source) =>
      session.output.progress({ label: "provider", unit: "months" }, (update) =>
        readBill(source, { reach, isPatient: false }, update),
      ),
    exitOf: exitOfBill,
    toData: billToData,
    describe: (results) =>
      Object.entries(results)
        .map(([source, result]) => describeBill(source, result))
        .join("\n"),
  });
}

export function describeTotals(result: TotalsResult): string {
  const { range, findings, failed, daysWaiting, daysDisproved, daysNotFinal, unverified } = result;
  const lines = [
    `${instant(range.start)} to ${instant(range.end)}: ${result.requests} requests proved ${result.daysProved.toLocaleString("en-US")} days x scopes. ` +
      `${Math.max(0, daysWaiting - daysNotFinal)} wait for a window that fits. ${result.restated} counts restated, ${result.differences} differences.`,
  ];
  if (daysDisproved > 0)
    lines.push(`Not proved: ${daysDisproved} days x scopes in which a difference is left.`);
  for (const one of result.others) {
    const proved = one.daysProved.toLocaleString("en-US");
    const waiting = Math.max(0, one.daysWaiting - one.daysNotFinal);
    const name = METER_NAME[one.meter];
    lines.push(`${name}: ${proved} days x scopes proved. ${waiting} wait for a window that fits.`);
    if (one.daysDisproved > 0)
      lines.push(`Not proved: ${name}, ${one.daysDisproved} days x scopes in which a difference is left.`);
  }
  if (result.tierDays !== undefined) {
    const days = result.tierDays.toLocaleString("en-US");
    lines.push(
      `Long-lived and short-lived traces were added up and compared with all on ${days} days x workspaces.`,
    );
  }
  const hasOthers = findings.some(({ meter }) => meter !== "traces");
  if (findings.length > 0) {
    const rows = findings
      .slice(0, SHOWN)
      .map((f) => [
        ...(hasOthers ? [numberName(f.meter, f.measure)] : []),
        f.kind,
        f.state,
        f.groupBy,
        instant(f.start),
        instant(f.end),
        f.workspaceId,
        f.kind === "grouping_total" ? "(all)" : shownId(f.dimensionId),
        f.storedTraces,
        f.controlTraces,
      ]);
    lines.push(
      table(
        [
          ...(hasOthers ? ["usage"] : []),
          ...["kind", "state", "dimension", "from", "to", "workspace", "id", "stored", "total"],
        ],
        rows,
      ),
    );
  }
  if (findings.length > SHOWN) {
    lines.push(`... and ${findings.length - SHOWN} more in reporting.usage_reconciliation_by_kind`);
  }
  const commands = findings
    .filter(({ kind }) => kind === "stride_total")
    .map((f) => {
      const flags = f.meter === "traces" ? "" : ` ${meterFlags(f.meter)}`;
      return `reconcile --from ${instant(f.start)} --to ${instant(f.end)} --group-by ${f.groupBy}${flags}`;
    });
  for (const command of [...new Set(commands)].slice(0, 5)) {
    lines.push(`To compare each day with the export, run: usage-etl ${command}`);
  }
  for (const { request, code, message } of failed) {
    const { start, end } = request.window;
    lines.push(
      `not checked: ${dimensionText(request.meter, request.groupBy)} ${instant(start)} to ${instant(end)}: ${message} [${code}]`,
    );
  }
  if (unverified > 0) {
    lines.push(`not checked: ${unverified} windows of workspaces whose access is not proven`);
  }
  if (daysNotFinal > 0) {
    lines.push(
      `not checked: ${daysNotFinal} days x scopes that are not loaded and final; \`usage-etl coverage\` shows them`,
    );
  }
  for (const { meter, daysNotFinal: left } of result.others) {
    if (left > 0) {
      lines.push(`not checked: ${METER_NAME[meter]}, ${left} days x scopes that are not loaded and final`);
    }
  }
  return lines.join("\n");
}

/** Totals of a meter that nothing was said about: the comparison is not complete. */
const NOT_COMPARED: readonly ProviderOutcome[] = [
  "not_final",
  "unknown_value",
  "other_period",
  "not_whole",
  "several_metrics",
  "no_metric",
];

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
