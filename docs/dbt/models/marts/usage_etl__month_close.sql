select source_id, month_start, group_by, workspace_id, source_id || ':' || workspace_id as workspace_key, dimension_id,
       closed_traces, adjustment_traces, current_traces, closed_at
from {{ source('usage_detail', 'fct_month_close_by_dimension') }}
where {{ usage_etl.only_sources() }}
