-- An answer about deployments has three measures a record. Each is a series of its own in the one scope of the answer, so the
-- record tables stay as they are: their column `traces` holds the amount of the series' measure.
ALTER TABLE usage.series
  ADD COLUMN measure text NOT NULL DEFAULT 'traces',
  ADD CONSTRAINT series_measure_known CHECK (measure IN ('traces', 'nodes_executed', 'agent_runs', 'agent_uptime_seconds')),
  DROP CONSTRAINT series_identity,
  ADD CONSTRAINT series_identity UNIQUE (scope_id, entity_id, measure);

-- What deployment usage calls a project is a deployment. It is no dimension of traces and never joins a traced project.
ALTER TABLE usage.entity
  DROP CONSTRAINT entity_dimension_known,
  ADD CONSTRAINT entity_dimension_known CHECK (usage.dimension_position(dimension) IS NOT NULL OR dimension = 'deployment');
