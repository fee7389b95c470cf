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

CREATE OR REPLACE VIEW reporting.usage_reconciliation AS
SELECT src.slug AS source_id, c.group_by, c.stride, d.bucket_start AS period_start, w.label AS workspace_id,
       CASE WHEN d.external_id = '' THEN '(none)' ELSE d.external_id END AS dimension_id,
       d.stored_traces, d.export_traces, d.kind, d.state, d.found_at
FROM usage.reconciliation_difference d
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id;
