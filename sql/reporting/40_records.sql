CREATE OR REPLACE VIEW reporting_detail.usage_record AS
SELECT src.slug AS source_id, c.group_by, c.stride, r.bucket_start AS period_start,
       r.bucket_start + interval '1 hour' AS period_end, w.dimension_id AS workspace_id, e.dimension_id,
       CASE WHEN e.dimension <> 'user' THEN e.dimension_name END AS dimension_name, r.traces, v.final AS is_final,
       v.fetched_at
FROM usage.hourly_record r
JOIN usage.series s USING (series_id)
JOIN usage.trace_scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id
JOIN usage.coverage v
  ON v.scope_id = c.scope_id AND v.period_start <= r.bucket_start AND v.period_end > r.bucket_start
UNION ALL
SELECT src.slug, c.group_by, c.stride, r.bucket_start::timestamp AT TIME ZONE 'UTC',
       (r.bucket_start + CASE c.stride WHEN 'day' THEN 1 WHEN 'week' THEN 7 WHEN 'month' THEN 30
                              ELSE 365 END)::timestamp
         AT TIME ZONE 'UTC',
       w.dimension_id, e.dimension_id,
       CASE WHEN e.dimension <> 'user' THEN e.dimension_name END, r.traces, v.final, v.fetched_at
FROM usage.dated_record r
JOIN usage.series s USING (series_id)
JOIN usage.trace_scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id
JOIN usage.coverage v
  ON v.scope_id = c.scope_id
 AND v.period_start <= r.bucket_start::timestamp AT TIME ZONE 'UTC'
 AND v.period_end > r.bucket_start::timestamp AT TIME ZONE 'UTC';
COMMENT ON VIEW reporting_detail.usage_record IS
  'What is stored, record by record. Grain: one stored record, at its own stride (key: source_id, group_by, stride, '
  'period_start, workspace_id, dimension_id). NEVER SUM without one group_by and one stride: each shows the same '
  'traces in another way.';
CALL usage.comment_columns('{reporting_detail.usage_record}',
  'is_final',
    'Whether the record is final: it was fetched at least USAGE_SETTLE_AFTER after the UTC day of its bucket ended, or '
    'it was final before.'
);

CREATE OR REPLACE VIEW reporting_detail.usage_restatement AS
SELECT src.slug AS source_id, c.kind AS usage_kind, c.trace_tier, s.measure, c.group_by, c.stride,
       t.bucket_start AS period_start, w.dimension_id AS workspace_id, e.dimension_id,
       usage.amount_of(s.measure, t.old_traces)::numeric(26, 9) AS old_amount,
       usage.amount_of(s.measure, t.new_traces)::numeric(26, 9) AS new_amount, t.restated_at
FROM usage.restatement t
JOIN usage.series s USING (series_id)
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id;
COMMENT ON VIEW reporting_detail.usage_restatement IS
  'Which final figures were changed afterwards, and when. Grain: one change of a final figure, of any kind of usage '
  '(key: source_id, usage_kind, trace_tier, measure, group_by, stride, period_start, workspace_id, dimension_id, '
  'restated_at). Choose one usage_kind, trace_tier, measure, group_by and stride: never add up over two.';
CALL usage.comment_columns('{reporting_detail.usage_restatement}',
  'trace_tier', 'Retention tier of the traces: all, longlived or shortlived.',
  'measure',
    'What the amounts count: traces, or for deployments nodes_executed, agent_runs or agent_uptime_seconds (a raw '
    'sum over replicas), or for sandboxes lcu, lsu or standard units, or for evaluators spend_usd or evaluated_traces.',
  'old_amount',
    'Amount of the measure before the change. Null: no record. Does not add up: one bucket may change more than once.',
  'new_amount',
    'Amount of the measure after the change. Null: no record. Does not add up: one bucket may change more than once.',
  'restated_at', 'When the change was stored.'
);

-- How late counts still changed. The age is counted from the end of the bucket; a class holds the changes below its
-- bound.
CREATE OR REPLACE VIEW reporting_detail.usage_late_change AS
SELECT src.slug AS source_id, l.observed_on, l.trace_tier, l.group_by, l.stride, l.was_final, l.age_hours, l.changes,
       l.traces_moved
FROM usage.late_change l
JOIN usage.source src USING (source_id);
COMMENT ON VIEW reporting_detail.usage_late_change IS
  'How late counts still changed. Grain: day of observation x retention tier x dimension x stride x whether the count '
  'was final x class of ages (key: source_id, observed_on, trace_tier, group_by, stride, was_final, age_hours). Only '
  'changes of buckets that had ended before the previous response are counted. Never add up over tiers, dimensions or '
  'strides.';
CALL usage.comment_columns('{reporting_detail.usage_late_change}',
  'observed_on', 'UTC day on which the change was found.',
  'trace_tier', 'Requested retention tier: all, longlived or shortlived.',
  'was_final', 'Whether the count was final when it changed.',
  'age_hours', 'Upper end of the class of ages, in hours since the end of the bucket.',
  'changes',
    'Number of counts that changed. Adds up over days of observation and classes within one group_by and stride.',
  'traces_moved',
    'Sum of the absolute changes, in traces. Adds up over days of observation and classes within one group_by and '
    'stride.'
);
