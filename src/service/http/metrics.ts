import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { metricFacts, type Reader } from "../../store/report/overview.ts";

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
  /** Counts a request to the platform; `status` is undefined where no answer came. */
  requestSent(sent: { source: string; status: number | undefined }): void;
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

/** Requests that a round of a source needs, and that its rate budget lets through until the next. */
interface SyncNeed {
  readonly source: string;
  readonly needed: number;
  readonly allowed: number;
}

export function createMetrics(
  reader: Reader,
  countQueues: () => Promise<readonly QueueCount[]> = async () => [],
  readNeeds: () => Promise<readonly SyncNeed[]> = async () => [],
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
    help: "Requests to the platform sent by this process, by HTTP status; none where no answer came.",
    labelNames: ["source", "status"],
    registers,
  });
  const rows = new Counter({
    name: "usage_etl_rows_total",
    help: "Records loaded by this process, by what became of them.",
    labelNames: ["source", "outcome"],
    registers,
  });
  const readStored = storedCapabilities(registry, reader);
  const queueJobs = new Gauge({
    name: "usage_etl_queue_jobs",
    help: "Jobs in Redis by BullMQ's own count; Postgres's is usage_etl_due_slices.",
    labelNames: ["queue", "state"],
    registers,
  });
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames: ["source"], registers });
  const needed = gauge("usage_etl_round_requests_needed", "Requests that unsettled time costs each round.");
  const allowed = gauge(
    "usage_etl_round_requests_allowed",
    "Requests that the rate budget lets through from round to round.",
  );
  return {
    jobDone: ({ job, source, seconds: took, counts }) => {
      jobs.inc({ kind: job, source, outcome: "done" });
      seconds.observe({ kind: job }, took);
      for (const outcome of ROW_OUTCOMES) {
        const count = counts[outcome];
        if (typeof count === "number" && count > 0) rows.inc({ source, outcome }, count);
      }
    },
    // A counter of each process, for rate() and sum(): the ledger in Postgres is pruned, and knows no request but for usage.
    requestSent: ({ source, status }) => requests.inc({ source, status: status ?? "none" }),
    jobFailed: ({ job, source, code }) => jobs.inc({ kind: job, source, outcome: code }),
    text: async () => {
      await readStored();
      queueJobs.reset();
      // Without Redis the rest is shown all the same; /readyz says that it is away.
      for (const { queue, state, jobs: count } of await countQueues().catch(() => [])) {
        queueJobs.set({ queue, state }, count);
      }
      for (const one of [needed, allowed]) one.reset();
      // Without Postgres the rest is shown all the same, and usage_etl_database_up says so.
      for (const { source, ...need } of await readNeeds().catch(() => [])) {
        needed.set({ source }, need.needed);
        allowed.set({ source }, need.allowed);
      }
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
}

/** Gauges that are read from Postgres when they are asked for: every process shows the same. */
function storedCapabilities(registry: Registry, reader: Reader): () => Promise<void> {
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
  const unresolved = gauge(
    "reconciliation_differences",
    "Differences that are left: open, or of the platform's own two answers.",
    ["source", "kind", "state"],
  );
  const reconciled = gauge(
    "last_reconciled_timestamp_seconds",
    "When a part of time was last held against an export without a difference left.",
    ["source"],
  );
  const checked = gauge(
    "last_totals_check_timestamp_seconds",
    "When settled days were last held against totals, without a failure.",
    ["source"],
  );
  const settledChanges = gauge("settled_changes_last_day", "Settled counts that changed in the last day.", [
    "source",
  ]);
  const refused = gauge("source_refused", "1 while the platform refuses the key.", ["source"]);
  const fetches = gauge("fetches_last_hour", "Requests of the last hour, by outcome.", ["source", "outcome"]);
  const probeDifference = gauge(
    "probe_difference_traces",
    "Traces of the last probe that was compared: billed too many, or, negative, too few.",
    ["source", "group_by"],
  );
  const probeDelay = gauge(
    "probe_delay_seconds",
    "How long billing took in the last probe that was compared.",
    ["source"],
  );
  const probeAt = gauge("probe_last_timestamp_seconds", "When the last probe that was compared ended.", [
    "source",
  ]);
  const up = gauge("database_up", "1 where Postgres answered this scrape.");
  return async () => {
    const stored = [
      due,
      oldest,
      success,
      settled,
      failures,
      differences,
      refused,
      fetches,
      unresolved,
      reconciled,
      checked,
      settledChanges,
    ];
    for (const one of [...stored, probeDifference, probeDelay, probeAt]) one.reset();
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
      for (const row of facts.differences) {
        unresolved.set({ source: row.source, kind: row.kind, state: row.state }, row.differences);
      }
      for (const row of facts.reconciled) reconciled.set({ source: row.source }, row.at);
      for (const row of facts.checked) checked.set({ source: row.source }, row.at);
      for (const row of facts.settledChanges) settledChanges.set({ source: row.source }, row.changes);
      for (const row of facts.fetches) fetches.set({ source: row.source, outcome: row.outcome }, row.fetches);
      for (const { source, groupBy, difference, delay, endedAt } of facts.probes) {
        probeDifference.set({ source, group_by: groupBy }, difference);
        if (delay !== null) probeDelay.set({ source }, delay);
        probeAt.set({ source }, endedAt);
      }
      up.set(1);
    } catch {
      // The scrape goes on without these: an alert on this gauge says why they are missing.
      up.set(0);
    }
  };
}
