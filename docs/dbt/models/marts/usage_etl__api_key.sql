select source_id || ':' || api_key_short_key as api_key_key, source_id, api_key_short_key, first_seen_at, last_seen_at
from {{ source('usage_detail', 'dim_api_key') }}
where {{ usage_etl.only_sources() }}
