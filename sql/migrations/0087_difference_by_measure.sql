-- Deployment usage differs from its export by measure: one id may differ in several of them in one bucket, and each has a state
-- of its own. Those differences have a table that inherits the present one. Reading, updating or emptying the present table
-- reaches them too, and its key stays as older releases need it to enter differences of traces.
ALTER TABLE usage.reconciliation_difference
  ADD COLUMN measure text NOT NULL DEFAULT 'traces',
  ADD CONSTRAINT reconciliation_difference_of_traces CHECK (measure = 'traces') NO INHERIT;

CREATE TABLE usage.measure_difference (
  CONSTRAINT measure_difference_pkey PRIMARY KEY (scope_id, bucket_start, external_id, measure),
  CONSTRAINT measure_difference_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.every_scope,
  CONSTRAINT measure_difference_measure_known CHECK (measure IN ('nodes_executed', 'agent_runs', 'agent_uptime_seconds'))
) INHERITS (usage.reconciliation_difference);
CREATE INDEX measure_difference_newest
  ON usage.measure_difference (found_at DESC, scope_id, bucket_start, external_id);
CREATE INDEX measure_difference_unresolved
  ON usage.measure_difference (scope_id, bucket_start) WHERE state IN ('open', 'platform_disagrees');

-- Totals differ by measure too. `tier_total`: the short-lived traces are not what all less the long-lived leave.
-- `tier_exceeds`: a tier has more traces than all tiers.
ALTER TABLE usage.control_difference
  ADD COLUMN measure text NOT NULL DEFAULT 'traces',
  ADD CONSTRAINT control_difference_measure_known CHECK (measure IN ('traces', 'nodes_executed', 'agent_runs', 'agent_uptime_seconds')),
  DROP CONSTRAINT control_difference_pkey,
  ADD CONSTRAINT control_difference_pkey PRIMARY KEY (scope_id, kind, period_start, period_end, external_id, measure),
  DROP CONSTRAINT control_difference_kind_known,
  ADD CONSTRAINT control_difference_kind_known CHECK (
    kind IN ('stride_total', 'grouping_total', 'provider_total', 'tier_total', 'tier_exceeds')
  );
