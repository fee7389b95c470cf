import { isLoaded, type RangeLine } from "../../domain/coverage/range-status.ts";
import { STRIDES } from "../../domain/time/stride.ts";
import type { ProbeResult } from "../../pipeline/proof/probe.ts";
import type { ReconcileResult } from "../../pipeline/proof/reconcile.ts";
import type { FetchTotals, WorkspaceTotal } from "../../store/figures/load-totals.ts";
import { describeProbe } from "../commands/proof/probe.ts";
import { describeReconcile } from "../commands/proof/reconcile.ts";
import { describeRange, dimensionText } from "./load-report.ts";
import { counted, rowsOf, table } from "./output.ts";

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
      [extracted, ...unevenStrides(shown.extracted, shown.loaded), describeRange(shown.loaded)].join("\n"),
      describeReconcile(shown.proof),
      totals,
      describeProbe(shown.probe),
    ],
    `${shown.seconds.toFixed(1)} s`,
  ].join("\n\n");
}

/** Says what may be behind different totals of dimensions, where all is loaded and some may still change: they look like a fault. */
export function unevenStrides(
  extracted: readonly Pick<FetchTotals, "meter" | "stride" | "traces">[],
  loaded: readonly RangeLine[],
): string[] {
  return STRIDES.flatMap((stride) => {
    const totals = extracted
      .filter((one) => one.meter === "traces" && one.stride === stride)
      .map(({ traces }) => traces);
    const difference = Math.max(...totals) - Math.min(...totals);
    const lines = loaded.filter((line) => line.stride === stride);
    const mayChange = lines.every(isLoaded) && lines.some(({ status }) => status === "provisional");
    if (!(difference > 0) || !mayChange) return [];
    return [
      `The dimensions differ by up to ${counted(difference, "trace")} (stride ${stride}). Each was asked at another moment, and provisional buckets may have counted more in between.`,
    ];
  });
}
