{{ config(
  materialized='incremental',
  incremental_strategy='delete+insert',
  unique_key=['source_id', 'usage_date', 'workspace_id'],
  on_schema_change='append_new_columns',
  indexes=[{'columns': ['usage_date', 'source_id', 'workspace_id']}],
  post_hook='delete from {{ this }} where traces is null'
) }}

-- unique_key is the day x workspace, not the row: all rows of a day are replaced together, so that one that vanished does not
-- stay. Rows without traces delete a day that is no longer final; the hook removes them.
with day as (
{{ usage_etl.days_to_write('workspace') }}
)

select day.source_id, day.usage_date, day.workspace_id,
       day.source_id || ':' || day.workspace_id as workspace_key,
       case when day.is_final then coalesce(fact.traces, 0) end as traces,
       day.restatements, day.restated_at, day.day_state
from day
left join {{ ref('stg_usage_etl__workspace_daily') }} fact
  on fact.source_id = day.source_id and fact.usage_date = day.usage_date and fact.workspace_id = day.workspace_id
 -- Lets the database read the time of the days alone.
 and fact.usage_date >= (select min(usage_date) from day) and fact.usage_date <= (select max(usage_date) from day)
