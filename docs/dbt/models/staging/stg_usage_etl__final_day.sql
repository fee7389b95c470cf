-- Final days of each dimension and workspace. day_state is another as soon as anything happened to the day: another status, a
-- restatement, a newer fetch, another count of the workspace.
with restated as (
  select source_id, group_by, workspace_id, (period_start at time zone 'UTC')::date as usage_date,
         count(*) as restatements, max(restated_at) as restated_at
  from {{ source('usage', 'usage_restatement') }}
  where stride in ('day', 'hour')
  group by 1, 2, 3, 4
)

select c.source_id, c.usage_date, c.workspace_id, c.group_by, c.status,
       coalesce(r.restatements, 0)::integer as restatements, r.restated_at,
       md5(concat_ws('|', c.status, r.restatements, extract(epoch from r.restated_at), w.traces,
                     extract(epoch from w.fetched_at))) as day_state
from {{ source('usage', 'usage_coverage_daily') }} c
left join restated r using (source_id, group_by, workspace_id, usage_date)
left join {{ source('usage', 'fct_usage_workspace_daily') }} w using (source_id, workspace_id, usage_date)
where c.stride = 'day' and c.status in ('ok', 'empty') and {{ usage_etl.only_sources('c.source_id') }}
