-- A view, not incremental: importing prices changes the cost of any day of a month that is not closed.
select source_id, usage_date, workspace_id, source_id || ':' || workspace_id as workspace_key, sku, price_id, volume_tier,
       unit_price, currency, traces, estimated_cost, is_closed, is_final
from {{ source('usage', 'fct_cost_workspace_daily') }}
where {{ usage_etl.only_sources() }}
