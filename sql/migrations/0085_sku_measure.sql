-- What a SKU charges for: all traces, those of a retention tier, or a measure of deployment usage. A SKU has one measure, so that a
-- quantity of it always counts the same thing.
ALTER TABLE usage.sku
  ADD COLUMN measure text NOT NULL DEFAULT 'traces',
  ADD CONSTRAINT sku_measure_known CHECK (
    measure IN ('traces', 'longlived', 'shortlived', 'nodes_executed', 'agent_runs', 'agent_uptime_seconds')
  );
