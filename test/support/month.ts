import { DateTime } from "luxon";
import { DAY_MS, HOUR_MS } from "../../src/domain/time/stride.ts";
import { type CloseRequest, type CloseResult, closeMonth } from "../../src/store/months/month-close.ts";
import { type Bench, setup } from "./source.ts";

/** A month to close: the last calendar one that is final to its end, new for each test of a file. */

export const WORKSPACE = 1;

export let bench: Bench;
export let month: { start: number; end: number };

/** `workspaces`: by their index at the stand-in. */
export async function setUpMonth(workspaces: readonly number[] = [WORKSPACE]): Promise<void> {
  bench = await setup({ days: 100, workspaces, hourlyForMs: HOUR_MS });
  const start = DateTime.fromMillis(bench.today - 4 * DAY_MS, { zone: "utc" })
    .startOf("month")
    .minus({ months: 1 });
  month = { start: start.toMillis(), end: start.plus({ months: 1 }).toMillis() };
}

export const load = (range = month) => bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });

type Options = Partial<Omit<CloseRequest, "sourceId" | "monthStart">>;

export async function close(options: Options = {}): Promise<CloseResult> {
  const [source] = await bench.sql<{ source_id: number }>("SELECT source_id FROM usage.source");
  // Before the first contact there is no source.
  const sourceId = source?.source_id ?? (await bench.open()).sourceId;
  const monthStart = new Date(month.start).toISOString().slice(0, 10);
  const by = { name: null, role: "operator", via: "command" } as const;
  return closeMonth(bench.store, {
    sourceId,
    monthStart,
    settleAfterMs: 3 * DAY_MS,
    withoutCosts: true,
    by,
    ...options,
  });
}

export const reasons = (result: CloseResult) =>
  result.state === "open" ? [...new Set(result.open.map((one) => one.reason))].sort() : result.state;

export const totals = () =>
  bench.sql<{ group_by: string; closed: number; adjustment: number; current: number }>(
    `SELECT group_by, sum(closed_traces)::bigint AS closed, sum(adjustment_traces)::bigint AS adjustment,
            sum(current_traces)::bigint AS current
     FROM reporting_detail.fct_month_close_by_dimension GROUP BY group_by ORDER BY group_by`,
  );

/** What the stand-in's book has for the month. */
export const booked = () => {
  const { organisation, ledger } = bench.standin;
  return organisation.streams
    .filter(({ project }) => project.workspace === organisation.workspaces[WORKSPACE])
    .reduce((sum, stream) => sum + (ledger.counts(stream, [month.start, month.end])[0] ?? 0), 0);
};
