select source_id || ':' || workspace_id as workspace_key, source_id, workspace_id, workspace_name, is_deleted, first_seen_at,
       last_seen_at
from {{ source('usage', 'dim_workspace') }}
where {{ usage_etl.only_sources() }}
