-- Projects with traces that became long-lived, month by month. Upgrades are the usual cause of an unexpectedly large
-- invoice.
CREATE OR REPLACE VIEW reporting_detail.usage_upgrade_project_monthly AS
WITH project AS (
  -- The figures of the month before come from the same sort. A self-join would compare each row with all others.
  SELECT g.*, lag(month_start) OVER months AS month_before, lag(longlived_traces) OVER months AS longlived_before,
         lag(traces) OVER months AS traces_before
  FROM (
    SELECT m.slug AS source_id, m.month_start, m.workspace_id, m.workspace_name, e.dimension_id AS project_id,
           e.dimension_name AS project_name, f.longlived AS longlived_traces,
           -- Null if the short-lived traces are null: then no share is known.
           CASE WHEN f.traces >= f.longlived THEN f.traces END AS traces,
           m.status = 'ok' AND (m.month_start + interval '1 month') <= (now() AT TIME ZONE 'UTC')
             AND f.traces >= f.longlived AS is_final
    FROM usage.tiers_month m
    -- Also projects with long-lived traces that have no traces.
    CROSS JOIN LATERAL (
      SELECT s.entity_id, coalesce(sum(t.traces) FILTER (WHERE s.scope_id = m.day_scope_id), 0)::bigint AS traces,
             coalesce(sum(t.traces) FILTER (WHERE s.scope_id = m.longlived_scope_id), 0)::bigint AS longlived
      FROM usage.series s
      JOIN usage.monthly_total t USING (series_id)
      WHERE s.scope_id IN (m.longlived_scope_id, m.day_scope_id) AND t.month_start = m.month_start
      GROUP BY s.entity_id
    ) f
    JOIN usage.labelled_entity e USING (entity_id)
    WHERE m.group_by = 'project' AND m.is_complete
  ) g
  WINDOW months AS (PARTITION BY source_id, workspace_id, project_id ORDER BY month_start)
),
whole AS (
  SELECT m.slug, m.workspace_id, m.month_start, v.reconciled_at, v.matched_at, v.proved_at
  FROM usage.tiers_month m
  JOIN usage.source s USING (source_id)
  CROSS JOIN LATERAL (
    SELECT greatest(m.month_start, s.data_start) AS first, (m.month_start + interval '1 month')::date - 1 AS last
  ) d
  -- The oldest proof of all days in both tiers. The current month has days that nothing proves yet.
  CROSS JOIN LATERAL (
    SELECT nullif(min(coalesce(x.reconciled_at, '-infinity')), '-infinity') AS reconciled_at,
           nullif(min(coalesce(x.matched_at, '-infinity')), '-infinity') AS matched_at,
           nullif(min(coalesce(x.proved_at, '-infinity')), '-infinity') AS proved_at
    FROM (VALUES (m.day_scope_id), (m.longlived_scope_id)) c (scope_id)
    LEFT JOIN usage.day_proof p ON p.scope_id = c.scope_id AND p.starts[1] <= d.first
    CROSS JOIN LATERAL (
      SELECT width_bucket(d.first, p.starts) AS first, width_bucket(d.last, p.starts) AS last
    ) i
    LEFT JOIN LATERAL unnest(
      p.reconciled_at[i.first : i.last], p.matched_at[i.first : i.last], p.proved_at[i.first : i.last]
    ) x (reconciled_at, matched_at, proved_at) ON true
  ) v
  WHERE m.group_by = 'project' AND m.is_complete
),
late AS (
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
SELECT p.source_id, p.month_start, p.workspace_id, p.workspace_name, p.project_id, p.project_name, p.traces,
       p.longlived_traces, round(p.longlived_traces::numeric / nullif(p.traces, 0), 6)::numeric(7, 6)
         AS longlived_share,
       CASE WHEN m.slug IS NOT NULL THEN coalesce(b.longlived_traces, 0) END AS previous_longlived_traces,
       round(b.longlived_traces::numeric / nullif(b.traces, 0), 6)::numeric(7, 6) AS previous_longlived_share,
       CASE WHEN m.slug IS NOT NULL THEN p.longlived_traces - coalesce(b.longlived_traces, 0) END AS longlived_change,
       (round(p.longlived_traces::numeric / nullif(p.traces, 0), 6)
           - round(b.longlived_traces::numeric / nullif(b.traces, 0), 6))
         ::numeric(7, 6) AS longlived_share_change,
       coalesce(l.traces, 0) AS upgraded_when_final, p.is_final,
       p.traces IS NOT NULL AND x.reconciled_at IS NOT NULL AS is_reconciled,
       CASE WHEN p.traces IS NOT NULL THEN x.reconciled_at END AS reconciled_at,
       CASE WHEN p.traces IS NOT NULL THEN x.matched_at END AS totals_matched_at,
       CASE WHEN p.traces IS NOT NULL THEN x.proved_at END AS proved_at
FROM project p
JOIN whole x ON x.slug = p.source_id AND x.workspace_id = p.workspace_id AND x.month_start = p.month_start
LEFT JOIN whole m
  ON m.slug = p.source_id AND m.workspace_id = p.workspace_id
    AND m.month_start = (p.month_start - interval '1 month')::date
-- Figures of the calendar month before, if the project had usage in it.
CROSS JOIN LATERAL (
  SELECT CASE WHEN p.month_before = m.month_start THEN p.longlived_before END AS longlived_traces,
         CASE WHEN p.month_before = m.month_start THEN p.traces_before END AS traces
) b
LEFT JOIN late l
  ON l.slug = p.source_id AND l.workspace_id = p.workspace_id AND l.project_id = p.project_id
    AND l.month_start = p.month_start;
COMMENT ON VIEW reporting_detail.usage_upgrade_project_monthly IS
  'Which share of traces is long-lived and so costs more, by project and month. Grain: calendar month (UTC) x '
  'workspace x project (key: source_id, month_start, workspace_id, project_id), months with usage whose days are all '
  'loaded in both tiers. It also shows the change since the month before. Traces add up over all keys, shares do not.';
CALL usage.comment_columns('{reporting_detail.usage_upgrade_project_monthly}',
  'traces',
    'Traces of the project in the month, of both tiers. Adds up over months, workspaces and projects. Null: there are '
    'more long-lived traces than traces.',
  'longlived_traces', 'Long-lived traces of the month. Adds up over months, workspaces and projects.',
  'longlived_share',
    'longlived_traces divided by traces, from 0 to 1. Does not add up. Null: the project has no traces.',
  'previous_longlived_traces',
    'Long-lived traces of the month before. Null: not all of its days are loaded. Does not add up over months.',
  'previous_longlived_share',
    'Share of long-lived traces in the month before. Does not add up. Null: not all of its days are loaded, or the '
    'project had no traces.',
  'longlived_change',
    'longlived_traces less those of the month before. Adds up over workspaces and projects. Null: not all days of '
    'the month before are loaded.',
  'longlived_share_change',
    'longlived_share less that of the month before: 0.1 is ten percentage points. Does not add up. Null: one of them '
    'is not known.',
  'upgraded_when_final',
    'Long-lived traces that came late: those added, less those removed, after the figures of their day were final. '
    'Adds up over months, workspaces and projects.',
  'is_reconciled',
    'Whether the month is over, each of its days was compared with complete CSV exports of all traces and of the '
    'long-lived ones, no difference remains, and no day has changed since.',
  'reconciled_at',
    'When the oldest of these exports was requested, by the clock of this database. Null: not reconciled.',
  'totals_matched_at',
    'When the oldest of the totals that equal the stored days of the month was requested, in both tiers; no day has '
    'changed since. Null: a day has no such total, or still has a difference.',
  'proved_at', 'The oldest proof of a day of the month, in both tiers. Null: a day is not proved.'
);
