import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { metricFacts, type Reader } from "../store/overview.ts";

/** What jobs count, and what Postgres knows at the time of a scrape. No label of a user or project: those have no end. */
export interface Metrics {
  /** Counts what a job did, from the result it logs. */
  jobDone(done: {
    job: string;
    source: string;
    seconds: number;
    counts: Readonly<Record<string, unknown>>;
  }): void;
  jobFailed(failed: { job: string; source: string; code: string }): void;
  /** Prometheus text. */
  text(): Promise<string>;
  readonly contentType: string;
}

const ROW_OUTCOMES = ["inserted", "updated", "retired", "unchanged", "restated"] as const;

/** Jobs of a queue by BullMQ's own count. */
interface QueueCount {
  readonly queue: string;
  readonly state: string;
  readonly jobs: number;
}

export function createMetrics(
  reader: Reader,
  countQueues: () => Promise<readonly QueueCount[]> = async () => [],
): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: "usage_etl_" });
  // Not `job`: Prometheus keeps that label for the scrape.
  const jobs = new Counter({
    name: "usage_etl_jobs_total",
    help: "Jobs ended, by outcome.",
    labelNames: ["kind", "source", "outcome"],
    registers,
  });
  const seconds = new Histogram({
    name: "usage_etl_job_duration_seconds",
    help: "Duration of jobs that succeeded.",
    labelNames: ["kind"],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120],
    registers,
  });
  const requests = new Counter({
    name: "usage_etl_requests_total",
    help: "Requests for usage sent by this process.",
    labelNames: ["source"],
    registers,
  });
  const rows = new Counter({
    name: "usage_etl_rows_total",
    help: "Records loaded by this process, by what became of them.",
    labelNames: ["source", "outcome"],
    registers,
  });
  const readStored = storedFacts(registry, reader);
  const queueJobs = new Gauge({
    name: "usage_etl_queue_jobs",
    help: "Jobs in Redis by BullMQ's own count; Postgres's is usage_etl_due_slices.",
    labelNames: ["queue", "state"],
    registers,
  });
  return {
    jobDone: ({ job, source, seconds: took, counts }) => {
      jobs.inc({ kind: job, source, outcome: "done" });
      seconds.observe({ kind: job }, took);
      if (typeof counts.requests === "number") requests.inc({ source }, counts.requests);
      for (const outcome of ROW_OUTCOMES) {
        const count = counts[outcome];
        if (typeof count === "number" && count > 0) rows.inc({ source, outcome }, count);
      }
    },
    jobFailed: ({ job, source, code }) => jobs.inc({ kind: job, source, outcome: code }),
    text: async () => {
      await readStored();
      queueJobs.reset();
      // Without Redis the rest is shown all the same; /readyz says that it is away.
      for (const { queue, state, jobs: count } of await countQueues().catch(() => [])) {
        queueJobs.set({ queue, state }, count);
      }
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
}

/** Gauges that are read from Postgres when they are asked for: every process shows the same. */
function storedFacts(registry: Registry, reader: Reader): () => Promise<void> {
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name: `usage_etl_${name}`, help, labelNames, registers: [registry] });
  const due = gauge("due_slices", "Slices that wait or stand in the queue.", ["source", "state"]);
  const oldest = gauge("oldest_due_seconds", "Age of the oldest slice that is due.", ["source"]);
  const success = gauge("last_success_timestamp_seconds", "When it was last loaded.", [
    "source",
    "group_by",
    "stride",
  ]);
  const settled = gauge("settled_until_timestamp_seconds", "End of settled time.", [
    "source",
    "group_by",
    "stride",
  ]);
  const failures = gauge("failed_parts", "Parts of time kept as failed or unverified.", ["source", "state"]);
  const differences = gauge("reconciliation_open_differences", "Open differences from the export.", [
    "source",
  ]);
  const refused = gauge("source_refused", "1 while the platform refuses the key.", ["source"]);
  const fetches = gauge("fetches_last_hour", "Requests of the last hour, by outcome.", ["source", "outcome"]);
  const up = gauge("database_up", "1 where Postgres answered this scrape.");
  return async () => {
    for (const one of [due, oldest, success, settled, failures, differences, refused, fetches]) one.reset();
    try {
      const facts = await metricFacts(reader);
      for (const row of facts.due) due.set({ source: row.source, state: row.state }, row.slices);
      for (const row of facts.sources) {
        oldest.set({ source: row.source }, row.oldestDueSeconds);
        differences.set({ source: row.source }, row.openDifferences);
        refused.set({ source: row.source }, row.refused ? 1 : 0);
      }
      for (const row of facts.freshness) {
        const labels = { source: row.source, group_by: row.groupBy, stride: row.stride };
        success.set(labels, row.fetchedAt);
        if (row.settledUntil !== null) settled.set(labels, row.settledUntil);
      }
      for (const row of facts.failures) failures.set({ source: row.source, state: row.state }, row.parts);
      for (const row of facts.fetches) fetches.set({ source: row.source, outcome: row.outcome }, row.fetches);
      up.set(1);
    } catch {
      // The scrape goes on without these: an alert on this gauge says why they are missing.
      up.set(0);
    }
  };
}
