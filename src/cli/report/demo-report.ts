import type { RangeLine } from "../../domain/planning/range-status.ts";
import type { ProbeResult } from "../../pipeline/probe/probe.ts";
import type { ReconcileResult } from "../../pipeline/reconcile/reconcile.ts";
import type { FetchTotals, WorkspaceTotal } from "../../store/report/load-totals.ts";
import { describeProbe } from "../commands/probe.ts";
import { describeReconcile } from "../commands/reconcile.ts";
import { rowsOf, table } from "./output.ts";
import { describeRange } from "./range-report.ts";
import { dimensionText } from "./run-report.ts";

const EXTRACTED = ["dimension", "stride", "windows", "requests", "fewest", "records", "traces"] as const;

export function describeDemo(shown: {
  extracted: readonly (FetchTotals & { windows: number; fewest: number })[];
  loaded: readonly RangeLine[];
  proof: ReconcileResult;
  totals: readonly WorkspaceTotal[];
  probe: ProbeResult;
  seconds: number;
}): string {
  const extracted = table(
    ["dimension", "stride", "windows", "requests", "fewest possible", "records stored", "traces"],
    rowsOf(
      shown.extracted.map((one) => ({ ...one, dimension: dimensionText(one.meter, one.groupBy) })),
      EXTRACTED,
    ),
  );
  const totals = table(
    ["workspace", "days loaded", "traces", "last 7 days"],
    rowsOf(shown.totals, ["workspace", "days", "traces", "lastWeek"]),
  );
  return [
    ...[
      `${extracted}\n${describeRange(shown.loaded)}`,
      describeReconcile(shown.proof),
      totals,
      describeProbe(shown.probe),
    ],
    `${shown.seconds.toFixed(1)} s`,
  ].join("\n\n");
}
