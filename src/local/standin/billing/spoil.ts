import type { Fault } from "../faults.ts";
import type { Format, World } from "../world.ts";
import type { UsageQuery } from "./query.ts";
import { type Usage, usageOf } from "./usage.ts";

/** The answer to one query, wrong where a fault says so. */
export function answered(world: World, query: UsageQuery, format: Format, fault: Fault | null): Usage {
  const wrong = fault?.kind === "stride" ? (fault.stride ?? "coarser") : null;
  if (fault?.kind === "tier-excess") {
    const all = usageOf(world, { ...query, tier: null }, { wrong, format });
    const rows = all.rows.map((row) => ({ ...row, measured: { traces: (row.measured.traces ?? 0) + 1 } }));
    return { ...all, rows };
  }
  const usage = usageOf(world, query, { wrong, format });
  if (fault?.kind !== "measure") return usage;
  const { measure } = fault;
  if (fault.wrong === "missing") {
    const rows = usage.rows.map(({ measured: { [measure]: _, ...measured }, ...row }) => ({
      ...row,
      measured,
    }));
    return { ...usage, rows, missing: measure };
  }
  return {
    ...usage,
    rows: usage.rows.map((row) => {
      const right = row.measured[measure] ?? 0;
      const impossible = fault.wrong === "negative" ? -1 - right : right + 0.5;
      return { ...row, measured: { ...row.measured, [measure]: impossible } };
    }),
  };
}
