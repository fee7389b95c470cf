-- A view, not incremental: importing prices changes the cost of any day.
select "x_SourceId" as source_id, "x_UsageDate" as usage_date, "SubAccountId" as workspace_id,
       "x_SourceId" || ':' || "SubAccountId" as workspace_key, "SkuId" as sku, "BillingCurrency" as currency,
       "ConsumedQuantity" as traces, "EffectiveCost" as estimated_cost, "x_IsFinal" as is_final
from {{ source('usage', 'focus_cost_usage_estimated') }}
where {{ usage_etl.only_sources('"x_SourceId"') }}
