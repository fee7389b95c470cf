import fc from "fast-check";
import { expect, test } from "vitest";
import { GROUPINGS } from "../../../src/domain/usage/record.ts";
import type { Command } from "./model/commands.ts";
import { history } from "./model/histories.ts";
import { History } from "./model/history.ts";
import { setupStore } from "./setup.ts";

// An as-of query returns exactly what was settled at the instant, whatever happened afterwards.

const numRuns = Number(process.env.MODEL_RUNS ?? 60);
const timeout = 30_000 + numRuns * 2_000;

/** What is settled now, read from records and coverage alone. */
const SETTLED_NOW = `
  SELECT s.scope_id, x.entity_id, r.bucket_start::text AS usage_date, r.traces::text
  FROM usage.coverage c
  JOIN usage.scope s USING (scope_id)
  JOIN usage.series x USING (scope_id)
  JOIN usage.dated_record r
    ON r.series_id = x.series_id
   AND r.bucket_start >= (c.period_start AT TIME ZONE 'UTC')::date AND r.bucket_start < (c.period_end AT TIME ZONE 'UTC')::date
  WHERE c.settled AND s.stride = 'day' AND r.traces > 0
  ORDER BY 1, 2, 3`;
const SETTLED_DAYS = (table: string, where: string) => `
  SELECT t.scope_id, day::text
  FROM usage.${table} t
  JOIN usage.scope s USING (scope_id)
  CROSS JOIN LATERAL generate_series(t.period_start AT TIME ZONE 'UTC', t.period_end AT TIME ZONE 'UTC' - interval '1 s', interval '1 day') day
  WHERE s.stride = 'day' AND ${where}
  ORDER BY 1, 2`;

test("an as-of query returns what was settled at the instant, for any instant of any history", {
  timeout,
}, async () => {
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
        figures: await rowsOf(SETTLED_NOW),
        days: await rowsOf(SETTLED_DAYS("coverage", "t.settled")),
      });
    }
    for (const { at, figures, days } of moments) {
      const then = await rowsOf(
        `SELECT a.scope_id, a.entity_id, a.usage_date::text, a.traces::text
         FROM unnest($2::text[]) g CROSS JOIN LATERAL usage.daily_as_of($1, g) a ORDER BY 1, 2, 3`,
        [at, GROUPINGS],
      );
      expect(then, `as of ${at}`).toEqual(figures);
      expect(
        await rowsOf(SETTLED_DAYS("final_time", "t.settled_at <= $1 AND t.withdrawn_at > $1"), [at]),
      ).toEqual(days);
    }
  };
  await fc.assert(fc.asyncProperty(history, holds), { numRuns });
});
