-- usage_reader_masked may not read addresses of users.
{{ config(enabled=not var('usage_etl_masked', false)) }}
select source_id || ':' || user_id as user_key, source_id, user_id, user_email, first_seen_at, last_seen_at
from {{ source('usage_detail', 'dim_user') }}
where {{ usage_etl.only_sources() }}
