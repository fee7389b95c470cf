import { expect, test } from "vitest";
import { DAY_MS, floorToGrid } from "../../src/core/domain/time/stride.ts";
import { addSource, connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { farFromTheNextHour } from "../support/source.ts";
import { loadRows, windowOf } from "../support/store.ts";

// The month under way and the calendar, held against sums that are made from what was loaded. They hold on every day of the
// year: `npm run test:clock -- --day 2027-03-30 --before 900 test/reporting/month-to-date.test.ts`.

const SETTLE_MS = 3 * DAY_MS;
const iso = (day: number) => new Date(day).toISOString().slice(0, 10);
/** The first day of a month, so many months away from the one that holds the day. */
const monthOf = (day: number, away = 0) => {
  const date = new Date(day);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + away, 1);
};
const daysFrom = (start: number, end: number) =>
  Array.from({ length: Math.max(0, (end - start) / DAY_MS) }, (_, n) => start + n * DAY_MS);

interface Loaded {
  readonly workspaceId: string;
  readonly dataStart: number;
  readonly figures: ReadonlyMap<number, number>;
}

let now: number;
let today: number;

function expected({ workspaceId, dataStart, figures }: Loaded) {
  const [month, next, before] = [monthOf(today), monthOf(today, 1), monthOf(today, -1)];
  const sum = (days: readonly number[], isWhole = true) =>
    days.length === 0 ||
    (isWhole && days.some((day) => !figures.has(day))) ||
    !days.some((day) => figures.has(day))
      ? null
      : String(days.reduce((all, day) => all + (figures.get(day) ?? 0), 0));
  const start = Math.max(month, dataStart);
  const ended = daysFrom(start, today);
  const isWhole = ended.every((day) => figures.has(day));
  const loaded = daysFrom(start, today + DAY_MS).filter((day) => figures.has(day));
  const final = loaded.filter((day) => day + DAY_MS + SETTLE_MS <= floorToGrid(now, DAY_MS));
  const provisional = loaded.filter((day) => !final.includes(day));
  const compared = daysFrom(before, Math.min(before + (today - month), month));
  const perDay = Number(sum(final)) / final.length;
  return {
    workspace_id: workspaceId,
    month_start: iso(month),
    days_in_month: String((next - month) / DAY_MS),
    days_ended: String(ended.length),
    days_final: String(final.length),
    days_provisional: String(provisional.length),
    traces: isWhole ? sum(loaded) : null,
    final_traces: sum(final),
    provisional_traces: sum(provisional),
    ended_traces: isWhole ? sum(ended) : null,
    days_compared: String(compared.length),
    previous_same_days_traces: sum(compared),
    previous_month_traces: sum(daysFrom(before, month)),
    run_rate_traces:
      isWhole && final.length > 0 ? String(Math.round((perDay * (next - start)) / DAY_MS)) : null,
  };
}

test("the month to date names its final and provisional part, the same days before and the run rate", async () => {
  const { store, url, sourceId } = await setupSource();
  now = await farFromTheNextHour(20_000);
  today = floorToGrid(now, DAY_MS);
  const before = monthOf(today, -1);
  const client = await connectPlain(url);
  await client.query("UPDATE usage.source SET data_start = $1", [iso(before - 40 * DAY_MS)]);
  const late = "00000000-0000-4000-8000-000000000009";
  const begun = Math.min(monthOf(today) + 4 * DAY_MS, today);
  const lateId = await addSource(store, { slug: "late", workspaceIds: [late], dataStart: iso(begun) });

  /** All days until today but those of `gaps`, each with a figure of its own. */
  const fill = async (id: number, workspaceId: string, from: number, gaps: readonly number[] = []) => {
    const figures = new Map<number, number>();
    for (const day of daysFrom(from, today + DAY_MS)) {
      if (gaps.includes(day)) continue;
      const traces = (new Date(day).getUTCDate() * 7919 + new Date(day).getUTCMonth() * 13) % 1000;
      figures.set(day, traces);
      await loadRows(store, {
        sourceId: id,
        workspaceId,
        groupBy: "workspace",
        settleAfterMs: SETTLE_MS,
        window: windowOf("day", iso(day), iso(day + DAY_MS)),
        rows: traces === 0 ? [] : [[iso(day), workspaceId, traces]],
      });
    }
    return figures;
  };
  const [whole, gap] = WORKSPACES;
  const all: Loaded[] = [
    { workspaceId: whole, dataStart: 0, figures: await fill(sourceId, whole, before) },
    { workspaceId: gap, dataStart: 0, figures: await fill(sourceId, gap, before, [before, monthOf(today)]) },
    { workspaceId: late, dataStart: begun, figures: await fill(lateId, late, begun) },
  ];
  const { rows } = await client.query(
    `SELECT ${Object.keys(expected(all[0] as Loaded)).join(", ")} FROM reporting_detail.usage_month_to_date ORDER BY workspace_id`,
  );
  expect(rows).toEqual(all.map(expected));

  const { rows: months } = await client.query(
    `SELECT m.workspace_id, m.month_start, m.traces, m.traces_loaded, m.is_complete, m.is_month_over, d.traces AS daily
     FROM (SELECT * FROM reporting_detail.fct_usage_monthly WHERE group_by = 'workspace') m
     JOIN (SELECT workspace_id, date_trunc('month', usage_date)::date AS month_start, sum(traces) AS traces
           FROM reporting.fct_usage_workspace_daily GROUP BY 1, 2) d USING (workspace_id, month_start)`,
  );
  expect(months.length).toBeGreaterThan(4);
  for (const one of months) {
    const about = `${one.workspace_id} ${one.month_start}`;
    expect(one.traces_loaded, about).toBe(one.daily);
    if (one.is_complete === "t") expect(one.traces, about).toBe(one.traces_loaded);
    else expect(one.traces, about).toBeNull();
    expect(one.is_month_over, about).toBe(one.month_start < iso(monthOf(today)) ? "t" : "f");
  }
  expect(months.some((one) => one.is_complete === "f" && one.traces_loaded !== null)).toBe(true);
  const current = months.filter((one) => one.month_start === iso(monthOf(today)));
  const started = rows.filter((one) => one.days_final !== "0" || one.days_provisional !== "0");
  expect(current.map((one) => one.traces).sort()).toEqual(started.map((one) => one.traces).sort());
});
