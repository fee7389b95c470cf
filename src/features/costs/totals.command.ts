import { type Command, Option } from "commander";
import {
  METER_WORDS,
  PROVIDER_OUTCOMES,
  type ProviderOutcome,
  providerMeterOf,
} from "../../core/domain/months/provider.ts";
import { REACHES, type Reach } from "../../core/domain/planning/windows.ts";
import { METER, METER_NAME, meterFlags, numberName } from "../../core/domain/usage/meter.ts";
import { shownId } from "../../core/domain/usage/record.ts";
import { checkTotals, type TotalsResult } from "../../core/pipeline/proof/check-totals.ts";
import { EXIT } from "../../terminal/exit.ts";
import { dimensionText, moreThan } from "../../terminal/load-report.ts";
import { withSource } from "../../terminal/options.ts";
import { count, instant, linesOf, tableOf } from "../../terminal/output.ts";
import { inSessionOfSource, type Session } from "../../terminal/session.ts";
import { reportPerSource } from "../../terminal/sources.ts";
import { BILL_WORDS } from "./costs.check.ts";
import { type ProviderResult, type ReadBill, readBill } from "./read-bill.ts";

const SHOWN = 50;

export const examples = [
  ["totals --reach quarter", "three months against totals of the platform"],
  ["totals --provider", "against totals of the billing provider"],
] as const;

export function define(command: Command): void {
  withSource(command)
    .addOption(
      new Option("--reach <reach>", "how far back: the current month, three months, or all time")
        .choices(REACHES)
        .default("quarter"),
    )
    .option("--provider", "compare months with the totals of the billing provider instead")
    .action(inSessionOfSource(run));
}

async function run(
  session: Session,
  { reach, provider = false }: { reach: Reach; provider?: boolean },
): Promise<number> {
  const { progress } = session.output;
  if (provider) {
    return reportPerSource(session, {
      kind: "totals",
      work: (source) =>
        progress({ label: "provider", unit: "months" }, (update) =>
          readBill(source, { reach, isPatient: false }, update),
        ),
      exitOf: exitOfBill,
      toData: billToData,
      describe: (results) =>
        linesOf(Object.entries(results).map(([source, bill]) => describeBill(source, bill))),
    });
  }
  return reportPerSource(session, {
    kind: "totals",
    work: (source) =>
      progress({ label: "totals", unit: "windows" }, (update) => checkTotals(source, reach, update)),
    exitOf: ({ failures, unverified, daysNotFinal, othersNotFinal, miscounted, differences }) => {
      if (failures + unverified + daysNotFinal + othersNotFinal + miscounted > 0) return EXIT.partlyFailed;
      return differences > 0 ? EXIT.mismatch : EXIT.done;
    },
    describe: (results) => linesOf(Object.values(results).map(describeTotals)),
  });
}

export function describeTotals(result: TotalsResult): string {
  const { range, findings, failed, others, tierDays, daysNotFinal, unverified } = result;
  const [from, to] = [instant(range.start), instant(range.end)];
  const waiting = (of: { daysWaiting: number; daysNotFinal: number }) => {
    const days = Math.max(0, of.daysWaiting - of.daysNotFinal);
    if (days === 0) return "No day is waiting for its check.";
    return `${days} wait until enough whole weeks around them are final, which is no gap.`;
  };
  // Tiers become final later, so their check ends earlier.
  const untilOf = (of: { range: { end: number } }) =>
    of.range.end === range.end ? "" : `, only to ${instant(of.range.end)}`;
  const hasOthers = findings.some(({ meter }) => meter !== "traces");
  return linesOf(
    `${from} to ${to}: ${result.requests} requests proved ${count(result.daysProved)} daily figures. ` +
      `${waiting(result)} ${result.restated} figures of all usage restated, ${result.differences} differences.`,
    result.miscounted > 0 &&
      `${count(result.miscounted)} months of a workspace and dimension have records that no load wrote: something else changed them. That time is provisional now, and \`usage-etl sync\` requests it again.`,
    result.daysDisproved > 0 &&
      `Not proved: ${result.daysDisproved} daily figures with a remaining difference.`,
    others.flatMap((one) => [
      `${METER_NAME[one.meter]}${untilOf(one)}: ${count(one.daysProved)} daily figures proved. ${waiting(one)}`,
      one.daysDisproved > 0 &&
        `Not proved: ${METER_NAME[one.meter]}, ${one.daysDisproved} daily figures with a remaining difference.`,
    ]),
    tierDays !== undefined &&
      `Long-lived and short-lived traces were added up and compared with all on ${count(tierDays)} workspace days.`,
    findings.length > 0 &&
      tableOf(findings.slice(0, SHOWN), {
        usage: hasOthers && ((one) => numberName(one.meter, one.measure)),
        kind: "kind",
        state: "state",
        dimension: "groupBy",
        from: (one) => instant(one.start),
        to: (one) => instant(one.end),
        workspace: "workspaceId",
        id: (one) => (one.kind === "grouping_total" ? "(all)" : shownId(one.dimensionId)),
        stored: "storedTraces",
        total: "controlTraces",
      }),
    moreThan(SHOWN, findings.length),
    commandsFor(findings).map((command) => `To compare each day with the export, run: usage-etl ${command}`),
    failed.map(({ request: { meter, groupBy, window }, code, message }) => {
      const what = `${dimensionText(meter, groupBy)} ${instant(window.start)} to ${instant(window.end)}`;
      return `not checked: ${what}: ${message} [${code}]`;
    }),
    unverified > 0 && `not checked: ${unverified} windows of workspaces whose access is not proven`,
    daysNotFinal > 0 &&
      `not checked: ${daysNotFinal} daily figures that are not loaded and final; \`usage-etl coverage\` shows them`,
    others.map(
      ({ meter, daysNotFinal: left }) =>
        left > 0 && `not checked: ${METER_NAME[meter]}, ${left} daily figures that are not loaded and final`,
    ),
  );
}

function commandsFor(findings: TotalsResult["findings"]): string[] {
  const commands = findings
    .filter(({ kind, meter }) => kind === "stride_total" && METER[meter].isExported)
    .map(({ meter, groupBy, start, end }) => {
      const flags = meter === "traces" ? "" : ` ${meterFlags(meter)}`;
      return `reconcile --from ${instant(start)} --to ${instant(end)} --group-by ${groupBy}${flags}`;
    });
  return [...new Set(commands)].slice(0, 5);
}

const NOT_COMPARED: readonly ProviderOutcome[] = [
  "not_final",
  "unknown_value",
  "other_period",
  "not_whole",
  "several_metrics",
  "no_metric",
];

type Total = ProviderResult["months"][number]["totals"][number];

/** If the server refuses limits or periods, the comparison still succeeds. */
function exitOfBill({ provider, failed: parts }: ReadBill): number {
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

function billToData({ provider, parts, failed: failedParts }: ReadBill) {
  if (provider === undefined) return { parts, failedParts };
  const { refusal, months, findings, failed, requests, restated } = provider;
  const totals = months.flatMap(({ month, totals: all }) =>
    all.map(({ scopeId: _scope, unusable: _why, ...total }) => ({ month, ...total })),
  );
  const differences = findings.length;
  return { refusal, requests, restated, differences, findings, failed, totals, parts, failedParts };
}

export function describeBill(source: string, { provider, parts, failed }: ReadBill): string {
  return linesOf(
    provider && describeProvider(source, provider),
    failed.map(({ part, code, message }) => `not read: ${BILL_WORDS[part]}: ${message} [${code}]`),
    Object.entries(parts).map(([part, { read, refusal }]) => {
      const what = BILL_WORDS[part as keyof typeof parts];
      return `${what}: ${refusal === null ? `${read} read` : `not read. ${refusal}`}`;
    }),
  );
}

function describeProvider(source: string, provider: ProviderResult): string {
  const { refusal, months, findings, failed, requests, restated } = provider;
  if (refusal !== null) {
    return `${source}: the server does not show the billing provider's totals to this key, so no month was compared. ${refusal}`;
  }
  const totals = months.flatMap((month) => month.totals.map((one) => ({ ...one, month: month.month })));
  const [equal = 0, differ = 0] = ["equal", "differs"].map(
    (outcome) => totals.filter((one) => one.outcome === outcome).length,
  );
  return linesOf(
    `${source}: ${requests} requests compared ${equal + differ} monthly totals by workspace. ` +
      `${equal} are equal, ${findings.length} differ. ${restated} counts restated.`,
    findings.length > 0 && [
      tableOf(findings.slice(0, SHOWN), {
        month: ({ start }) => instant(start).slice(0, 7),
        workspace: "workspaceId",
        usage: ({ meter, measure }) => METER_WORDS[providerMeterOf(meter, measure)],
        stored: "storedTraces",
        provider: "controlTraces",
      }),
      "Nothing was changed: ask the platform which number it bills.",
    ],
    moreThan(SHOWN, findings.length),
    failed.map(({ month, code, message }) => `not compared: ${month}: ${message} [${code}]`),
    notesOf(totals),
  );
}

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
    const named = ids.length > 3 ? `${ids.length} workspaces` : ids.join(", ");
    const whose = named && `, ${named}`;
    return `not compared: ${what}, ${when}${whose}: ${PROVIDER_OUTCOMES[outcome]}`;
  });
}
