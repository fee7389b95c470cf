-- One row for each source and dimension that was not asked for lately, or never.
select s.source_id, f.group_by, max(f.fetched_at) as fetched_at
from (select distinct source_id from {{ source('usage', 'dim_workspace') }}) s
left join {{ source('usage', 'data_freshness') }} f on f.source_id = s.source_id and f.stride = 'day'
where {{ usage_etl.only_sources('s.source_id') }}
group by s.source_id, f.group_by
having coalesce(max(f.fetched_at), '-infinity') < now() - make_interval(hours => {{ var('usage_etl_stale_after_hours', 24) }})
