select source_id, usage_date, workspace_id, project_id, traces, is_final, coverage_status, fetched_at
from {{ source('usage', 'fct_usage_project_daily') }}
where {{ usage_etl.only_sources() }}
