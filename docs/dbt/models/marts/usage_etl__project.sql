select source_id || ':' || project_id as project_key, source_id, project_id, project_name, first_seen_at, last_seen_at
from {{ source('usage', 'dim_project') }}
where {{ usage_etl.only_sources() }}
