import { DateTime } from "luxon";
import { monthAt } from "../../src/core/domain/months/month.ts";
import { DAY_MS, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import {
  type CloseRequest,
  type CloseResult,
  closePeriod,
} from "../../src/features/close/close-period.store.ts";
import { type Bench, setup } from "./source.ts";

export const WORKSPACE = 1;

export let bench: Bench;
export let month: { start: number; end: number };

export async function setUpMonth(workspaces: readonly number[] = [WORKSPACE]): Promise<void> {
  bench = await setup({ days: 100, workspaces, hourlyForMs: HOUR_MS });
  const start = DateTime.fromMillis(bench.today - 4 * DAY_MS, { zone: "utc" })
    .startOf("month")
    .minus({ months: 1 });
  month = { start: start.toMillis(), end: start.plus({ months: 1 }).toMillis() };
}

export const load = (range = month) => bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });

type Options = Partial<Omit<CloseRequest, "sourceId" | "period">>;

export async function acceptOpen(
  close: (accept: Pick<CloseRequest, "accept">) => Promise<CloseResult>,
): Promise<CloseResult> {
  const first = await close({});
  return first.state === "open" && first.digest !== null ? close({ accept: [first.digest] }) : first;
}

export const close = (options: Options = {}) =>
  closeBenchMonth(bench, new Date(month.start).toISOString().slice(0, 10), options);

/** Closes a month (its first day) without costs, unless `options` say otherwise. */
export async function closeBenchMonth(
  { sql, open, store }: Bench,
  monthStart: string,
  options: Options,
): Promise<CloseResult> {
  const [source] = await sql<{ source_id: number }>("SELECT source_id FROM usage.source");
  const sourceId = source?.source_id ?? (await open()).sourceId;
  const by = { name: null, role: "operator", via: "command" } as const;
  return closePeriod(store, {
    sourceId,
    period: monthAt(Date.parse(monthStart)),
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
     FROM reporting_detail.fct_close GROUP BY group_by ORDER BY group_by`,
  );

export const booked = () => {
  const { organisation, ledger } = bench.standin;
  return organisation.streams
    .filter(({ project }) => project.workspace === organisation.workspaces[WORKSPACE])
    .reduce((sum, stream) => sum + (ledger.counts(stream, [month.start, month.end])[0] ?? 0), 0);
};
