import { type Command, Option } from "commander";
import { DAY_MS, floorToGrid, STRIDES, type Stride } from "../../domain/time/stride.ts";
import { type GroupBy, shownId } from "../../domain/usage/record.ts";
import { type ReconcileResult, reconcile } from "../../pipeline/reconcile/reconcile.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { instant, table } from "../report/output.ts";
import { describeRun, exitOfRun } from "../report/run-report.ts";
import { EXIT } from "../session/exit.ts";
import { groupingsOf, type RangeOptions, rangeOf, withGrouping, withRange } from "../session/options.ts";
import { reportPerSource } from "../session/per-source.ts";
import { inSession, type Session } from "../session/session.ts";

const SHOWN = 50;
const HEAD = ["kind", "state", "dimension", "bucket", "workspace", "id", "stored", "export", "export says"];

interface ReconcileOptions extends RangeOptions {
  readonly stride: Stride;
  readonly groupBy?: GroupBy;
  readonly repair?: boolean;
}

export function addReconcileCommand(program: Command): void {
  withGrouping(withRange(program.command("reconcile")))
    .description("compare final buckets in Postgres with the platform's CSV export")
    .addOption(new Option("--stride <stride>", "size of the time buckets").choices(STRIDES).default("day"))
    .option("--repair", "fetch what differs again, as JSON and as export")
    .action(inSession(run));
}

async function run(session: Session, options: ReconcileOptions): Promise<number> {
  const { config, output } = session;
  const { stride, repair = false } = options;
  return reportPerSource(session, {
    work: async (source) => {
      const now = await storeNow(source.store.db);
      const range = rangeOf(options, { start: floorToGrid(now - config.reconcileForMs, DAY_MS), end: now });
      const groupings = groupingsOf(options);
      return output.progress("export", (update) =>
        reconcile(source, { range, stride, groupings, repair }, update),
      );
    },
    exitOf: exitOfReconcile,
    describe: (results) => Object.values(results).map(describeReconcile).join("\n"),
  });
}

/** In the order of the exit codes: partly failed, then mismatch. */
function exitOfReconcile(result: ReconcileResult): number {
  if (result.failures.length > 0 || result.unverified > 0 || result.moved > 0) return EXIT.partlyFailed;
  if (result.repaired !== undefined && exitOfRun(result.repaired.run) !== EXIT.done) return EXIT.partlyFailed;
  return result.open + result.platformDisagrees > 0 ? EXIT.mismatch : EXIT.done;
}

/** Counts, then at most fifty differences with their keys, then what was not compared. */
export function describeReconcile(result: ReconcileResult): string {
  const { open, platformDisagrees, repaired } = result;
  const total = open + platformDisagrees;
  const lines = [
    `${result.compared.toLocaleString("en-US")} records compared with the export in ${result.windows} windows: ` +
      `${differences(total)}${repaired === undefined ? "" : " left"}`,
  ];
  if (result.windows === 0) lines.push("Nothing in that range is final and loaded, so nothing is proved.");
  if (repaired !== undefined) {
    lines.push(
      `${differences(repaired.differences)} fetched again, ${repaired.mended} repaired:`,
      describeRun(repaired.run),
    );
  }
  if (platformDisagrees > 0) {
    lines.push(
      `${differences(platformDisagrees)} where the platform contradicts itself: its JSON and its export differ, in two answers each. ` +
        "The JSON figure is kept. Nothing is fetched again unless one of them changes.",
    );
  }
  const shown = result.differences.slice(0, SHOWN);
  if (shown.length > 0) {
    const rows = shown.map((d) => [
      d.kind,
      d.state,
      d.groupBy,
      instant(d.bucketStart),
      d.workspaceId,
      shownId(d.dimensionId),
      d.storedTraces,
      d.exportTraces,
      d.exportSays,
    ]);
    lines.push(table(HEAD, rows));
  }
  if (shown.length < total) {
    lines.push(`... and ${total - shown.length} more in reporting.usage_reconciliation`);
  }
  for (const { slice, code, message } of result.failures) {
    lines.push(
      `not compared: ${slice.groupBy} ${instant(slice.window.start)} to ${instant(slice.window.end)}: ${message} [${code}]`,
    );
  }
  if (result.unverified > 0) {
    lines.push(`not compared: ${result.unverified} windows of workspaces whose access is not proven`);
  }
  if (result.moved > 0) {
    lines.push(`not compared: ${result.moved} windows that were loaded again meanwhile; run it again`);
  }
  return lines.join("\n");
}

function differences(count: number): string {
  return `${count.toLocaleString("en-US")} difference${count === 1 ? "" : "s"}`;
}
