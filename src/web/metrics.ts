import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Database } from "../core/store/db/database.ts";
import { within } from "./health.ts";
import { metricFacts } from "./metric-facts.ts";

/** No label has a user or project: there may be millions. */
export type Metrics = ReturnType<typeof createMetrics>;

interface QueueCount {
  readonly queue: string;
  readonly state: string;
  readonly jobs: number;
}

interface SyncNeed {
  readonly source: string;
  readonly needed: number;
  readonly allowed: number;
}

const ROW_OUTCOMES = ["inserted", "updated", "retired", "unchanged", "restated"] as const;

/** `readNeeds`: the requests that each source's sync needs, and that its rate limit allows until the next sync. */
export function createMetrics(
  db: Database,
  countQueues: () => Promise<readonly QueueCount[]>,
  readNeeds: () => Promise<readonly SyncNeed[]>,
) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: "usage_etl_" });
  // `promtool check metrics` refuses gauges with a counter's name. These are sums of gauges with the label `type`.
  for (const what of ["handles", "requests", "resources"])
    registry.removeSingleMetric(`usage_etl_nodejs_active_${what}_total`);
  const counts = registerCounts(registry);
  const showStored = registerStored(registry);
  const showQueues = registerQueues(registry);
  const showNeeds = registerNeeds(registry);
  return {
    ...counts,
    text: async () => {
      // If Redis or Postgres is away, the other metrics are shown. /readyz and usage_etl_database_up report the fault.
      const [stored, queues, needs] = await Promise.all([
        within(metricFacts(db)).catch(() => undefined),
        within(countQueues()).catch(() => []),
        within(readNeeds()).catch(() => []),
      ]);
      showStored(stored);
      showQueues(queues);
      showNeeds(needs);
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
}

function registerCounts(registry: Registry) {
  const registers = [registry];
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name: `usage_etl_${name}`, help, labelNames, registers });
  // Not `job`: Prometheus uses that label for the scrape.
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
    "Requests to the platform sent by this process, by HTTP status; none if no response came.",
    ...["source", "status"],
  );
  const rows = counter("rows_total", "Records loaded by this process, by outcome.", "source", "outcome");
  return {
    jobDone: (done: { job: string; source: string; seconds: number; counts: Record<string, unknown> }) => {
      const { job, source, seconds: took, counts } = done;
      jobs.inc({ kind: job, source, outcome: "done" });
      seconds.observe({ kind: job }, took);
      for (const outcome of ROW_OUTCOMES) {
        const count = counts[outcome];
        if (typeof count === "number" && count > 0) rows.inc({ source, outcome }, count);
      }
    },
    jobFailed: ({ job, source, code }: { job: string; source: string; code: string }) =>
      jobs.inc({ kind: job, source, outcome: code }),
    /** Postgres keeps only requests for usage, and prunes them. `status` undefined: there was no response. */
    requestSent: ({ source, status }: { source: string; status: number | undefined }) =>
      requests.inc({ source, status: status ?? "none" }),
  };
}

function registerQueues(registry: Registry): (counts: readonly QueueCount[]) => void {
  const help = "Jobs in Redis by BullMQ's own count. Postgres's count is usage_etl_due_tasks.";
  const gauge = gaugeOf(registry, "queue_jobs", help, "queue", "state");
  return (counts) => {
    gauge.reset();
    for (const { queue, state, jobs } of counts) gauge.set({ queue, state }, jobs);
  };
}

function registerNeeds(registry: Registry): (needs: readonly SyncNeed[]) => void {
  const gauge = (name: string, help: string) => gaugeOf(registry, name, help, "source");
  const needed = gauge("round_requests_needed", "Requests that each sync needs for provisional time.");
  const allowed = gauge(
    "round_requests_allowed",
    "Requests that the rate limit allows from one sync to the next.",
  );
  return (needs) => {
    for (const one of [needed, allowed]) one.reset();
    for (const { source, ...need } of needs) {
      needed.set({ source }, need.needed);
      allowed.set({ source }, need.allowed);
    }
  };
}

type Stored = Awaited<ReturnType<typeof metricFacts>>;

/** Returns a function that sets the gauges read from Postgres. Undefined: Postgres could not be read. */
function registerStored(registry: Registry): (stored: Stored | undefined) => void {
  const gauges = storedGauges(registry);
  const up = gaugeOf(registry, "database_up", "1 if Postgres responded to this scrape.");
  return (stored) => {
    for (const one of Object.values(gauges)) one.reset();
    // An alert on `database_up` explains why the other gauges are missing.
    up.set(stored === undefined ? 0 : 1);
    if (stored !== undefined) setStored(gauges, stored);
  };
}

function storedGauges(registry: Registry) {
  const gauge = (name: string, help: string, ...labels: string[]) =>
    gaugeOf(registry, name, help, "source", ...labels);
  const scope = ["group_by", "stride"];
  return {
    due: gauge("due_tasks", "Fetch tasks that wait or are queued.", "state"),
    oldest: gauge("oldest_due_seconds", "Age of the oldest fetch task that waits or is queued."),
    loaded: gauge("last_success_timestamp_seconds", "Time of the last load.", ...scope),
    final: gauge("final_until_timestamp_seconds", "End of final time.", ...scope),
    failures: gauge("failed_parts", "Ranges kept as failed or unverified.", "state"),
    open: gauge("reconciliation_open_differences", "Open differences from the export."),
    unresolved: gauge(
      "reconciliation_differences",
      "Remaining differences: open ones, and those where the platform contradicts itself.",
      ...["meter", "kind", "state"],
    ),
    reconciled: gauge(
      "last_reconciled_timestamp_seconds",
      "Time of the last range that was reconciled with the export without a remaining difference.",
    ),
    checked: gauge(
      "last_totals_check_timestamp_seconds",
      "Time of the last check of final days against totals without a failure.",
    ),
    changes: gauge(
      "final_changes_last_day",
      "Final figures that changed in the last day.",
      ...["meter", "measure"],
    ),
    refused: gauge("source_refused", "1 while the platform refuses the key."),
    lost: gauge("lost_workspaces", "Workspaces that the key lost access to."),
    withdrawn: gauge(
      "invalidated_zeros",
      "Zeros (daily figures) that were invalidated since access to their workspace was lost, and are not loaded again.",
    ),
    fetches: gauge("fetches_last_hour", "Requests of the last hour, by outcome.", "outcome"),
  };
}

function setStored(gauges: ReturnType<typeof storedGauges>, stored: Stored): void {
  for (const { tasks, ...labels } of stored.due) gauges.due.set(labels, tasks);
  for (const { source, oldestDueSeconds, openDifferences, refused, ...access } of stored.sources) {
    gauges.lost.set({ source }, access.lostWorkspaces);
    gauges.withdrawn.set({ source }, access.invalidatedZeros);
    gauges.oldest.set({ source }, oldestDueSeconds);
    gauges.open.set({ source }, openDifferences);
    gauges.refused.set({ source }, refused ? 1 : 0);
  }
  for (const { source, groupBy, stride, fetchedAt, finalUntil } of stored.freshness) {
    const labels = { source, group_by: groupBy, stride };
    gauges.loaded.set(labels, fetchedAt);
    if (finalUntil !== null) gauges.final.set(labels, finalUntil);
  }
  for (const { parts, ...labels } of stored.failures) gauges.failures.set(labels, parts);
  for (const { differences, ...labels } of stored.differences) gauges.unresolved.set(labels, differences);
  for (const { source, at } of stored.reconciled) gauges.reconciled.set({ source }, at);
  for (const { source, at } of stored.checked) gauges.checked.set({ source }, at);
  for (const { restatements, ...labels } of stored.finalChanges) gauges.changes.set(labels, restatements);
  for (const { fetches, ...labels } of stored.fetches) gauges.fetches.set(labels, fetches);
}

function gaugeOf<Label extends string>(registry: Registry, name: string, help: string, ...labels: Label[]) {
  return new Gauge({ name: `usage_etl_${name}`, help, labelNames: labels, registers: [registry] });
}
