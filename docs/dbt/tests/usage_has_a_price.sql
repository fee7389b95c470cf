{{ config(severity='warn') }}

-- Days with usage that no price is valid for: it costs nothing in the estimates. Empty without any price.
select source_id, usage_date, workspace_id, traces
from {{ source('usage_detail', 'usage_unpriced_daily') }}
where not has_other_price and {{ usage_etl.only_sources() }}
order by source_id, usage_date, workspace_id
