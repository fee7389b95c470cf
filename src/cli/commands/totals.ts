import { type Command, Option } from "commander";
import { REACHES, type Reach } from "../../domain/planning/control.ts";
import { shownId } from "../../domain/usage/record.ts";
import { readBill } from "../../pipeline/bill/read-bill.ts";
import { checkTotals, type TotalsResult } from "../../pipeline/totals/check-totals.ts";
import { billToData, describeBill, exitOfBill } from "../report/bill-report.ts";
import { instant, table } from "../report/output.ts";
import { EXIT } from "../session/exit.ts";
import { reportPerSource } from "../session/per-source.ts";
import { inSession, type Session } from "../session/session.ts";

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
    exitOf: ({ failures, unverified, daysNotFinal, differences }) => {
      if (failures + unverified + daysNotFinal > 0) return EXIT.partlyFailed;
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

function describeTotals(result: TotalsResult): string {
  const { range, findings, failed, daysWaiting, daysDisproved, daysNotFinal, unverified } = result;
  const lines = [
    `${instant(range.start)} to ${instant(range.end)}: ${result.requests} requests proved ${result.daysProved.toLocaleString("en-US")} days x scopes. ` +
      `${Math.max(0, daysWaiting - daysNotFinal)} wait for a window that fits. ${result.restated} counts restated, ${result.differences} differences.`,
  ];
  if (daysDisproved > 0)
    lines.push(`Not proved: ${daysDisproved} days x scopes in which a difference is left.`);
  if (findings.length > 0) {
    const rows = findings
      .slice(0, SHOWN)
      .map((f) => [
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
      table(["kind", "state", "dimension", "from", "to", "workspace", "id", "stored", "total"], rows),
    );
  }
  if (findings.length > SHOWN) {
    lines.push(`... and ${findings.length - SHOWN} more in reporting.usage_reconciliation`);
  }
  const commands = findings
    .filter(({ kind }) => kind === "stride_total")
    .map((f) => `reconcile --from ${instant(f.start)} --to ${instant(f.end)} --group-by ${f.groupBy}`);
  for (const command of [...new Set(commands)].slice(0, 5)) {
    lines.push(`To compare each day with the export, run: usage-etl ${command}`);
  }
  for (const { request, code, message } of failed) {
    const { start, end } = request.window;
    lines.push(`not checked: ${request.groupBy} ${instant(start)} to ${instant(end)}: ${message} [${code}]`);
  }
  if (unverified > 0) {
    lines.push(`not checked: ${unverified} windows of workspaces whose access is not proven`);
  }
  if (daysNotFinal > 0) {
    lines.push(
      `not checked: ${daysNotFinal} days x scopes that are not loaded and final; \`usage-etl coverage\` shows them`,
    );
  }
  return lines.join("\n");
}
