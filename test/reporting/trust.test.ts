import fc from "fast-check";
import { expect, test } from "vitest";
import type { Transaction } from "../../src/core/store/db/database.ts";
import { trustOfSources } from "../../src/features/coverage/trust.store.ts";
import { KEEP_PROOF } from "../support/by-hand.ts";
import { seed } from "../support/drawn.ts";
import { setup } from "../support/source.ts";

/** "Final and proved until" equals what the coverage view says day by day, whatever is loaded, failed, proved or not. */

const SEED = seed(20_261_122);

interface Day {
  day: string;
  status: string;
  is_proved: boolean;
  is_reconciled: boolean;
  is_requested: boolean;
  is_left_out: boolean;
}

async function expected({ client }: Transaction) {
  const sql = async <T>(text: string) => (await client.query(text)).rows as T[];
  const rows = await sql<Day>(`
    SELECT v.usage_date::text AS day, v.status, EXISTS (
             SELECT FROM usage.fetch_task t
             WHERE t.group_by = v.group_by AND v.workspace_id = ANY (t.workspace_ids) AND t.period_start <= v.usage_date
               AND t.period_end > v.usage_date
           ) AS is_requested, EXISTS (
             SELECT FROM usage.closed_workspace x JOIN usage.close m USING (close_id) JOIN usage.entity e ON e.entity_id = x.workspace_id
             WHERE x.is_left_out AND e.external_id = v.workspace_id AND m.month_start = date_trunc('month', v.usage_date)
           ) AS is_left_out, proved_at IS NOT NULL AS is_proved, is_reconciled
    FROM reporting_detail.usage_coverage_daily v
    WHERE stride = 'day' AND usage_date < (now() AT TIME ZONE 'UTC')::date ORDER BY 1`);
  const days = [...Map.groupBy(rows, ({ day }) => day)];
  const [{ start = "", today = "", open_from = "" } = {}] = await sql<Record<string, string>>(
    `SELECT data_start::text AS start, (now() AT TIME ZONE 'UTC')::date::text AS today,
            greatest(data_start, ((SELECT max(month_start) FROM usage.close) + interval '1 month')::date)::text AS open_from
     FROM usage.source`,
  );
  const [{ monthsNotClosed = 0 } = {}] = await sql<{ monthsNotClosed: number }>(`
    SELECT count(*)::integer AS "monthsNotClosed"
    FROM usage.source s, generate_series(date_trunc('month', s.data_start::timestamp), (SELECT max(month_start) FROM usage.close), '1 month') m
    WHERE NOT EXISTS (SELECT FROM usage.close c WHERE c.month_start = m)`);
  const [next] = await sql<{ nextMonth: string; nextLacksPrice: boolean }>(`
    SELECT month::date::text AS "nextMonth", NOT EXISTS (
             SELECT FROM usage.price p JOIN generate_series(month, month + interval '1 month' - interval '1 day', '1 day') day
               ON day >= p.valid_from AND day < coalesce(p.valid_to, 'infinity')
           ) AND EXISTS (
             SELECT FROM reporting.fct_usage_workspace_daily u
             WHERE u.traces > 0 AND date_trunc('month', u.usage_date::timestamp) = month
           ) AS "nextLacksPrice"
    FROM (SELECT date_trunc('month', coalesce((SELECT max(month_start) + interval '1 month' FROM usage.close), data_start)::timestamp) AS month
          FROM usage.source) s`);
  const isFinal = ({ status }: Day) => status === "ok" || status === "empty";
  const until = (holds: (day: Day) => boolean, from = start) =>
    days.find(([day, cells]) => day >= from && !cells.every(holds))?.[0] ?? today;
  const open = rows.filter(({ day, status }) => day >= start && /missing|failed|unverified/.test(status));
  const idle = open.filter((one) => !one.is_requested && !one.is_left_out);
  return {
    leftOutDays: open.filter((one) => !one.is_requested && one.is_left_out).length,
    idleDays: idle.length,
    failedDays: idle.filter(({ status }) => status === "failed").length,
    monthsNotClosed,
    ...next,
    firstIdle: idle[0]?.day ?? null,
    lastIdle: idle.at(-1)?.day ?? null,
    finalUntil: until(isFinal),
    provedUntil: until((day) => isFinal(day) && day.is_proved),
    reconciledUntil: until((day) => isFinal(day) && day.is_reconciled, open_from),
    gapDays: open.length,
  };
}

const CHANGES = [
  "DELETE FROM usage.coverage WHERE (scope_id, period_start) IN (SELECT scope_id, period_start FROM $days)",
  "UPDATE usage.coverage SET final = false WHERE scope_id IN (SELECT scope_id FROM $days)",
  `INSERT INTO usage.failure (scope_id, period_start, period_end, state, code, message, attempts, retry_at, fetch_number, failed_at)
   SELECT scope_id, $from, $to, 'failed', 'response_invalid', 'drawn', 1, now(), 1, now() FROM $days ON CONFLICT DO NOTHING`,
  `DELETE FROM usage.reconciled WHERE scope_id IN (SELECT scope_id FROM $days); ${KEEP_PROOF}`,
  "UPDATE usage.source SET data_start = least(data_start + 1, (now() AT TIME ZONE 'UTC')::date)",
  `INSERT INTO usage.fetch_task (source_id, stride, period_start, period_end, group_by, workspace_ids, scope_ids)
   SELECT c.source_id, 'day', $from, $to, c.group_by, ARRAY[e.external_id], ARRAY[c.scope_id]
   FROM $days JOIN usage.trace_scope c USING (scope_id) JOIN usage.entity e ON e.entity_id = c.workspace_id`,
  `WITH k AS (INSERT INTO usage.sku (name, measure) SELECT 'drawn', 'traces' WHERE NOT EXISTS (SELECT FROM usage.sku) RETURNING sku_id)
   INSERT INTO usage.price (sku_id, unit_price, currency, valid_from, valid_to)
   SELECT DISTINCT ON (sku_id) sku_id, 1, 'USD', ($from AT TIME ZONE 'UTC')::date, ($to AT TIME ZONE 'UTC')::date FROM k, $days`,
  `WITH m AS (
     INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements)
     SELECT c.source_id, m, m + interval '1 month', 0, 0 FROM $days JOIN usage.trace_scope c USING (scope_id),
          date_trunc('month', $from AT TIME ZONE 'UTC') m
     ON CONFLICT DO NOTHING RETURNING close_id
   ) INSERT INTO usage.closed_workspace (close_id, workspace_id, is_left_out)
   SELECT m.close_id, c.workspace_id, true FROM m, $days JOIN usage.trace_scope c USING (scope_id)`,
] as const;

test(`how far a source is final and proved is what its coverage says by day (seed ${SEED})`, async () => {
  const bench = await setup({ days: 9, workspaces: [0, 1] });
  await bench.sync();
  await bench.reconcile();
  const check = async (transaction: Transaction, about: string) => {
    const [trust] = await trustOfSources(transaction.db);
    expect(trust, about).toMatchObject(await expected(transaction));
    return trust;
  };
  const whole = await bench.store.transaction((transaction) => check(transaction, "all loaded"));
  expect(whole?.provedUntil).toBe(whole?.finalUntil);
  expect(whole?.finalUntil).not.toBe(whole?.dataStart);
  const step = fc.record({
    change: fc.constantFrom(...CHANGES),
    cell: fc.nat({ max: 7 }),
    from: fc.nat({ max: 8 }),
    days: fc.integer({ min: 1, max: 3 }),
  });
  const histories = fc.sample(fc.array(step, { minLength: 1, maxLength: 3 }), { seed: SEED, numRuns: 25 });
  for (const [n, steps] of histories.entries()) {
    const about = `${n}: ${steps.map(({ change, cell, from, days }) => `${change.slice(0, 30)} ${cell} ${from}+${days}`).join("; ")}`;
    const undone = new Error("undone");
    await bench.store
      .transaction(async (transaction) => {
        for (const one of steps) await transaction.client.query(statementOf(one, bench.dataStart));
        await check(transaction, about);
        throw undone;
      })
      .catch((error) => {
        if (error !== undone) throw error;
      });
  }
});

function statementOf(
  { change, cell, from, days }: { change: string; cell: number; from: number; days: number },
  dataStart: number,
): string {
  const at = (day: number) => `'${new Date(dataStart + day * 86_400_000).toISOString()}'::timestamptz`;
  const chosen = `(SELECT s.scope_id, c.period_start FROM usage.trace_scope s LEFT JOIN usage.coverage c USING (scope_id)
    WHERE s.stride = 'day' AND s.scope_id = (SELECT scope_id FROM usage.trace_scope WHERE stride = 'day' ORDER BY 1 OFFSET ${cell} LIMIT 1)
    ORDER BY 2 LIMIT 1) x`;
  return change
    .replaceAll("$days", chosen)
    .replace("$from", at(from))
    .replace("$to", at(from + days));
}
