import { type Command, Option } from "commander";
import { REACHES, type Reach } from "../../domain/planning/control.ts";
import { checkTotals, type TotalsResult } from "../../pipeline/totals/check-totals.ts";
import { instant, table, withExternalId } from "../report/output.ts";
import { EXIT } from "../session/exit.ts";
import { inSession, type Session } from "../session/session.ts";

export function addTotalsCommand(program: Command): void {
  program
    .command("totals")
    .description(
      "hold settled days against totals of weeks, months and years, and groupings against workspaces",
    )
    .addOption(
      new Option("--reach <reach>", "how far back: the month under way, the last three, or everything")
        .choices(REACHES)
        .default("quarter"),
    )
    .action(inSession(run));
}

async function run(session: Session, { reach }: { reach: Reach }): Promise<number> {
  const { output } = session;
  const results: Record<string, TotalsResult> = {};
  const exit = await session.eachSource(async (source) => {
    const progress = output.progress("totals");
    const result = await checkTotals(source, reach, progress.update).finally(progress.stop);
    results[source.config.slug] = { ...result, findings: withExternalId(result.findings) };
    if (result.failures > 0) return EXIT.partlyFailed;
    return result.differences > 0 ? EXIT.mismatch : EXIT.done;
  });
  output.data(results, () => Object.values(results).map(describeTotals).join("\n"));
  return exit;
}

const SHOWN = 50;

function describeTotals(result: TotalsResult): string {
  const { range, findings, failed } = result;
  const lines = [
    `${instant(range.start)} to ${instant(range.end)}: ${result.daysProved.toLocaleString("en-US")} days x scopes proved by ` +
      `${result.requests} requests, ${result.daysWaiting} wait for a window that fits; ` +
      `${result.restated} counts restated, ${result.differences} differences`,
  ];
  if (findings.length > 0) {
    const head = ["kind", "state", "group_by", "from", "to", "workspace", "id", "stored", "total"];
    lines.push(
      table(
        head,
        findings
          .slice(0, SHOWN)
          .map((f) => [
            f.kind,
            f.state,
            f.groupBy,
            instant(f.start),
            instant(f.end),
            f.workspaceId,
            f.kind === "grouping_total" ? "(all)" : f.dimensionId || "(none)",
            f.storedTraces,
            f.controlTraces,
          ]),
      ),
    );
  }
  if (findings.length > SHOWN) {
    lines.push(`... and ${findings.length - SHOWN} more: reporting.usage_reconciliation has them all`);
  }
  for (const { request, code, message } of failed) {
    const { start, end } = request.window;
    lines.push(`not checked: ${request.groupBy} ${instant(start)} to ${instant(end)}: ${message} [${code}]`);
  }
  return lines.join("\n");
}
