import fc from "fast-check";
import { expect, test } from "vitest";
import { recentUsage } from "../../src/features/figures/recent-usage.store.ts";
import { type StoreBundle, setupStore } from "../integration/store/setup.ts";
import { seed, times } from "../support/drawn.ts";
import { state, write } from "./coverage-states.ts";

const SEED = seed();
const DAYS = 30;
const TOP = 1;

const whole = (column: string) => `CASE WHEN count(${column}) = count(*) THEN sum(${column})::float8 END`;
const LAST_MONTH = `(date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month')::date`;
const LATELY = `usage_date > (now() AT TIME ZONE 'UTC')::date - ${DAYS}`;
const leastOf = (month: string, plus = "") => `(
  SELECT coalesce(sum(d.traces), 0)::float8 FROM reporting.fct_usage_workspace_daily d
  WHERE d.source_id = m.source_id AND date_trunc('month', d.usage_date::timestamp) = ${month} ${plus}
)`;
const VIEWS = {
  days: `
    SELECT source_id AS source, usage_date AS date, ${whole("traces")} AS traces, bool_and(is_final) AS "isFinal"
    FROM reporting.fct_usage_workspace_daily WHERE ${LATELY} GROUP BY 1, 2 ORDER BY 2`,
  workspaces: `
    SELECT source_id AS source, workspace_id AS id, workspace_name AS name,
           array_agg(coalesce(traces, 0)::float8 ORDER BY usage_date) AS traces
    FROM reporting.fct_usage_workspace_daily WHERE ${LATELY}
    GROUP BY 1, 2, 3 HAVING sum(traces) > 0 ORDER BY sum(traces) DESC, 2 LIMIT ${TOP}`,
  months: `
    SELECT source_id AS source, to_char(month_start, 'YYYY-MM') AS month, ${whole("traces")} AS traces,
           coalesce(sum(provisional_traces), 0)::float8 AS provisional, ${whole("ended_traces")} AS ended,
           max(days_compared) AS days, ${whole("previous_same_days_traces")} AS before, ${leastOf(LAST_MONTH, "+ interval '1 month'")} AS least
    FROM reporting_detail.usage_month_to_date m GROUP BY 1, 2`,
  before: `
    SELECT source_id AS source, to_char(${LAST_MONTH}, 'YYYY-MM') AS month, ${whole("traces")} AS traces,
           bool_and(is_final) AS "isFinal", bool_and(proved_at IS NOT NULL) AS "isProved", false AS "isClosed",
           ${leastOf(LAST_MONTH)} AS least
    FROM reporting.fct_usage_workspace_daily m
    WHERE usage_date >= ${LAST_MONTH} AND usage_date < date_trunc('month', now() AT TIME ZONE 'UTC') GROUP BY 1`,
};

async function check({ store, reader }: StoreBundle, about: string): Promise<void> {
  const { days, workspaces, months, before } = await recentUsage(store.db, { days: DAYS, top: TOP });
  const shown = {
    days,
    workspaces: workspaces.map(({ source, id, name, traces }) => ({ source, id, name, traces })),
    // The view has null where none may change.
    months: months.map((one) => ({ ...one, provisional: one.provisional ?? 0 })),
    before,
  };
  for (const [what, text] of Object.entries(VIEWS)) {
    expect(shown[what as keyof typeof VIEWS], `${what} of ${about}`).toEqual((await reader.query(text)).rows);
  }
}

test(`the last days and two months are those of the views (seed ${SEED})`, async () => {
  const bundle = await setupStore();
  let complete = 0;
  for (const given of fc.sample(state, { seed: SEED, numRuns: times(4) })) {
    await write(bundle, given);
    await check(bundle, "a drawn state");
    // The rest of the days of workspaces is loaded, and a part of it final: so months are whole.
    for (const share of [0.5, 1]) {
      await bundle.reader.query(
        `INSERT INTO usage.coverage
         SELECT scope_id, d.starts, d.ends, random() < 0.8, 1, now(), '{}'
         FROM usage.trace_scope c, generate_series(0, 70) ago,
              LATERAL (SELECT n.day AT TIME ZONE 'UTC' AS starts, (n.day + interval '1 day') AT TIME ZONE 'UTC' AS ends
                       FROM (SELECT (now() AT TIME ZONE 'UTC')::date::timestamp - ago * interval '1 day' AS day) n) d
         WHERE group_by = 'workspace' AND stride = 'day' AND random() < $1 AND NOT EXISTS (
           SELECT FROM usage.coverage v WHERE v.scope_id = c.scope_id AND v.period_start < d.ends AND v.period_end > d.starts
         )`,
        [share],
      );
      await check(bundle, `the same, ${share} loaded`);
      const { months } = await recentUsage(bundle.store.db, { days: DAYS, top: TOP });
      complete += Number(months[0]?.traces !== null);
    }
  }
  expect(complete).toBeGreaterThan(0);
});
