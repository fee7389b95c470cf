-- Costs in the columns of FOCUS 1.2, estimated from imported prices. Names are spelled as in FOCUS, so that any reader of
-- FOCUS files can read this view. Our own columns begin with x_, as FOCUS asks.
-- It reads one dimension, the workspace: the others show the same traces and would charge them again. Days without traces
-- have no row: FOCUS wants a positive quantity.
CREATE OR REPLACE VIEW reporting.focus_cost_usage_estimated AS
SELECT u.cost AS "BilledCost",
       coalesce(s.organization_id, s.slug) AS "BillingAccountId",
       coalesce(s.organization_name, s.slug) AS "BillingAccountName",
       'Organization'::text AS "BillingAccountType",
       u.currency AS "BillingCurrency",
       (date_trunc('month', u.usage_date::timestamp) + interval '1 month') AT TIME ZONE 'UTC' AS "BillingPeriodEnd",
       date_trunc('month', u.usage_date::timestamp) AT TIME ZONE 'UTC' AS "BillingPeriodStart",
       'Usage'::text AS "ChargeCategory",
       -- Null: no correction of an earlier billing period.
       NULL::text AS "ChargeClass",
       concat(
         'Estimate: ', u.traces, ' traces of ', coalesce(u.workspace_name, u.workspace_id), ' on ', to_char(u.usage_date, 'YYYY-MM-DD'), ' at ',
         trim_scale(u.unit_price), ' ', u.currency, ' each (', u.sku, ')'
       ) AS "ChargeDescription",
       'Usage-Based'::text AS "ChargeFrequency",
       (u.usage_date + 1)::timestamp AT TIME ZONE 'UTC' AS "ChargePeriodEnd",
       u.usage_date::timestamp AT TIME ZONE 'UTC' AS "ChargePeriodStart",
       u.traces::numeric(20, 0) AS "ConsumedQuantity",
       'Traces'::text AS "ConsumedUnit",
       u.cost AS "ContractedCost",
       u.unit_price AS "ContractedUnitPrice",
       u.cost AS "EffectiveCost",
       -- No invoice: an estimate is not billed.
       NULL::text AS "InvoiceId",
       f.provider AS "InvoiceIssuerName",
       u.cost AS "ListCost",
       u.unit_price AS "ListUnitPrice",
       'Standard'::text AS "PricingCategory",
       u.traces::numeric(20, 0) AS "PricingQuantity",
       'Traces'::text AS "PricingUnit",
       f.provider AS "ProviderName",
       f.provider AS "PublisherName",
       'AI and Machine Learning'::text AS "ServiceCategory",
       'Agent platform traces'::text AS "ServiceName",
       'AI Platforms'::text AS "ServiceSubcategory",
       u.sku AS "SkuId",
       'Traces'::text AS "SkuMeter",
       u.price_id || CASE WHEN u.tier > 0 THEN '-' || u.tier ELSE '' END AS "SkuPriceId",
       u.workspace_id AS "SubAccountId",
       u.workspace_name AS "SubAccountName",
       'Workspace'::text AS "SubAccountType",
       '{}'::text AS "Tags",
       -- FOCUS 1.3 replaces ProviderName and PublisherName by these two.
       f.provider AS "ServiceProviderName",
       f.provider AS "HostProviderName",
       u.slug AS "x_SourceId",
       u.usage_date AS "x_UsageDate",
       u.is_final AS "x_IsFinal",
       u.coverage_status AS "x_CoverageStatus"
FROM usage.charge u
JOIN usage.source s USING (source_id)
-- All that is known of the provider is the host of the billing API, without scheme, port and path.
CROSS JOIN LATERAL (SELECT substring(s.base_url FROM '^[a-z]+://(?:[^/@]*@)?([^/:?#]+)') AS provider) f;
COMMENT ON VIEW reporting.focus_cost_usage_estimated IS 'Grain: UTC day x workspace x SKU x volume tier, days with usage on which a price is valid (key: x_SourceId, x_UsageDate, SubAccountId, SkuPriceId). An ESTIMATE from the imported prices, not an invoice: without taxes, discounts and commitments. Columns of FOCUS 1.2. Costs add up over all of these within one BillingCurrency; quantities add up within one SkuId. Empty without prices.';
