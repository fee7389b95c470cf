-- Questions to the views, in March 2026. Run one in any tool, or all: psql "$DATABASE_URL" --file questions.sql

-- How much did each workspace use in a month, and is that all of it?
SELECT workspace_name, sum(traces) AS total_traces, count(*) - count(traces) AS days_missing, bool_and(is_final) AS all_final
FROM reporting.fct_usage_workspace_daily
WHERE usage_date >= '2026-03-01' AND usage_date < '2026-04-01'
GROUP BY workspace_id, workspace_name
ORDER BY total_traces DESC NULLS LAST;

-- Which projects use most, and how does that compare with the week before? Projects of several workspaces may share a name.
SELECT workspace_name, project_name,
       sum(traces) FILTER (WHERE usage_date >= '2026-03-08') AS this_week,
       sum(traces) FILTER (WHERE usage_date < '2026-03-08') AS week_before
FROM reporting.fct_usage_project_daily
WHERE usage_date >= '2026-03-01' AND usage_date < '2026-03-15' AND project_id IS NOT NULL
GROUP BY workspace_id, workspace_name, project_id, project_name
ORDER BY this_week DESC NULLS LAST
LIMIT 10;

-- Which users cause it? The platform names no user for the usage of (none).
SELECT coalesce(user_email, user_id) AS "user", sum(traces) AS total_traces,
       round(100 * sum(traces) / sum(sum(traces)) OVER (), 1) AS percent
FROM reporting.fct_usage_user_daily
LEFT JOIN reporting_detail.dim_user USING (source_id, user_id)
WHERE usage_date >= '2026-03-01' AND usage_date < '2026-04-01' AND user_id IS NOT NULL
GROUP BY user_id, user_email
ORDER BY total_traces DESC;

-- Which days are loaded and final?
SELECT group_by, status, count(*) AS days_x_workspaces, min(usage_date) AS first_day, max(usage_date) AS last_day
FROM reporting_detail.usage_coverage_daily
WHERE stride = 'day' AND usage_date >= '2026-03-01' AND usage_date < '2026-03-15'
GROUP BY group_by, status
ORDER BY group_by, status;

-- Which final figures changed later? Each row in the unit of its measure.
SELECT (period_start AT TIME ZONE 'UTC')::date AS usage_date, workspace_id, usage_kind, trace_tier, measure, old_amount, new_amount
FROM reporting_detail.usage_restatement
WHERE group_by = 'workspace' AND stride = 'day'
ORDER BY restated_at DESC
LIMIT 100;

-- Which figures can be sent? Days that are final and reconciled can.
SELECT workspace_name, sum(traces) FILTER (WHERE is_final AND is_reconciled) AS total_traces,
       count(*) FILTER (WHERE is_final AND is_reconciled) AS days,
       count(*) FILTER (WHERE NOT (is_final AND is_reconciled)) AS days_left_out, min(proved_at) AS first_proved_at
FROM reporting.fct_usage_workspace_daily
WHERE usage_date >= '2026-03-01' AND usage_date < '2026-04-01'
GROUP BY workspace_id, workspace_name
ORDER BY workspace_name;

-- What will it cost? This is an estimate from imported prices; usage_unpriced_daily lists the days that it leaves out.
SELECT date_trunc('month', usage_date::timestamp)::date AS month_start, workspace_name, currency,
       sum(estimated_cost) AS total_cost, bool_and(is_final) AS all_final
FROM reporting.fct_cost_workspace_daily
WHERE usage_date >= '2026-03-01' AND usage_date < '2026-04-01'
GROUP BY 1, workspace_id, workspace_name, currency
ORDER BY 1, total_cost DESC;

-- What does each user cost? This divides the same cost.
SELECT coalesce(user_email, dimension_id, 'not loaded by user') AS "user", currency, sum(estimated_cost) AS total_cost
FROM reporting_detail.fct_cost_by_id_daily c
LEFT JOIN reporting_detail.dim_user u ON u.source_id = c.source_id AND u.user_id = c.dimension_id
WHERE group_by = 'user' AND usage_date >= '2026-03-01' AND usage_date < '2026-04-01'
GROUP BY dimension_id, user_email, currency
ORDER BY total_cost DESC;

-- Which price is valid on a day?
SELECT sku, volume_tier, from_quantity, unit_price, currency, source_id, workspace_name
FROM reporting_detail.dim_price
WHERE valid_from <= DATE '2026-03-15' AND (valid_to IS NULL OR valid_to > DATE '2026-03-15')
ORDER BY sku, source_id, workspace_name, volume_tier;

-- Which team pays how much? The owner file gives (unallocated) to nobody, so the percentages add up to 100.
SELECT owner, cost_center, currency, sum(estimated_cost) AS total_cost,
       round(100 * sum(estimated_cost) / sum(sum(estimated_cost)) OVER (PARTITION BY currency), 1) AS percent, bool_and(is_final) AS all_final
FROM reporting.fct_cost_owner_daily
WHERE usage_date >= '2026-03-01' AND usage_date < '2026-04-01'
GROUP BY owner, cost_center, currency
ORDER BY total_cost DESC;

-- Which projects made the invoice grow? Long-lived traces cost more; upgraded_when_final came after the day was final.
SELECT workspace_name, project_name, traces, longlived_traces, longlived_share, longlived_change, upgraded_when_final
FROM reporting_detail.usage_upgrade_project_monthly
WHERE month_start = '2026-03-01'
ORDER BY longlived_change DESC NULLS LAST, longlived_traces DESC
LIMIT 10;

-- What did deployments use? Uptime is a raw sum over replicas.
SELECT workspace_name, dimension_id, dimension_name AS deployment,
       sum(quantity) FILTER (WHERE measure = 'nodes_executed') AS nodes,
       sum(quantity) FILTER (WHERE measure = 'agent_runs') AS runs,
       sum(quantity) FILTER (WHERE measure = 'agent_uptime_seconds') AS uptime_seconds, bool_and(is_final) AS all_final
FROM reporting_detail.fct_other_usage_daily
JOIN reporting_detail.dim_resource USING (source_id, group_by, dimension_id)
WHERE group_by = 'deployment' AND usage_date >= '2026-03-01' AND usage_date < '2026-04-01'
GROUP BY workspace_id, workspace_name, dimension_id, dimension_name
ORDER BY runs DESC;
