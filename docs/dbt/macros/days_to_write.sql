{#
  Days x workspaces of a dimension that an incremental mart has to write: those that became final, and those whose state is
  another than when they were written. is_final is false where a day is final no longer, or its workspace is gone: then
  the mart deletes it. The comparison needs no clock and no watermark, so a change reaches the mart however old its day is, and
  however late it was committed.
#}
{% macro days_to_write(group_by) -%}
{%- if is_incremental() -%}
select source_id, usage_date, workspace_id, state.day_state is not null as is_final, state.day_state, state.restatements,
       state.restated_at, state.workspace_traces
from (select * from {{ ref('stg_usage_etl__final_day') }} where group_by = '{{ group_by }}') state
full join (select distinct source_id, usage_date, workspace_id, day_state from {{ this }}) written
  using (source_id, usage_date, workspace_id)
where state.day_state is distinct from written.day_state
{%- else -%}
select source_id, usage_date, workspace_id, true as is_final, day_state, restatements, restated_at, workspace_traces
from {{ ref('stg_usage_etl__final_day') }}
where group_by = '{{ group_by }}'
{%- endif -%}
{%- endmacro %}
