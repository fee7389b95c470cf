import type { Store } from "../../src/store/db/database.ts";
import { compactCoverage } from "../../src/store/retention/compact.ts";

/**
 * What the loads of all planned tasks would leave, without their records: an interval of coverage for each task and scope,
 * final up to three days ago. Loading it for real would take hours. Indexes are built afterwards, since row by row they take
 * minutes; foreign keys are not checked.
 */
export async function fillCoverage(store: Store): Promise<void> {
  await store.transaction(async ({ client }) => {
    const { rows } = await client.query(
      "SELECT pg_get_constraintdef(oid) AS overlap FROM pg_constraint WHERE conname = 'coverage_no_overlap'",
    );
    await client.query("SET LOCAL session_replication_role = replica");
    await client.query("TRUNCATE usage.coverage");
    await client.query("ALTER TABLE usage.coverage DROP CONSTRAINT coverage_no_overlap");
    await client.query(`
      INSERT INTO usage.coverage (scope_id, period_start, period_end, final, fetch_number, fetched_at, traced)
      SELECT u.scope_id, part.start, part.stop, part.stop <= c.cut, s.task_id, now(), tstzmultirange(tstzrange(part.start, part.stop))
      FROM usage.fetch_task s
      CROSS JOIN unnest(s.scope_ids) u (scope_id)
      CROSS JOIN (SELECT date_trunc('day', now(), 'UTC') - interval '3 days' AS cut) c
      CROSS JOIN LATERAL (VALUES
        (s.period_start, least(s.period_end, greatest(c.cut, s.period_start))),
        (greatest(c.cut, s.period_start), s.period_end)
      ) part (start, stop)
      WHERE part.start < part.stop`);
    await client.query(`ALTER TABLE usage.coverage ADD CONSTRAINT coverage_no_overlap ${rows[0].overlap}`);
    await client.query("TRUNCATE usage.fetch_task");
  });
  await analyze(store);
}

/** A week later: final intervals are old enough to be merged, which the nightly job does. Returns what that took. */
export async function compactOld(store: Store, sourceId: number): Promise<{ ms: number; removed: number }> {
  await store.transaction(async ({ client }) => {
    await client.query("UPDATE usage.coverage SET fetched_at = now() - interval '8 days' WHERE final");
  });
  await analyze(store);
  const startedAt = performance.now();
  const removed = await compactCoverage(store, { sourceId, olderThanDays: 7 });
  const ms = performance.now() - startedAt;
  await analyze(store);
  return { ms, removed };
}

async function analyze(store: Store): Promise<void> {
  await store.transaction(({ client }) => client.query("ANALYZE").then(() => undefined));
}
