import { setTimeout as pause } from "node:timers/promises";
import type { Store } from "../../src/core/store/db/database.ts";
import { compactCoverage } from "../../src/core/store/retention/compact.ts";
import { countedOf, type Environment, memoryOf, startService } from "./processes.ts";

/** Steps of `npm run bench:scale`: workers at work, and the coverage that all loads would leave. */

export interface WorkersRun {
  readonly workers: number;
  readonly rate: number;
  readonly records: number;
  readonly cpuMs: number;
  readonly peakMb: number;
  readonly redisMb: number;
}

interface Watched {
  /** One number that a query returns. */
  readonly value: (query: string) => Promise<number>;
  readonly redisMb: () => Promise<number>;
}

const ENDED = "SELECT count(*) FROM usage.fetch WHERE outcome = 'loaded'";

export async function runWorkers(
  environment: Environment,
  { workers, seconds }: { workers: number; seconds: number },
  { value, redisMb }: Watched,
): Promise<WorkersRun> {
  const services = [
    startService(environment, "--role", "scheduler"),
    ...Array.from({ length: workers }, () => startService(environment, "--role", "worker")),
  ];
  try {
    const before = await value(ENDED);
    while (services.some(({ said }) => !said().includes("serving as"))) await pause(200);
    while ((await value(ENDED)) === before) await pause(200);
    await pause(10_000);
    const taking = services.slice(1).map(({ child }) => child);
    const [first, startedAt] = [await count(value), performance.now()];
    const cpuOfAll = () => sum(taking.map(({ pid }) => countedOf(pid).own));
    const cpuBefore = cpuOfAll();
    let most = 0;
    while (performance.now() - startedAt < seconds * 1000) {
      most = Math.max(most, await redisMb());
      await pause(500);
    }
    const [last, ms] = [await count(value), performance.now() - startedAt];
    const requests = last.requests - first.requests;
    return {
      workers,
      rate: (requests * 1000) / ms,
      records: last.records - first.records,
      cpuMs: (cpuOfAll() - cpuBefore) / Math.max(1, requests),
      peakMb: Math.max(...taking.map((child) => memoryOf(child).peak)),
      redisMb: most,
    };
  } finally {
    await Promise.all(services.map(({ close }) => close()));
  }
}

async function count(value: Watched["value"]) {
  return {
    requests: await value(ENDED),
    records: await value("SELECT coalesce(sum(records), 0) FROM usage.fetch WHERE outcome = 'loaded'"),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * What the loads of all planned tasks would leave, without their records: an interval of coverage for each window and scope,
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
      SELECT DISTINCT ON (o.scope_id, part.start)
        o.scope_id, part.start, part.stop, part.stop <= c.cut, s.task_id, now(), tstzmultirange(tstzrange(part.start, part.stop))
      FROM usage.fetch_task s
      -- A task by workspace leads to those of the other dimensions.
      CROSS JOIN LATERAL (
        SELECT o.scope_id FROM usage.scope w JOIN usage.scope o USING (source_id, kind, trace_tier, workspace_id, stride)
        WHERE w.scope_id = ANY (s.scope_ids) AND (s.group_by = 'workspace' OR o.scope_id = w.scope_id)
      ) o
      CROSS JOIN (SELECT date_trunc('day', now(), 'UTC') - interval '3 days' AS cut) c
      CROSS JOIN LATERAL (VALUES
        (s.period_start, least(s.period_end, greatest(c.cut, s.period_start))),
        (greatest(c.cut, s.period_start), s.period_end)
      ) part (start, stop)
      WHERE part.start < part.stop`);
    await client.query(`ALTER TABLE usage.coverage ADD CONSTRAINT coverage_no_overlap ${rows[0].overlap}`);
    await client.query("SELECT usage.keep_state(array_agg(scope_id)) FROM usage.scope");
    await client.query("TRUNCATE usage.fetch_task");
  });
  await analyze(store);
}

/** As if the responses to all tasks by workspace had come and had changed: what they lead to waits. */
export async function leadAll(store: Store): Promise<void> {
  await store.transaction(async ({ client }) => {
    await client.query(`
      WITH led AS (DELETE FROM usage.fetch_task WHERE group_by = 'workspace' RETURNING *)
      INSERT INTO usage.fetch_task (source_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
      SELECT source_id, o.group_by, stride, m.period_start, m.period_end, ARRAY[o.scope_id], ARRAY[m.workspace]
      FROM (SELECT period_start, period_end, unnest(scope_ids) AS scope_id, unnest(workspace_ids) AS workspace FROM led) m
      JOIN usage.scope w USING (scope_id)
      JOIN usage.scope o USING (source_id, kind, trace_tier, workspace_id, stride)
      WHERE o.group_by <> 'workspace'`);
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
