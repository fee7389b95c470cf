import { isLoaded, type RangeLine } from "../../../domain/coverage/range-status.ts";
import { STRIDES } from "../../../domain/time/stride.ts";
import type { ProbeResult } from "../../../pipeline/proof/probe.ts";
import type { ReconcileResult } from "../../../pipeline/proof/reconcile.ts";
import { counted } from "../../../printable.ts";
import type { StoredTotals, WorkspaceTotal } from "../../../store/figures/load-totals.ts";
import { describeRange } from "../../report/load-report.ts";
import { linesOf, tableOf } from "../../report/output.ts";
import { describeProbe } from "../proof/probe.ts";
import { describeReconcile } from "../proof/reconcile.ts";

export function describeDemo(shown: {
  extracted: readonly (StoredTotals & { windows: number; fewest: number })[];
  loaded: readonly RangeLine[];
  proof: ReconcileResult;
  totals: readonly WorkspaceTotal[];
  probe: ProbeResult;
  seconds: number;
}): string {
  const extracted = tableOf(shown.extracted, {
    dimension: "groupBy",
    stride: "stride",
    windows: "windows",
    "fewest possible": "fewest",
    requests: "requests",
    "records stored": "records",
    "traces stored": "traces",
  });
  return [
    linesOf(extracted, unevenStrides(shown.extracted, shown.loaded), describeRange(shown.loaded)),
    describeReconcile(shown.proof),
    tableOf(shown.totals, {
      workspace: "workspace",
      "days loaded": "days",
      traces: "traces",
      "last 7 days": "lastWeek",
    }),
    describeProbe(shown.probe),
    `${shown.seconds.toFixed(1)} s`,
  ].join("\n\n");
}

/** Says what may be behind different totals of dimensions, where all is loaded and some may still change: they look like a fault. */
export function unevenStrides(
  extracted: readonly Pick<StoredTotals, "stride" | "traces">[],
  loaded: readonly RangeLine[],
): string[] {
  return STRIDES.flatMap((stride) => {
    const totals = extracted.filter((one) => one.stride === stride).map(({ traces }) => traces);
    const difference = Math.max(...totals) - Math.min(...totals);
    const lines = loaded.filter((line) => line.stride === stride);
    const mayChange = lines.every(isLoaded) && lines.some(({ status }) => status === "provisional");
    if (!(difference > 0) || !mayChange) return [];
    return [
      `The dimensions differ by up to ${counted(difference, "trace")} (stride ${stride}). Each was asked at another moment, and provisional buckets may have counted more in between.`,
    ];
  });
}
