select source_id, usage_date, workspace_id, source_id || ':' || workspace_id as workspace_key, group_by, workspace_traces,
       attributed_traces, unattributed_traces
from {{ source('usage_detail', 'usage_unattributed_daily') }}
where is_final and {{ usage_etl.only_sources() }}
