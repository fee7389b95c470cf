-- Differences from the CSV export, and totals of the platform or of its billing provider that differ from the sum of their days.
CREATE OR REPLACE VIEW reporting_detail.usage_reconciliation AS
SELECT src.slug AS source_id, c.kind AS usage_kind, c.trace_tier, d.measure, c.group_by, c.stride, d.bucket_start AS period_start,
       d.bucket_start
         + make_interval(hours => CASE c.stride WHEN 'hour' THEN 1 WHEN 'day' THEN 24 WHEN 'week' THEN 168 WHEN 'month' THEN 720 ELSE 8760 END)
         AS period_end,
       w.dimension_id AS workspace_id, usage.shown_id(d.external_id) AS dimension_id,
       d.stored_traces::numeric(26, 9) AS stored_amount, d.export_traces::numeric(26, 9) AS other_amount, d.kind, d.state, d.found_at,
       -- The export's name of a user is an e-mail address. Not everybody who reads differences may see it.
       CASE WHEN c.group_by <> 'user' OR d.kind <> 'name_differs' THEN d.export_says END AS export_says
FROM usage.reconciliation_difference d
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
UNION ALL
SELECT src.slug, c.kind, c.trace_tier, d.measure, c.group_by,
       -- The billing provider's totals are of calendar months.
       CASE CASE WHEN d.kind <> 'provider_total' THEN extract(epoch FROM d.period_end - d.period_start)::bigint / 86400 END WHEN 1 THEN 'day' WHEN 7 THEN 'week' WHEN 30 THEN 'month' WHEN 365 THEN 'year' END,
       d.period_start, d.period_end, w.dimension_id,
       CASE WHEN d.kind = 'grouping_total' THEN '(all)' ELSE usage.shown_id(d.external_id) END,
       usage.amount_of(d.measure, d.stored_traces)::numeric(26, 9), usage.amount_of(d.measure, d.control_traces)::numeric(26, 9), d.kind, d.state, d.found_at, NULL
FROM usage.control_difference d
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id;
COMMENT ON VIEW reporting_detail.usage_reconciliation IS 'Where the platform''s export or totals differed from what is stored, and what came of it. Still true are those with the state open or platform_disagrees. Grain: one difference between a stored amount and another figure of the platform, of any kind of usage (key: source_id, usage_kind, trace_tier, measure, kind, group_by, period_start, period_end, workspace_id, dimension_id).';
