select source_id, usage_date, workspace_id, api_key_short_key, traces, is_final, coverage_status, fetched_at
from {{ source('usage', 'fct_usage_api_key_daily') }}
where {{ usage_etl.only_sources() }}
