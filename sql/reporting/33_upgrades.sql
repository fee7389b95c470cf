-- Which projects have traces that became long-lived, month by month: the usual cause of a larger invoice than expected.
CREATE OR REPLACE VIEW reporting_detail.usage_upgrade_project_monthly AS
WITH project AS MATERIALIZED (
  -- What a project had in its month before comes from the same sort: joined to itself, each row would be compared with all others.
  SELECT g.*, lag(month_start) OVER months AS month_before, lag(longlived_traces) OVER months AS longlived_before,
         lag(traces) OVER months AS traces_before
  FROM (
    SELECT source_id, month_start, workspace_id, workspace_name, project_id, project_name,
           coalesce(sum(traces) FILTER (WHERE trace_tier = 'longlived'), 0)::bigint AS longlived_traces,
           -- Null where the short-lived ones are: then no share is known.
           CASE WHEN bool_and(traces IS NOT NULL) FILTER (WHERE trace_tier = 'shortlived') THEN sum(traces)::bigint END AS traces,
           bool_and(is_final) AS is_final
    FROM reporting_detail.fct_usage_project_by_tier_monthly
    WHERE is_complete
    GROUP BY source_id, workspace_id, project_id, month_start, workspace_name, project_name
  ) g
  WINDOW months AS (PARTITION BY source_id, workspace_id, project_id ORDER BY month_start)
),
whole AS MATERIALIZED (
  SELECT m.slug, m.workspace_id, m.month_start, v.reconciled_at, v.matched_at, v.proved_at
  FROM usage.figure_months m
  JOIN usage.source s USING (source_id)
  LEFT JOIN usage.day_proof p ON p.scope_id = m.scope_id
  LEFT JOIN usage.day_proof a ON a.scope_id = m.trace_scope_id
  CROSS JOIN LATERAL (
    SELECT greatest(m.month_start, s.data_start) AS first, (m.month_start + interval '1 month')::date - 1 AS last
  ) d
  -- Of both tiers. A month under way has days that nothing proves yet.
  CROSS JOIN LATERAL (
    SELECT usage.proved_by_both(
           usage.oldest_proof(p.starts, p.reconciled_at, d.first, d.last), usage.oldest_proof(a.starts, a.reconciled_at, d.first, d.last)
         ) AS reconciled_at,
         usage.proved_by_both(
           usage.oldest_proof(p.starts, p.matched_at, d.first, d.last), usage.oldest_proof(a.starts, a.matched_at, d.first, d.last)
         ) AS matched_at,
         usage.proved_by_both(
           usage.oldest_proof(p.starts, p.proved_at, d.first, d.last), usage.oldest_proof(a.starts, a.proved_at, d.first, d.last)
         ) AS proved_at
  ) v
  WHERE m.group_by = 'project' AND m.meter = 'shortlived' AND m.is_complete
),
late AS MATERIALIZED (
  SELECT src.slug, w.dimension_id AS workspace_id, e.dimension_id AS project_id,
         usage.month_of((t.bucket_start AT TIME ZONE 'UTC')::date) AS month_start,
         sum(coalesce(t.new_traces, 0) - coalesce(t.old_traces, 0))::bigint AS traces
  FROM usage.restatement t
  JOIN usage.series s USING (series_id)
  JOIN usage.scope c USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
  JOIN usage.labelled_entity e ON e.entity_id = s.entity_id
  WHERE c.kind = 'traces' AND c.trace_tier = 'longlived' AND c.group_by = 'project' AND c.stride = 'day'
  GROUP BY 1, 2, 3, 4
)
SELECT p.source_id, p.month_start, p.workspace_id, p.workspace_name, p.project_id, p.project_name, p.traces, p.longlived_traces,
       round(p.longlived_traces::numeric / nullif(p.traces, 0), 6)::numeric(7, 6) AS longlived_share,
       CASE WHEN m.slug IS NOT NULL THEN coalesce(b.longlived_traces, 0) END AS previous_longlived_traces,
       round(b.longlived_traces::numeric / nullif(b.traces, 0), 6)::numeric(7, 6) AS previous_longlived_share,
       CASE WHEN m.slug IS NOT NULL THEN p.longlived_traces - coalesce(b.longlived_traces, 0) END AS longlived_change,
       (round(p.longlived_traces::numeric / nullif(p.traces, 0), 6) - round(b.longlived_traces::numeric / nullif(b.traces, 0), 6))
         ::numeric(7, 6) AS longlived_share_change,
       coalesce(l.traces, 0) AS upgraded_when_final, p.is_final,
       p.traces IS NOT NULL AND x.reconciled_at IS NOT NULL AS is_reconciled,
       CASE WHEN p.traces IS NOT NULL THEN x.reconciled_at END AS reconciled_at,
       CASE WHEN p.traces IS NOT NULL THEN x.matched_at END AS totals_matched_at,
       CASE WHEN p.traces IS NOT NULL THEN x.proved_at END AS proved_at
FROM project p
JOIN whole x ON x.slug = p.source_id AND x.workspace_id = p.workspace_id AND x.month_start = p.month_start
LEFT JOIN whole m
  ON m.slug = p.source_id AND m.workspace_id = p.workspace_id AND m.month_start = (p.month_start - interval '1 month')::date
-- Of the calendar month before, if the project had usage in it.
CROSS JOIN LATERAL (
  SELECT CASE WHEN p.month_before = m.month_start THEN p.longlived_before END AS longlived_traces,
         CASE WHEN p.month_before = m.month_start THEN p.traces_before END AS traces
) b
LEFT JOIN late l
  ON l.slug = p.source_id AND l.workspace_id = p.workspace_id AND l.project_id = p.project_id AND l.month_start = p.month_start;
COMMENT ON VIEW reporting_detail.usage_upgrade_project_monthly IS 'The share of long-lived traces, which cost more, by project and month. Grain: calendar month (UTC) x workspace x project (key: source_id, month_start, workspace_id, project_id), months with usage whose days are all loaded in both tiers. Shows how many traces are long-lived, and how that changed since the month before. Traces add up over all of these; shares do not.';
