import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import { reconcileScheduled } from "../../../../src/pipeline/proof/reconcile.ts";
import { unreconciledDays } from "../../../../src/store/proof/reconciled-days.ts";
import type { Bench } from "../../../support/source.ts";
import { differences, inLedger, inStore } from "../../../support/tables.ts";

export const DAYS = 45;

export async function night(bench: Bench, days = DAYS, how: Parameters<Bench["open"]>[0] = {}) {
  const before = await sent(bench);
  const results = await reconcileScheduled(await bench.open(how), { days });
  const after = await sent(bench);
  return {
    results,
    /** Requests by purpose and stride that this night sent. */
    sent: Object.fromEntries(
      Object.entries(after).flatMap(([key, n]) =>
        n > (before[key] ?? 0) ? [[key, n - (before[key] ?? 0)]] : [],
      ),
    ),
    left: results.reduce((sum, { open, platformDisagrees }) => sum + open + platformDisagrees, 0),
    mended: results.reduce((sum, { repaired }) => sum + (repaired?.mended ?? 0), 0),
    failed: results.reduce(
      (sum, { failures, unverified, moved }) => sum + failures.length + unverified + moved,
      0,
    ),
  };
}

async function sent({ sql }: Bench): Promise<Record<string, number>> {
  const rows = await sql<{ key: string; n: number }>(
    "SELECT purpose || ' ' || stride AS key, count(*) AS n FROM usage.fetch GROUP BY 1",
  );
  return Object.fromEntries(rows.map(({ key, n }) => [key, n]));
}

export const unreconciled = (bench: Bench) =>
  unreconciledDays(bench.store.db, {
    sourceId: 1,
    range: { start: bench.dataStart, end: bench.today + DAY_MS },
  });

/** What is stored of final time, held against the stand-in's own book. */
export async function wrong(bench: Bench, stride: "day" | "hour", range: { start: number; end: number }) {
  const stored = await inStore(bench, [stride]);
  const within = new Map(
    [...stored].filter(([key]) => {
      const at = Date.parse(key.split(" ")[2] ?? "");
      return at >= range.start && at < range.end;
    }),
  );
  return differences(within, inLedger(bench.standin, { stride, range, workspaceIds: bench.workspaceIds }));
}
