import { Gauge, type Registry } from "prom-client";
import type { metricFacts } from "../../store/activity/metric-facts.ts";

type Stored = Awaited<ReturnType<typeof metricFacts>>;

/**
 * Registers the gauges that Postgres knows: every process shows the same values. Returns what sets them: undefined if
 * they could not be read, and whether Postgres (the primary) answered.
 */
export function registerStored(registry: Registry): (stored: Stored | undefined, isUp: boolean) => void {
  const registers = [registry];
  const gauge = (name: string, help: string, ...labels: string[]) =>
    new Gauge({ name: `usage_etl_${name}`, help, labelNames: ["source", ...labels], registers });
  const scope = ["group_by", "stride"];
  const gauges = {
    due: gauge("due_tasks", "Fetch tasks that wait or are queued.", "state"),
    oldest: gauge("oldest_due_seconds", "Age of the oldest fetch task that waits or is queued."),
    loaded: gauge("last_success_timestamp_seconds", "Time of the last load.", ...scope),
    final: gauge("final_until_timestamp_seconds", "End of final time.", ...scope),
    failures: gauge("failed_parts", "Ranges kept as failed or unverified.", "state"),
    open: gauge("reconciliation_open_differences", "Open differences from the export."),
    unresolved: gauge(
      "reconciliation_differences",
      "Differences that are left: open ones, and those where the platform contradicts itself.",
      ...["meter", "kind", "state"],
    ),
    reconciled: gauge(
      "last_reconciled_timestamp_seconds",
      "Time of the last range that was reconciled with the export without a difference left.",
    ),
    checked: gauge(
      "last_totals_check_timestamp_seconds",
      "Time of the last check of final days against totals that had no failure.",
    ),
    changes: gauge("final_changes_last_day", "Final counts that changed in the last day."),
    refused: gauge("source_refused", "1 while the platform refuses the key."),
    lost: gauge("lost_workspaces", "Workspaces that the key lost access to."),
    withdrawn: gauge(
      "withdrawn_zeros",
      "Zeros (days x dimensions) that were withdrawn since access to their workspace was lost, and are not loaded again.",
    ),
    fetches: gauge("fetches_last_hour", "Requests of the last hour, by outcome.", "outcome"),
    probeDifference: gauge(
      "probe_difference_traces",
      "Traces billed too many (negative: too few) in the last compared meter probe.",
      "group_by",
    ),
    probeDelay: gauge("probe_delay_seconds", "Delay of billing in the last compared meter probe."),
    probeVerdict: gauge("probe_verdict", "1 for the verdict of the last meter probe.", "state"),
    probeAt: gauge("probe_last_timestamp_seconds", "End of the last compared meter probe."),
  };
  const up = new Gauge({
    name: "usage_etl_database_up",
    help: "1 if Postgres answered this scrape.",
    registers,
  });
  return (stored, isUp) => {
    for (const one of Object.values(gauges)) one.reset();
    // An alert on this gauge says why the others are missing.
    up.set(isUp ? 1 : 0);
    if (stored === undefined) return;
    for (const { tasks, ...labels } of stored.due) gauges.due.set(labels, tasks);
    for (const { source, oldestDueSeconds, openDifferences, refused, ...access } of stored.sources) {
      gauges.lost.set({ source }, access.lostWorkspaces);
      gauges.withdrawn.set({ source }, access.withdrawnZeros);
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
    for (const { source, changes } of stored.finalChanges) gauges.changes.set({ source }, changes);
    for (const { fetches, ...labels } of stored.fetches) gauges.fetches.set(labels, fetches);
    for (const { source, groupBy, difference, delay, endedAt } of stored.probes) {
      gauges.probeDifference.set({ source, group_by: groupBy }, difference);
      if (delay !== null) gauges.probeDelay.set({ source }, delay);
      gauges.probeAt.set({ source }, endedAt);
    }
    for (const { source, state } of stored.probeVerdicts) gauges.probeVerdict.set({ source, state }, 1);
  };
}
