import type { ProbeResult } from "../../pipeline/probe/probe.ts";
import type { ReconcileResult } from "../../pipeline/reconcile/reconcile.ts";
import type { FetchTotals, WorkspaceTotal } from "../../store/report/load-totals.ts";
import { describeProbe } from "../commands/probe.ts";
import { describeReconcile } from "../commands/reconcile.ts";
import { table } from "./output.ts";

export function describeDemo(shown: {
  extracted: readonly (FetchTotals & { windows: number; fewest: number })[];
  proof: ReconcileResult;
  totals: readonly WorkspaceTotal[];
  probe: ProbeResult;
  seconds: number;
}): string {
  const extracted = table(
    ["dimension", "stride", "windows", "requests", "fewest possible", "records stored", "traces"],
    shown.extracted.map((one) => [
      ...[one.groupBy, one.stride, one.windows, one.requests, one.fewest],
      ...[one.records, one.traces],
    ]),
  );
  const totals = table(
    ["workspace", "days loaded", "traces", "last 7 days"],
    shown.totals.map((t) => [t.workspace, t.days, t.traces, t.lastWeek]),
  );
  return [
    ...[extracted, describeReconcile(shown.proof), totals, describeProbe(shown.probe)],
    `${shown.seconds.toFixed(1)} s`,
  ].join("\n\n");
}
