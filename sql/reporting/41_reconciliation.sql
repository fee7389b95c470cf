-- Differences from the CSV export, and totals of the platform or of its billing provider that differ from the sum of
-- their days.
CREATE OR REPLACE VIEW reporting_detail.usage_reconciliation AS
SELECT src.slug AS source_id, c.kind AS usage_kind, c.trace_tier, d.measure, c.group_by,
       -- The billing provider's totals are for calendar months.
       CASE
         WHEN d.compared_with = 'export' THEN c.stride
         WHEN d.compared_with <> 'provider_total' THEN
           CASE extract(epoch FROM d.period_end - d.period_start)::bigint / 86400
             WHEN 1 THEN 'day' WHEN 7 THEN 'week' WHEN 30 THEN 'month' WHEN 365 THEN 'year' END
       END AS stride,
       d.period_start, d.period_end, w.dimension_id AS workspace_id,
       CASE WHEN d.kind = 'grouping_total' THEN '(all)' ELSE usage.shown_id(d.external_id) END AS dimension_id,
       usage.amount_of(d.measure, d.stored_traces)::numeric(26, 9) AS stored_amount,
       usage.amount_of(d.measure, d.other_traces)::numeric(26, 9) AS other_amount, d.kind, d.state, d.found_at,
       -- The export names a user by e-mail address. Not everybody who reads differences may see it.
       CASE WHEN c.group_by <> 'user' OR d.kind <> 'name_differs' THEN d.export_says END AS export_says
FROM usage.difference d
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id;
COMMENT ON VIEW reporting_detail.usage_reconciliation IS
  'Where the platform''s export or totals differed from the stored amounts, and how each difference ended. Grain: one '
  'difference between a stored amount and another figure of the platform, of any kind of usage (key: source_id, '
  'usage_kind, trace_tier, measure, kind, group_by, period_start, period_end, workspace_id, dimension_id). Differences '
  'with the state open or platform_disagrees still exist.';
CALL usage.comment_columns('{reporting_detail.usage_reconciliation}',
  'trace_tier', 'Retention tier of the traces: all, longlived or shortlived.',
  'measure',
    'What the amounts count: traces, or for deployments nodes_executed, agent_runs or agent_uptime_seconds (a raw '
    'sum over replicas), or for sandboxes lcu, lsu or standard units, or for evaluators spend_usd or evaluated_traces.',
  'stored_amount',
    'Stored amount of the measure. For a tier_total: the stored traces of all tiers less the long-lived ones. Null: no '
    'record. Does not add up.',
  'other_amount',
    'Amount in the CSV export, or the total that the stored days should add up to. Null: no record. Does not add up.',
  'kind',
    'How the amounts differ. From the CSV export: missing_in_store, missing_in_export, traces_differ (the amounts '
    'differ), bucket_end_differs, name_differs. From totals: stride_total (days compared with a window of weeks, '
    'months or years), grouping_total (a dimension compared with the workspace), tier_total (short-lived traces '
    'compared with all traces less the long-lived ones), tier_exceeds (more long-lived traces than traces), '
    'provider_total (a calendar month compared with the billing provider).',
  'state',
    'How the difference ended. open: will be fetched again; platform_disagrees: fetched twice, the platform '
    'contradicts itself; repaired: the stored count was outdated and was replaced; unattributed: the workspace has '
    'more traces than the ids of the dimension; closed: a later check did not find the difference; withdrawn: fetched '
    'again, the platform agrees with the stored count, and nothing was changed; not_configured: the workspace is no '
    'longer read; hours_dropped: the hour is no longer kept.',
  'found_at', 'When the difference was first found.',
  'export_says',
    'Name or end of the bucket in the CSV export, if it differs. Null: neither differs, or it is the name of a user.'
);
