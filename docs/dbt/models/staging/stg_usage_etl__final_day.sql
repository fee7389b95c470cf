{{ config(materialized='table', post_hook='analyze {{ this }}') }}

-- Final days of each dimension and workspace. day_state is another as soon as anything happened to the day: another status, a
-- restatement, a newer fetch, another count of the workspace. A table with statistics, and a union instead of joins: the database
-- cannot foresee how many rows the views have, and would compare each day with all others.
with part as (
  select source_id, usage_date, workspace_id, group_by, status, null::bigint as restatements, null::timestamptz as restated_at,
         null::bigint as traces, null::timestamptz as fetched_at
  from {{ source('usage_detail', 'usage_coverage_daily') }}
  where stride = 'day'
  union all
  select source_id, (period_start at time zone 'UTC')::date, workspace_id, group_by, null, count(*), max(restated_at), null, null
  from {{ source('usage_detail', 'usage_restatement') }}
  where usage_kind = 'traces' and trace_tier = 'all' and stride in ('day', 'hour')
  group by 1, 2, 3, 4
  union all
  select w.source_id, w.usage_date, w.workspace_id, g.group_by, null, null, null, w.traces, w.fetched_at
  from {{ source('usage', 'fct_usage_workspace_daily') }} w
  cross join (values ('workspace'), ('project'), ('user'), ('api_key')) g (group_by)
)

select source_id, usage_date, workspace_id, group_by, max(status) as status, coalesce(max(restatements), 0)::integer as restatements,
       max(restated_at) as restated_at, max(traces) as workspace_traces,
       md5(concat_ws('|', max(status), max(restatements), extract(epoch from max(restated_at)), max(traces),
                     extract(epoch from max(fetched_at)))) as day_state
from part
where {{ usage_etl.only_sources() }}
group by source_id, usage_date, workspace_id, group_by
having max(status) in ('ok', 'empty')
