import { type Command, Option } from "commander";
import { shortInstant } from "../../../domain/time/instant.ts";
import { DAY_MS, floorToGrid, STRIDES, type Stride } from "../../../domain/time/stride.ts";
import { METER_NAME, type Meter, meterFlags } from "../../../domain/usage/meter.ts";
import { numberName } from "../../../domain/usage/number-name.ts";
import { type GroupBy, shownId } from "../../../domain/usage/record.ts";
import type { NotCompared } from "../../../pipeline/proof/not-compared.ts";
import { type ReconcileResult, reconcile, type StrideResult } from "../../../pipeline/proof/reconcile.ts";
import { storeNow } from "../../../store/load/fetch-ledger.ts";
import { recordAction } from "../../../store/work/operator-actions.ts";
import { describeRun, exitOfRun } from "../../report/load-report.ts";
import { instant, table } from "../../report/output.ts";
import { EXIT } from "../../session/exit.ts";
import {
  askedMeter,
  groupingsOf,
  type MeterOptions,
  type RangeOptions,
  rangeOf,
  withGrouping,
  withMeter,
  withRange,
} from "../../session/options.ts";
import { commandActor, inSession, type Session } from "../../session/session.ts";
import { reportPerSource } from "../../session/sources.ts";

const SHOWN = 50;
const HEAD = ["kind", "state", "dimension", "bucket", "workspace", "id", "stored", "export", "export says"];

interface ReconcileOptions extends RangeOptions, Partial<MeterOptions> {
  readonly stride?: Stride;
  readonly groupBy?: GroupBy;
  readonly repair?: boolean;
}

export function define(command: Command): void {
  withMeter(withGrouping(withRange(command)), {})
    .addOption(
      new Option(
        "--stride <stride>",
        "only buckets of this size (default: day, and hour where kept)",
      ).choices(STRIDES),
    )
    .option("--repair", "fetch what differs again, as JSON and as export")
    .action(inSession(run));
}

async function run(session: Session, options: ReconcileOptions): Promise<number> {
  const { config, output } = session;
  const { stride, repair = false } = options;
  const meter = askedMeter(options);
  return reportPerSource(session, {
    kind: "reconcile",
    work: async (source) => {
      const now = await storeNow(source.store.db);
      const range = rangeOf(options, { start: floorToGrid(now - config.reconcileForMs, DAY_MS), end: now });
      const groupings = groupingsOf(options);
      if (repair) {
        const [from, to] = [range.start, range.end].map(shortInstant);
        const detail = `${from} to ${to}${stride === undefined ? "" : ` by ${stride}`}, ${groupings.join(", ")}`;
        const order = { sourceId: source.sourceId, action: "reconcile.repair", detail };
        await recordAction(source.store.db, commandActor(), order);
      }
      return output.progress({ label: "export", unit: "windows" }, (update) =>
        reconcile(source, { range, stride, meter, groupings, repair }, update),
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
  if (result.strides.some(isIncomplete)) return EXIT.partlyFailed;
  return result.open + result.platformDisagrees > 0 ? EXIT.mismatch : EXIT.done;
}

/** Days are kept for all time. Hours are compared where they are loaded. */
function isIncomplete({ stride, notCompared: { failed, missing } }: StrideResult): boolean {
  return failed > 0 || (stride === "day" && missing > 0);
}

/** Counts by stride, then at most fifty differences with their keys, then what was not compared. */
export function describeReconcile(result: ReconcileResult): string {
  const { open, platformDisagrees, repaired } = result;
  const total = open + platformDisagrees;
  const lines = result.strides.map(
    (one) =>
      `${ofMeter(one.meter)}${one.stride}: ${one.compared.toLocaleString("en-US")} records compared with the export in ${one.windows} windows, ` +
      `${differences(one.open + one.platformDisagrees)} left`,
  );
  if (result.windows === 0) lines.push("Nothing in that range is final and loaded, so nothing is proved.");
  if (repaired !== undefined) {
    lines.push(
      `${differences(repaired.differences)} fetched again, ${repaired.mended} repaired, ` +
        `${repaired.withdrawn} withdrawn (the export was wrong, nothing was changed):`,
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
  const hasOthers = shown.some(({ meter }) => meter !== "traces");
  if (shown.length > 0) {
    const rows = shown.map((d) => [
      ...(hasOthers ? [numberName(d.meter, d.measure)] : []),
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
    lines.push(table(hasOthers ? ["usage", ...HEAD] : HEAD, rows));
  }
  if (shown.length < total) {
    lines.push(`... and ${total - shown.length} more in reporting.usage_reconciliation_by_kind`);
  }
  for (const { task, code, message } of result.failures) {
    lines.push(
      `not compared: ${ofMeter(task.meter)}${task.groupBy} ${instant(task.window.start)} to ${instant(task.window.end)}: ${message} [${code}]`,
    );
  }
  if (result.unverified > 0) {
    lines.push(`not compared: ${result.unverified} windows of workspaces whose access is not proven`);
  }
  if (result.moved > 0) {
    lines.push(`not compared: ${result.moved} windows that were loaded again meanwhile; run it again`);
  }
  for (const one of result.strides) lines.push(...describeNotCompared(one));
  for (const { meter, stride, differences: left } of result.otherStrides) {
    const known = left === 0 ? "" : ` ${differences(left)} found earlier are left there.`;
    lines.push(
      `not compared: ${ofMeter(meter)}stride ${stride}. Run reconcile with ${flagsOf(meter)}--stride ${stride} to compare it.${known}`,
    );
  }
  return lines.join("\n");
}

const WHY_NOT: readonly (readonly [keyof NotCompared, string])[] = [
  ["provisional", "provisional"],
  ["failed", "not loaded, the last fetch failed; `usage-etl status` says why"],
  ["missing", "not loaded; `usage-etl coverage` shows them"],
  ["notKept", "not kept in this stride"],
  ["notAvailable", "not available: the server does not answer in this stride, or does not count it"],
];

/** Traces of all tiers are what is meant without further words. */
function ofMeter(meter: Meter): string {
  return meter === "traces" ? "" : `${METER_NAME[meter]}, `;
}

function flagsOf(meter: Meter): string {
  return meter === "traces" ? "" : `${meterFlags(meter)} `;
}

function describeNotCompared({ meter, stride, notCompared }: StrideResult): string[] {
  const unit = stride === "hour" ? "hours" : "days";
  return WHY_NOT.filter(([key]) => notCompared[key] > 0).map(
    ([key, why]) =>
      `not compared: ${ofMeter(meter)}stride ${stride}, ${notCompared[key].toLocaleString("en-US")} ${unit} x scopes: ${why}`,
  );
}

function differences(count: number): string {
  return `${count.toLocaleString("en-US")} difference${count === 1 ? "" : "s"}`;
}
