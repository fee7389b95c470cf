import { type Command, Option } from "commander";
import { UsageError } from "../../core/base/errors.ts";
import { counted } from "../../core/base/printable.ts";
import { shortInstant } from "../../core/domain/time/days.ts";
import { DAY_MS, floorToGrid, STRIDES, type Stride } from "../../core/domain/time/stride.ts";
import { METER, METER_NAME, type Meter, meterFlags, numberName } from "../../core/domain/usage/meter.ts";
import { type GroupBy, shownId } from "../../core/domain/usage/record.ts";
import { type ReconcileResult, reconcile } from "../../core/pipeline/proof/reconcile.ts";
import type { NotCompared, StrideResult } from "../../core/pipeline/proof/reconcile-parts.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { recordAction } from "../../core/store/work/operator-actions.ts";
import { EXIT } from "../../terminal/exit.ts";
import { describeRun, exitOfRun, moreThan } from "../../terminal/load-report.ts";
import {
  groupingsOf,
  type MeterOptions,
  type RangeOptions,
  rangeOf,
  requestedMeter,
  withGrouping,
  withMeter,
  withRange,
  withSource,
} from "../../terminal/options.ts";
import { count, instant, linesOf, tableOf } from "../../terminal/output.ts";
import { commandActor, inSessionOfSource, type Session } from "../../terminal/session.ts";
import { reportPerSource } from "../../terminal/sources.ts";

const SHOWN = 50;

interface ReconcileOptions extends RangeOptions, Partial<MeterOptions> {
  readonly stride?: Stride;
  readonly groupBy?: GroupBy;
  readonly repair?: boolean;
}

export const examples = [
  ["reconcile", "what is final and was not compared for long"],
  ["reconcile --from 2026-10-01 --to 2026-11-01 --repair", "October; load again what differs"],
] as const;

export function define(command: Command): void {
  withMeter(withGrouping(withRange(withSource(command))), {})
    .addOption(
      new Option(
        "--stride <stride>",
        "only buckets of this size (default: day, and hour where kept)",
      ).choices(STRIDES),
    )
    .option("--repair", "fetch what differs again, as JSON and as export")
    .action(inSessionOfSource(run));
}

async function run(session: Session, options: ReconcileOptions): Promise<number> {
  const { config, output } = session;
  const { stride, repair = false } = options;
  const meter = requestedMeter(options);
  if (meter !== undefined && !METER[meter].isExported) throw notExported(meter);
  return reportPerSource(session, {
    kind: "reconcile",
    work: async (source) => {
      const now = await storeNow(source.store.db);
      const range = rangeOf(options, { start: floorToGrid(now - config.reconcileForMs, DAY_MS), end: now });
      const groupings = groupingsOf(options, meter ?? "traces");
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
    describe: (results) => linesOf(Object.values(results).map(describeReconcile)),
  });
}

function notExported(meter: Meter): UsageError {
  return new UsageError({
    code: "not_exported",
    message: `The platform does not export ${METER_NAME[meter]}, so there is nothing to compare it with.`,
    next: "Run `usage-etl totals` to compare the days with the platform's own sums.",
  });
}

export function exitOfReconcile(result: ReconcileResult): number {
  if (result.failures.length > 0 || result.unverified > 0 || result.moved > 0) return EXIT.partlyFailed;
  if (result.repaired !== undefined && exitOfRun(result.repaired.run) !== EXIT.done) return EXIT.partlyFailed;
  if (result.strides.some(isIncomplete) || isOfNothing(result)) return EXIT.partlyFailed;
  return result.open + result.platformDisagrees > 0 ? EXIT.mismatch : EXIT.done;
}

function isIncomplete({ stride, notCompared: { failed, missing } }: StrideResult): boolean {
  return failed > 0 || (stride === "day" && missing > 0);
}

/** True if nothing in the range can be compared without a backfill, such as hours of deployment usage. */
function isOfNothing({ windows, strides }: ReconcileResult): boolean {
  const all = strides.map(({ notCompared }) => notCompared);
  const isWaiting = all.some(({ provisional }) => provisional > 0);
  return windows === 0 && !isWaiting && all.some((one) => one.notKept + one.notAvailable > 0);
}

export function describeReconcile(result: ReconcileResult): string {
  const { platformDisagrees, repaired, unverified, moved } = result;
  const shown = result.differences.slice(0, SHOWN);
  const hasOthers = shown.some(({ meter }) => meter !== "traces");
  return linesOf(
    result.strides.map(
      (one) =>
        `${ofMeter(one.meter)}${one.stride}: ${count(one.compared)} records compared with the export in ${one.windows} windows, ` +
        `${counted(one.open + one.platformDisagrees, "difference")} left`,
    ),
    result.windows === 0 && "Nothing in that range is final and loaded, so nothing is proved.",
    repaired && [
      `${counted(repaired.differences, "difference")} fetched again, ${repaired.mended} repaired, ` +
        `${repaired.withdrawn} withdrawn (the export was wrong, nothing was changed):`,
      describeRun(repaired.run),
    ],
    platformDisagrees > 0 &&
      `${counted(platformDisagrees, "difference")} where the platform contradicts itself: its JSON and its export differ, in two responses each. ` +
        "The JSON figure is kept. Nothing is fetched again unless one of them changes.",
    shown.length > 0 &&
      tableOf(shown, {
        usage: hasOthers && ((one) => numberName(one.meter, one.measure)),
        kind: "kind",
        state: "state",
        dimension: "groupBy",
        bucket: (one) => instant(one.bucketStart),
        workspace: "workspaceId",
        id: (one) => shownId(one.dimensionId),
        stored: "storedTraces",
        export: "exportTraces",
        "export says": "exportSays",
      }),
    moreThan(shown.length, result.open + platformDisagrees),
    result.failures.map(({ task: { meter, groupBy, window }, code, message }) => {
      const what = `${ofMeter(meter)}${groupBy} ${instant(window.start)} to ${instant(window.end)}`;
      return `not compared: ${what}: ${message} [${code}]`;
    }),
    unverified > 0 && `not compared: ${unverified} windows of workspaces whose access is not proven`,
    moved > 0 && `not compared: ${moved} windows that were loaded again meanwhile; run it again`,
    result.strides.flatMap(describeNotCompared),
    result.otherStrides.map(({ meter, stride, differences }) => {
      const flags = meter === "traces" ? "" : `${meterFlags(meter)} `;
      const known =
        differences === 0 ? "" : ` ${counted(differences, "difference")} found earlier are left there.`;
      return `not compared: ${ofMeter(meter)}stride ${stride}. Run reconcile with ${flags}--stride ${stride} to compare it.${known}`;
    }),
    result.notExported.map(
      (meter) =>
        `not compared: ${METER_NAME[meter]}: the platform does not export it. \`usage-etl totals\` checks it.`,
    ),
  );
}

const WHY_NOT: readonly (readonly [keyof NotCompared, string])[] = [
  ["provisional", "provisional"],
  ["failed", "not loaded, the last fetch failed; `usage-etl status` says why"],
  ["missing", "not loaded; `usage-etl coverage` shows them"],
  ["notKept", "not kept in this stride"],
  ["notAvailable", "not available: the server does not support this stride, or does not count it"],
];

function ofMeter(meter: Meter): string {
  return meter === "traces" ? "" : `${METER_NAME[meter]}, `;
}

function describeNotCompared({ meter, stride, notCompared }: StrideResult): string[] {
  const unit = stride === "hour" ? "hourly figures" : "daily figures";
  return WHY_NOT.filter(([key]) => notCompared[key] > 0).map(
    ([key, why]) =>
      `not compared: ${ofMeter(meter)}stride ${stride}, ${count(notCompared[key])} ${unit}: ${why}`,
  );
}
