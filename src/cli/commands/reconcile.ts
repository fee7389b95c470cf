import { type Command, Option } from "commander";
import { DAY_MS, floorToGrid, STRIDES, type Stride } from "../../domain/time/stride.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { type ReconcileResult, reconcile } from "../../pipeline/reconcile/reconcile.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { instant, table, withExternalId } from "../report/output.ts";
import { describeRun, exitOfRun } from "../report/run-report.ts";
import { EXIT } from "../session/exit.ts";
import { groupingsOf, type RangeOptions, rangeOf, withGrouping, withRange } from "../session/options.ts";
import { inSession, type Session } from "../session/session.ts";

interface ReconcileOptions extends RangeOptions {
  readonly stride: Stride;
  readonly groupBy?: GroupBy;
  readonly repair?: boolean;
}

export function addReconcileCommand(program: Command): void {
  withGrouping(withRange(program.command("reconcile")))
    .description("hold Postgres against the platform's CSV export, settled buckets only")
    .addOption(new Option("--stride <stride>", "size of the time buckets").choices(STRIDES).default("day"))
    .option("--repair", "ask again, JSON and export, about what differs")
    .action(inSession(run));
}

async function run(session: Session, options: ReconcileOptions): Promise<number> {
  const { config, output } = session;
  const results: Record<string, ReconcileResult> = {};
  const exit = await session.eachSource(async (source) => {
    const now = await storeNow(source.store.db);
    const range = rangeOf(options, { start: floorToGrid(now - config.reconcileForMs, DAY_MS), end: now });
    const progress = output.progress("export");
    const result = await reconcile(
      source,
      { range, stride: options.stride, groupings: groupingsOf(options), repair: options.repair ?? false },
      progress.update,
    ).finally(progress.stop);
    results[source.config.slug] = { ...result, differences: withExternalId(result.differences) };
    return exitOfReconcile(result);
  });
  output.data(results, () => Object.values(results).map(describeReconcile).join("\n"));
  return exit;
}

/** In the order of the exit codes: partly failed, then mismatch. */
function exitOfReconcile(result: ReconcileResult): number {
  if (result.failures.length > 0 || result.unverified > 0 || result.moved > 0) return EXIT.partlyFailed;
  if (result.repaired !== undefined && exitOfRun(result.repaired.run) !== EXIT.done) return EXIT.partlyFailed;
  return result.open + result.platformDisagrees > 0 ? EXIT.mismatch : EXIT.done;
}

/** What a person reads; the differences with their keys, at most fifty. */
export function describeReconcile(result: ReconcileResult): string {
  const { open, platformDisagrees } = result;
  const lines = [
    `${result.compared.toLocaleString("en-US")} records held against the export in ${result.windows} windows: ` +
      `${differences(open + platformDisagrees)}${result.repaired === undefined ? "" : " left"}`,
  ];
  if (result.windows === 0) lines.push("Nothing in that range is settled and loaded, so nothing is proved.");
  if (result.repaired !== undefined) {
    const { differences: asked, mended, run } = result.repaired;
    lines.push(
      `${differences(asked)} ${asked === 1 ? "was" : "were"} fetched again, ${mended} of them repaired:`,
      describeRun(run),
    );
  }
  if (platformDisagrees > 0) {
    lines.push(
      `${differences(platformDisagrees)} of the platform's own: its JSON and its export, asked twice, give different figures. ` +
        "The JSON is kept; nothing is fetched again unless one of them changes.",
    );
  }
  const shown = result.differences.slice(0, 50);
  if (shown.length > 0) {
    const head = [
      "kind",
      "state",
      "group_by",
      "bucket",
      "workspace",
      "id",
      "stored",
      "export",
      "export says",
    ];
    lines.push(
      table(
        head,
        shown.map((d) => [
          d.kind,
          d.state,
          d.groupBy,
          instant(d.bucketStart),
          d.workspaceId,
          d.dimensionId || "(none)",
          d.storedTraces,
          d.exportTraces,
          d.exportSays,
        ]),
      ),
    );
  }
  if (shown.length < open + platformDisagrees) {
    lines.push(
      `... and ${open + platformDisagrees - shown.length} more: reporting.usage_reconciliation has them all`,
    );
  }
  for (const { slice, code, message } of result.failures) {
    lines.push(
      `not compared: ${slice.groupBy} ${instant(slice.window.start)} to ${instant(slice.window.end)}: ${message} [${code}]`,
    );
  }
  if (result.unverified > 0) {
    lines.push(`not compared: ${result.unverified} windows of workspaces that nothing shows to be readable`);
  }
  if (result.moved > 0) {
    lines.push(`not compared: ${result.moved} windows that were loaded anew meanwhile; run it again`);
  }
  return lines.join("\n");
}

function differences(count: number): string {
  return `${count.toLocaleString("en-US")} difference${count === 1 ? "" : "s"}`;
}
