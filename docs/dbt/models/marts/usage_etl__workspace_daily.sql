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

select source_id, usage_date, workspace_id, source_id || ':' || workspace_id as workspace_key,
       case when is_final then workspace_traces end as traces, restatements, restated_at, day_state
from day
