CREATE OR REPLACE VIEW reporting.usage_record AS
SELECT src.slug AS source_id, c.group_by, c.stride, r.bucket_start AS period_start,
       r.bucket_start + interval '1 hour' AS period_end, w.label AS workspace_id, e.label AS dimension_id,
       e.name AS dimension_name, r.traces, v.settled AS is_settled, v.fetched_at
FROM usage.hourly_record r
JOIN usage.series s USING (series_id)
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id
JOIN usage.coverage v
  ON v.scope_id = c.scope_id AND v.period_start <= r.bucket_start AND v.period_end > r.bucket_start
UNION ALL
SELECT src.slug, c.group_by, c.stride, r.bucket_start::timestamp AT TIME ZONE 'UTC',
       (r.bucket_start + CASE c.stride WHEN 'day' THEN 1 WHEN 'week' THEN 7 WHEN 'month' THEN 30 ELSE 365 END)::timestamp
         AT TIME ZONE 'UTC',
       w.label, e.label, e.name, r.traces, v.settled, v.fetched_at
FROM usage.dated_record r
JOIN usage.series s USING (series_id)
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id
JOIN usage.coverage v
  ON v.scope_id = c.scope_id
 AND v.period_start <= r.bucket_start::timestamp AT TIME ZONE 'UTC'
 AND v.period_end > r.bucket_start::timestamp AT TIME ZONE 'UTC';

CREATE OR REPLACE VIEW reporting.usage_restatement AS
SELECT src.slug AS source_id, c.group_by, c.stride, t.bucket_start AS period_start, w.label AS workspace_id,
       e.label AS dimension_id, t.old_traces, t.new_traces, t.restated_at
FROM usage.restatement t
JOIN usage.series s USING (series_id)
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id;

-- Differences from the CSV export, and totals that are not the sum of their days.
CREATE OR REPLACE VIEW reporting.usage_reconciliation AS
SELECT src.slug AS source_id, c.group_by, c.stride, d.bucket_start AS period_start, w.label AS workspace_id,
       CASE WHEN d.external_id = '' THEN '(none)' ELSE d.external_id END AS dimension_id,
       d.stored_traces, d.export_traces, d.kind, d.state, d.found_at,
       d.bucket_start
         + make_interval(hours => CASE c.stride WHEN 'hour' THEN 1 WHEN 'day' THEN 24 WHEN 'week' THEN 168 WHEN 'month' THEN 720 ELSE 8760 END)
         AS period_end,
       -- An address of a user is not for everybody who may see differences.
       CASE WHEN c.group_by <> 'user' OR d.kind <> 'name_differs' THEN d.export_says END AS export_says
FROM usage.reconciliation_difference d
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
UNION ALL
SELECT src.slug, c.group_by,
       CASE extract(epoch FROM d.period_end - d.period_start)::bigint / 86400 WHEN 1 THEN 'day' WHEN 7 THEN 'week' WHEN 30 THEN 'month' WHEN 365 THEN 'year' END,
       d.period_start, w.label,
       CASE WHEN d.kind = 'grouping_total' THEN '(all)' WHEN d.external_id = '' THEN '(none)' ELSE d.external_id END,
       d.stored_traces, d.control_traces, d.kind, d.state, d.found_at, d.period_end, NULL
FROM usage.control_difference d
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id;

-- How late counts still changed. Ages count from the end of the bucket; the class holds changes younger than its bound.
CREATE OR REPLACE VIEW reporting.usage_late_change AS
SELECT src.slug AS source_id, l.observed_on, l.group_by, l.stride, l.was_settled, l.age_hours, l.changes, l.traces_moved
FROM usage.late_change l
JOIN usage.source src USING (source_id);
