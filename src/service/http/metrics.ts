import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { metricFacts } from "../../store/activity/metric-facts.ts";
import type { Database } from "../../store/db/database.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import type { Replica } from "../replica.ts";
import { registerReplica } from "./replica-metrics.ts";
import { registerStored } from "./stored-metrics.ts";
import { within } from "./within.ts";

/** What this process counts, and what Postgres knows at a scrape. No label names a user or project: there may be millions. */
export type Metrics = ReturnType<typeof createMetrics>;

const ROW_OUTCOMES = ["inserted", "updated", "retired", "unchanged", "restated"] as const;

/**
 * `readNeeds`: requests that a sync of a source needs, and that its rate limit allows until the next one. `replica`: where what
 * Postgres knows is read while it is near the primary.
 */
export function createMetrics(
  db: Database,
  countQueues: () => Promise<readonly { queue: string; state: string; jobs: number }[]>,
  readNeeds: () => Promise<readonly { source: string; needed: number; allowed: number }[]>,
  replica?: Pick<Replica, "read" | "seen">,
) {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: "usage_etl_" });
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name: `usage_etl_${name}`, help, labelNames, registers });
  // Not `job`: Prometheus keeps that label for the scrape.
  const jobs = counter("jobs_total", "Jobs ended, by outcome.", "kind", "source", "outcome");
  const seconds = new Histogram({
    name: "usage_etl_job_duration_seconds",
    help: "Duration of jobs that succeeded.",
    labelNames: ["kind"],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120],
    registers,
  });
  const requests = counter(
    "requests_total",
    "Requests to the platform sent by this process, by HTTP status; none if no answer came.",
    ...["source", "status"],
  );
  const rows = counter("rows_total", "Records loaded by this process, by outcome.", "source", "outcome");
  const showStored = registerStored(registry);
  const showReplica = replica && registerReplica(registry);
  const queueJobs = new Gauge({
    name: "usage_etl_queue_jobs",
    help: "Jobs in Redis by BullMQ's own count. Postgres's count is usage_etl_due_tasks.",
    labelNames: ["queue", "state"],
    registers,
  });
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames: ["source"], registers });
  const needed = gauge("usage_etl_round_requests_needed", "Requests that provisional time costs each sync.");
  const allowed = gauge(
    "usage_etl_round_requests_allowed",
    "Requests that the rate limit allows from one sync to the next.",
  );
  return {
    /** Counts what a job did, from the counts it logs. */
    jobDone: (done: { job: string; source: string; seconds: number; counts: Record<string, unknown> }) => {
      const { job, source, seconds: took, counts } = done;
      jobs.inc({ kind: job, source, outcome: "done" });
      seconds.observe({ kind: job }, took);
      for (const outcome of ROW_OUTCOMES) {
        const count = counts[outcome];
        if (typeof count === "number" && count > 0) rows.inc({ source, outcome }, count);
      }
    },
    /**
     * Counts a request to the platform; `status` is undefined if no answer came. Each process counts its own, for rate()
     * and sum(): Postgres keeps only usage requests, and prunes them.
     */
    requestSent: ({ source, status }: { source: string; status: number | undefined }) =>
      requests.inc({ source, status: status ?? "none" }),
    jobFailed: ({ job, source, code }: { job: string; source: string; code: string }) =>
      jobs.inc({ kind: job, source, outcome: code }),
    /** Prometheus text. */
    text: async () => {
      // Without Redis or Postgres the other metrics are still shown: /readyz and usage_etl_database_up report it.
      const [{ stored, isUp, isReplica }, counts, needs] = await Promise.all([
        readStored(db, replica),
        within(countQueues()).catch(() => []),
        within(readNeeds()).catch(() => []),
      ]);
      showStored(stored, isUp);
      if (replica !== undefined) showReplica?.({ ...replica.seen(), isUsed: isReplica });
      queueJobs.reset();
      for (const { queue, state, jobs: count } of counts) queueJobs.set({ queue, state }, count);
      for (const one of [needed, allowed]) one.reset();
      for (const { source, ...need } of needs) {
        needed.set({ source }, need.needed);
        allowed.set({ source }, need.allowed);
      }
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
}

/** `isUp`: the primary answers. What a replica says is no sign of it. */
async function readStored(primary: Database, replica: Pick<Replica, "read"> | undefined) {
  const missing = () => undefined;
  if (replica === undefined) {
    const stored = await within(metricFacts(primary)).catch(missing);
    return { stored, isUp: stored !== undefined, isReplica: false };
  }
  const reading = replica.read({ primary, mayBeOld: false }, async ({ db, age }) => ({
    stored: await metricFacts(db),
    isReplica: age !== undefined,
  }));
  const [read, now] = await Promise.all([
    within(reading).catch(missing),
    within(storeNow(primary)).catch(missing),
  ]);
  return { stored: read?.stored, isUp: now !== undefined, isReplica: read?.isReplica === true };
}
