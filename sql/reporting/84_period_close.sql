-- Current traces are of the days of the period as they are stored today.
CREATE OR REPLACE VIEW reporting_detail.usage_period_close AS
SELECT src.slug AS source_id, p.period_start, p.period_end, t.group_by, usage.shown_id(t.workspace) AS workspace_id,
       usage.shown_id(t.external_id) AS dimension_id, t.traces AS closed_traces, now.traces - t.traces AS adjustment_traces,
       now.traces AS current_traces, p.closed_at, p.settle_after_seconds, p.accepted_disagreements
FROM usage.period_close p
JOIN usage.source src USING (source_id)
JOIN usage.period_total t USING (period_close_id)
CROSS JOIN LATERAL (
  SELECT coalesce(sum(r.traces), 0)::bigint AS traces
  FROM usage.entity w
  JOIN usage.trace_scope c ON c.workspace_id = w.entity_id AND c.group_by = t.group_by AND c.stride = 'day'
  JOIN usage.series s USING (scope_id)
  JOIN usage.entity e ON e.entity_id = s.entity_id AND e.external_id = t.external_id
  JOIN usage.dated_record r USING (series_id)
  WHERE w.source_id = p.source_id AND w.dimension = 'workspace' AND w.external_id = t.workspace
    AND r.bucket_start >= p.period_start AND r.bucket_start < p.period_end
) now;
COMMENT ON VIEW reporting_detail.usage_period_close IS 'Closed billing periods that are no calendar months: traces when closed, and what changed since. Grain: closed billing period x dimension x workspace x id that had traces when it was closed (key: source_id, period_end, group_by, workspace_id, dimension_id). closed_traces never change. It overlaps calendar months: never add both. Never add up over dimensions.';
