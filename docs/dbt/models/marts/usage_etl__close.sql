select source_id, period_start, period_end, is_calendar_month, group_by, workspace_id,
       source_id || ':' || workspace_id as workspace_key, dimension_id, is_left_out, closed_traces, adjustment_traces, current_traces,
       closed_at
from {{ source('usage_detail', 'fct_close') }}
where {{ usage_etl.only_sources() }}
