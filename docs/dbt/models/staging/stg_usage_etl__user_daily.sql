select source_id, usage_date, workspace_id, user_id, traces, is_final, coverage_status, fetched_at
from {{ source('usage', 'fct_usage_user_daily') }}
where {{ usage_etl.only_sources() }}
