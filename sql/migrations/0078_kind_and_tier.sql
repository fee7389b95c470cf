-- Usage of other kinds and tiers beside traces of all tiers. The table of all scopes gets a name of its own. `usage.scope` goes on
-- holding the scopes of traces of all tiers: so each query, view and older release that reads it keeps its meaning, and none
-- can add traces to deployment usage by leaving out a condition.
ALTER TABLE usage.scope RENAME TO every_scope;
ALTER TABLE usage.every_scope
  DROP CONSTRAINT scope_kind_known,
  DROP CONSTRAINT scope_trace_tier_known,
  ADD CONSTRAINT scope_kind_known CHECK (kind IN ('traces', 'langsmith_deployments')),
  ADD CONSTRAINT scope_trace_tier_known CHECK (
    trace_tier = 'all' OR (kind = 'traces' AND trace_tier IN ('longlived', 'shortlived'))
  );

-- Simple enough to be written to: what an older release inserts here has the defaults, traces and all.
CREATE VIEW usage.scope AS
SELECT scope_id, source_id, kind, trace_tier, group_by, workspace_id, stride
FROM usage.every_scope
WHERE kind = 'traces' AND trace_tier = 'all'
WITH CHECK OPTION;

ALTER TABLE usage.fetch
  ADD COLUMN kind text NOT NULL DEFAULT 'traces',
  ADD COLUMN trace_tier text NOT NULL DEFAULT 'all';

-- What a backfill asks for; that of an older release: traces of all tiers.
ALTER TABLE usage.backfill
  ADD COLUMN meter text NOT NULL DEFAULT 'traces',
  ADD CONSTRAINT backfill_meter_known CHECK (meter IN ('traces', 'longlived', 'shortlived', 'deployments'));
