select source_id || ':' || user_id as user_key, source_id, user_id, user_email, first_seen_at, last_seen_at
from {{ usage_etl.usage_view('usage_detail', 'dim_user') }}
where {{ usage_etl.only_sources() }}
