import fc from "fast-check";
import { expect, test } from "vitest";
import { GROUPINGS } from "../../../src/core/domain/usage/record.ts";
import { times } from "../../support/drawn.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import type { Command } from "./model/commands.ts";
import { history } from "./model/histories.ts";
import { History } from "./model/history.ts";
import { setupSource, setupStore } from "./setup.ts";

const numRuns = times(6);

const FINAL_NOW = `
  SELECT s.scope_id, x.entity_id, r.bucket_start::text AS usage_date, r.traces::text
  FROM usage.coverage c
  JOIN usage.trace_scope s USING (scope_id)
  JOIN usage.series x USING (scope_id)
  JOIN usage.dated_record r
    ON r.series_id = x.series_id
   AND r.bucket_start >= (c.period_start AT TIME ZONE 'UTC')::date AND r.bucket_start < (c.period_end AT TIME ZONE 'UTC')::date
  WHERE c.final AND s.stride = 'day' AND r.traces > 0
  ORDER BY 1, 2, 3`;
const FINAL_DAYS = `
  SELECT c.scope_id, day::date::text AS usage_date
  FROM usage.coverage c
  JOIN usage.trace_scope s USING (scope_id)
  CROSS JOIN LATERAL generate_series(c.period_start AT TIME ZONE 'UTC', c.period_end AT TIME ZONE 'UTC' - interval '1 s', interval '1 day') day
  WHERE s.stride = 'day' AND c.final
  ORDER BY 1, 2`;
const AS_OF = "FROM unnest($2::text[]) g CROSS JOIN LATERAL usage.daily_as_of($1, g) a";

test("an as-of query returns what was final at the instant, for any instant of any history", async () => {
  const bundle = await setupStore();
  const { reader } = bundle;
  const rowsOf = async (text: string, values: unknown[] = []) => (await reader.query(text, values)).rows;
  const holds = async (commands: Command[]) => {
    const past = await History.begin(bundle);
    const moments: { at: string; figures: unknown[]; days: unknown[] }[] = [];
    for (const command of commands) {
      await past.run(command);
      moments.push({
        at: (await reader.query("SELECT clock_timestamp()::text AS at")).rows[0].at,
        figures: await rowsOf(FINAL_NOW),
        days: await rowsOf(FINAL_DAYS),
      });
    }
    for (const { at, figures, days } of moments) {
      const then = await rowsOf(
        `SELECT a.scope_id, a.entity_id, a.usage_date::text, a.traces::text
         ${AS_OF} WHERE a.entity_id IS NOT NULL ORDER BY 1, 2, 3`,
        [at, GROUPINGS],
      );
      expect(then, `as of ${at}`).toEqual(figures);
      const daysThen = `SELECT DISTINCT a.scope_id, a.usage_date::text ${AS_OF} ORDER BY 1, 2`;
      expect(await rowsOf(daysThen, [at, GROUPINGS])).toEqual(days);
    }
  };
  await fc.assert(fc.asyncProperty(history, holds), { numRuns });
});

test("a load counts from its very instant on, and not a microsecond before", async () => {
  const workspaceId = "00000000-0000-4000-8000-000000000001";
  const { store, sourceId, reader } = await setupSource({
    workspaceIds: [workspaceId],
    dataStart: Date.parse("2026-03-01"),
  });
  const rowsOf = async (text: string, values: unknown[] = []) => (await reader.query(text, values)).rows;
  const load = (groupBy: "workspace" | "project", traces: number) =>
    loadRows(store, {
      sourceId,
      groupBy,
      workspaceId,
      window: windowOf("day", "2026-03-01", "2026-03-02"),
      rows: [["2026-03-01", workspaceId, traces]],
    });
  for (const groupBy of ["workspace", "project"] as const) {
    for (const traces of [5, 7, 9]) await load(groupBy, traces);
  }
  // As if that was an hour ago: only the past is answered.
  const fetchTokens = await rowsOf(`
    WITH final AS (UPDATE usage.became_final SET final_at = final_at - interval '1 hour' RETURNING scope_id, final_at AS at),
         restated AS (
           UPDATE usage.restatement SET restated_at = restated_at - interval '1 hour'
           RETURNING series_id, restated_at AS at, old_traces, new_traces
         )
    SELECT group_by, at::text, old::integer, new::integer
    FROM (
      SELECT scope_id, at, NULL::bigint AS old, 5 AS new FROM final
      UNION ALL
      SELECT scope_id, at, old_traces, new_traces FROM restated JOIN usage.series USING (series_id)
    ) s
    JOIN usage.trace_scope USING (scope_id) ORDER BY group_by, new`);
  expect(fetchTokens.map((fetchToken) => [fetchToken.group_by, fetchToken.old, fetchToken.new])).toEqual([
    ...["project", "workspace"].flatMap((by) => [
      [by, null, 5],
      [by, 5, 7],
      [by, 7, 9],
    ]),
  ]);
  for (const { group_by, at, old, new: changed } of fetchTokens) {
    const [exactly, before] = await Promise.all(
      ["0", "1 microsecond"].map((shift) =>
        rowsOf(
          `SELECT traces::integer FROM reporting_detail.usage_daily_as_of($1::timestamptz - $2::interval, $3)`,
          [at, shift, group_by],
        ),
      ),
    );
    expect(exactly, `${group_by} as of ${at}`).toEqual([{ traces: changed }]);
    expect(before, `${group_by} just before ${at}`).toEqual(old === null ? [] : [{ traces: old }]);
  }
});
