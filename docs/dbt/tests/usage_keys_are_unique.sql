-- Made by `npm run schema` from the keys of the views.
SELECT 'backfill_status' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'backfill_status') }}
GROUP BY source_id, backfill_id
HAVING count(*) > 1
UNION ALL
SELECT 'bridge_workspace' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'bridge_workspace') }}
GROUP BY source_id, group_by, dimension_id, workspace_id
HAVING count(*) > 1
UNION ALL
SELECT 'data_freshness' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'data_freshness') }}
GROUP BY source_id, group_by, stride
HAVING count(*) > 1
UNION ALL
SELECT 'dim_api_key' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'dim_api_key') }}
GROUP BY source_id, api_key_short_key
HAVING count(*) > 1
UNION ALL
SELECT 'dim_billing_period' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'dim_billing_period') }}
GROUP BY source_id, period_end
HAVING count(*) > 1
UNION ALL
SELECT 'dim_name' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'dim_name') }}
GROUP BY source_id, group_by, dimension_id, valid_from
HAVING count(*) > 1
UNION ALL
SELECT 'dim_price' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'dim_price') }}
GROUP BY price_id, volume_tier
HAVING count(*) > 1
UNION ALL
SELECT 'dim_project' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'dim_project') }}
GROUP BY source_id, project_id
HAVING count(*) > 1
UNION ALL
SELECT 'dim_resource' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'dim_resource') }}
GROUP BY source_id, group_by, dimension_id
HAVING count(*) > 1
UNION ALL
SELECT 'dim_tag' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'dim_tag') }}
GROUP BY source_id, group_by, workspace_id, dimension_id, tag_key, valid_from
HAVING count(*) > 1
UNION ALL
SELECT 'dim_workspace' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'dim_workspace') }}
GROUP BY source_id, workspace_id
HAVING count(*) > 1
UNION ALL
SELECT 'fct_budget_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'fct_budget_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY budget_number, source_id, usage_date
HAVING count(*) > 1
UNION ALL
SELECT 'fct_close' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'fct_close') }}
GROUP BY source_id, period_start, period_end, group_by, workspace_id, dimension_id
HAVING count(*) > 1
UNION ALL
SELECT 'fct_close_cost' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'fct_close_cost') }}
GROUP BY source_id, period_start, workspace_id, sku, unit_price, currency
HAVING count(*) > 1
UNION ALL
SELECT 'fct_cost_by_id_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'fct_cost_by_id_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, group_by, workspace_id, dimension_id, sku
HAVING count(*) > 1
UNION ALL
SELECT 'fct_cost_owner_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'fct_cost_owner_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id, owner, cost_center, sku
HAVING count(*) > 1
UNION ALL
SELECT 'fct_cost_workspace_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'fct_cost_workspace_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id, sku, volume_tier
HAVING count(*) > 1
UNION ALL
SELECT 'fct_invoice_line' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'fct_invoice_line') }}
GROUP BY source_id, issuer, invoice_number, line_number
HAVING count(*) > 1
UNION ALL
SELECT 'fct_invoice_owner' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'fct_invoice_owner') }}
GROUP BY source_id, issuer, invoice_number, line_number, owner, cost_center
HAVING count(*) > 1
UNION ALL
SELECT 'fct_other_usage_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'fct_other_usage_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, measure, group_by, workspace_id, dimension_id
HAVING count(*) > 1
UNION ALL
SELECT 'fct_usage_api_key_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'fct_usage_api_key_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id, api_key_short_key
HAVING count(*) > 1
UNION ALL
SELECT 'fct_usage_by_id_hourly' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'fct_usage_by_id_hourly') }}
WHERE usage_hour >= now() - interval '3 days'
GROUP BY source_id, usage_hour, group_by, workspace_id, dimension_id
HAVING count(*) > 1
UNION ALL
SELECT 'fct_usage_monthly' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'fct_usage_monthly') }}
GROUP BY source_id, month_start, group_by, workspace_id, dimension_id
HAVING count(*) > 1
UNION ALL
SELECT 'fct_usage_owner_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'fct_usage_owner_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id, owner, cost_center
HAVING count(*) > 1
UNION ALL
SELECT 'fct_usage_project_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'fct_usage_project_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id, project_id
HAVING count(*) > 1
UNION ALL
SELECT 'fct_usage_user_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'fct_usage_user_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id, user_id
HAVING count(*) > 1
UNION ALL
SELECT 'fct_usage_workspace_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'fct_usage_workspace_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id
HAVING count(*) > 1
UNION ALL
SELECT 'fct_usage_workspace_hourly' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'fct_usage_workspace_hourly') }}
WHERE usage_hour >= now() - interval '3 days'
GROUP BY source_id, usage_hour, workspace_id
HAVING count(*) > 1
UNION ALL
SELECT 'focus_1_4_billing_period' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'focus_1_4_billing_period') }}
GROUP BY "InvoiceIssuerName", "x_BillingMonth"
HAVING count(*) > 1
UNION ALL
SELECT 'focus_1_4_cost_and_usage' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'focus_1_4_cost_and_usage') }}
WHERE "x_UsageDate" >= current_date - 45
GROUP BY "x_SourceId", "x_BillingMonth", "x_UsageDate", "SubAccountId", "SkuId", "SkuPriceId", "BillingCurrency", "ContractedUnitPrice"
HAVING count(*) > 1
UNION ALL
SELECT 'focus_1_4_cost_and_usage_by_resource' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'focus_1_4_cost_and_usage_by_resource') }}
WHERE "x_UsageDate" >= current_date - 45
GROUP BY "x_SourceId", "x_BillingMonth", "x_UsageDate", "SubAccountId", "SkuId", "SkuPriceId", "BillingCurrency", "ContractedUnitPrice", "ResourceType", "ResourceId", "Tags", "AllocatedMethodDetails"
HAVING count(*) > 1
UNION ALL
SELECT 'focus_1_4_invoice_detail' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'focus_1_4_invoice_detail') }}
GROUP BY "x_SourceId", "InvoiceIssuerName", "InvoiceDetailId"
HAVING count(*) > 1
UNION ALL
SELECT 'invoice_comparison' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'invoice_comparison') }}
GROUP BY source_id, issuer, invoice_number, cause_number
HAVING count(*) > 1
UNION ALL
SELECT 'owner_assignment' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'owner_assignment') }}
GROUP BY source_id, workspace_id, group_by, dimension_id, valid_from, owner, cost_center
HAVING count(*) > 1
UNION ALL
SELECT 'provider_statement_line' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'provider_statement_line') }}
GROUP BY source_id, taken_on, kind, line_id
HAVING count(*) > 1
UNION ALL
SELECT 'usage_bill_monthly' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage', 'usage_bill_monthly') }}
GROUP BY source_id, month_start, line_number
HAVING count(*) > 1
UNION ALL
SELECT 'usage_coverage_by_kind_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_coverage_by_kind_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id, group_by, kind, trace_tier
HAVING count(*) > 1
UNION ALL
SELECT 'usage_coverage_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_coverage_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id, group_by, stride
HAVING count(*) > 1
UNION ALL
SELECT 'usage_late_change' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_late_change') }}
GROUP BY source_id, observed_on, trace_tier, group_by, stride, was_final, age_hours
HAVING count(*) > 1
UNION ALL
SELECT 'usage_limit' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_limit') }}
GROUP BY source_id, workspace_id, limit_type
HAVING count(*) > 1
UNION ALL
SELECT 'usage_month_to_date' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_month_to_date') }}
GROUP BY source_id, workspace_id
HAVING count(*) > 1
UNION ALL
SELECT 'usage_provider_total' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_provider_total') }}
GROUP BY source_id, month_start, metric_id, workspace_id
HAVING count(*) > 1
UNION ALL
SELECT 'usage_reconciliation' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_reconciliation') }}
GROUP BY source_id, usage_kind, trace_tier, measure, kind, group_by, period_start, period_end, workspace_id, dimension_id
HAVING count(*) > 1
UNION ALL
SELECT 'usage_restatement' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_restatement') }}
GROUP BY source_id, usage_kind, trace_tier, measure, group_by, stride, period_start, workspace_id, dimension_id, restated_at
HAVING count(*) > 1
UNION ALL
SELECT 'usage_unattributed_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_unattributed_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id, group_by
HAVING count(*) > 1
UNION ALL
SELECT 'usage_unpriced_daily' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_unpriced_daily') }}
WHERE usage_date >= current_date - 45
GROUP BY source_id, usage_date, workspace_id
HAVING count(*) > 1
UNION ALL
SELECT 'usage_upgrade_project_monthly' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'usage_upgrade_project_monthly') }}
GROUP BY source_id, month_start, workspace_id, project_id
HAVING count(*) > 1
{% if not var('usage_etl_masked', false) -%}
UNION ALL
SELECT 'dim_user' AS view_name, count(*) AS rows_of_one_key
FROM {{ source('usage_detail', 'dim_user') }}
GROUP BY source_id, user_id
HAVING count(*) > 1
{%- endif %}
