import { type Command, Option } from "commander";
import { REACHES, type Reach } from "../../domain/planning/control.ts";
import { METER_NAME, meterFlags } from "../../domain/usage/meter.ts";
import { numberName } from "../../domain/usage/number-name.ts";
import { shownId } from "../../domain/usage/record.ts";
import { readBill } from "../../pipeline/bill/read-bill.ts";
import { checkTotals, type TotalsResult } from "../../pipeline/proof/check-totals.ts";
import { billToData, describeBill, exitOfBill } from "../report/bill-report.ts";
import { instant, table } from "../report/output.ts";
import { dimensionText } from "../report/run-report.ts";
import { EXIT } from "../session/exit.ts";
import { inSession, type Session } from "../session/session.ts";
import { reportPerSource } from "../session/sources.ts";

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
