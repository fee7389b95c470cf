-- Costs in the columns of FOCUS 1.2, estimated from imported prices. Names are spelled as in FOCUS, so that any reader of
-- FOCUS files can read this view. Our own columns begin with x_, as FOCUS asks.
-- It reads one dimension, the workspace: the others show the same traces and would charge them again. Days without traces
-- have no row: FOCUS wants a positive quantity.
CREATE OR REPLACE VIEW reporting.focus_cost_usage_estimated AS
-- Materialized: computed once, not for each day. Prices are few, entities are many.
WITH price AS MATERIALIZED (
  SELECT p.sku_id, k.name AS sku, p.price_id, p.unit_price, p.currency, p.valid_from, p.valid_to, p.source_id,
         p.workspace_id, w.external_id AS workspace
  FROM usage.price p
  JOIN usage.sku k USING (sku_id)
  LEFT JOIN usage.entity w ON w.entity_id = p.workspace_id
)
SELECT c.cost AS "BilledCost",
       coalesce(s.organization_id, s.slug) AS "BillingAccountId",
       coalesce(s.organization_name, s.slug) AS "BillingAccountName",
       'Organization'::text AS "BillingAccountType",
       p.currency AS "BillingCurrency",
       (date_trunc('month', u.usage_date::timestamp) + interval '1 month') AT TIME ZONE 'UTC' AS "BillingPeriodEnd",
       date_trunc('month', u.usage_date::timestamp) AT TIME ZONE 'UTC' AS "BillingPeriodStart",
       'Usage'::text AS "ChargeCategory",
       -- Null: no correction of an earlier billing period.
       NULL::text AS "ChargeClass",
       concat(
         'Estimate: ', u.traces, ' traces of ', coalesce(u.workspace_name, u.workspace_id), ' on ', to_char(u.usage_date, 'YYYY-MM-DD'), ' at ',
         trim_scale(p.unit_price), ' ', p.currency, ' each (', p.sku, ')'
       ) AS "ChargeDescription",
       'Usage-Based'::text AS "ChargeFrequency",
       (u.usage_date + 1)::timestamp AT TIME ZONE 'UTC' AS "ChargePeriodEnd",
       u.usage_date::timestamp AT TIME ZONE 'UTC' AS "ChargePeriodStart",
       u.traces::numeric(20, 0) AS "ConsumedQuantity",
       'Traces'::text AS "ConsumedUnit",
       c.cost AS "ContractedCost",
       p.unit_price AS "ContractedUnitPrice",
       c.cost AS "EffectiveCost",
       -- No invoice: an estimate is not billed.
       NULL::text AS "InvoiceId",
       f.provider AS "InvoiceIssuerName",
       c.cost AS "ListCost",
       p.unit_price AS "ListUnitPrice",
       'Standard'::text AS "PricingCategory",
       u.traces::numeric(20, 0) AS "PricingQuantity",
       'Traces'::text AS "PricingUnit",
       f.provider AS "ProviderName",
       f.provider AS "PublisherName",
       'AI and Machine Learning'::text AS "ServiceCategory",
       'Agent platform traces'::text AS "ServiceName",
       'AI Platforms'::text AS "ServiceSubcategory",
       p.sku AS "SkuId",
       'Traces'::text AS "SkuMeter",
       p.price_id::text AS "SkuPriceId",
       u.workspace_id AS "SubAccountId",
       u.workspace_name AS "SubAccountName",
       'Workspace'::text AS "SubAccountType",
       '{}'::text AS "Tags",
       -- FOCUS 1.3 replaces ProviderName and PublisherName by these two.
       f.provider AS "ServiceProviderName",
       f.provider AS "HostProviderName",
       u.source_id AS "x_SourceId",
       u.usage_date AS "x_UsageDate",
       u.is_final AS "x_IsFinal",
       u.coverage_status AS "x_CoverageStatus"
FROM reporting.fct_usage_workspace_daily u
JOIN usage.source s ON s.slug = u.source_id
CROSS JOIN LATERAL (
  SELECT DISTINCT ON (sku_id) sku, price_id, unit_price, currency
  FROM price
  WHERE valid_from <= u.usage_date AND (valid_to IS NULL OR valid_to > u.usage_date)
    AND (source_id IS NULL OR source_id = s.source_id) AND (workspace IS NULL OR workspace = u.workspace_id)
  -- The most specific price of each SKU.
  ORDER BY sku_id, workspace_id NULLS LAST, source_id NULLS LAST
) p
-- All that is known of the provider is the host of the billing API, without scheme, port and path.
CROSS JOIN LATERAL (SELECT substring(s.base_url FROM '^[a-z]+://(?:[^/@]*@)?([^/:?#]+)') AS provider) f
-- Exact: the factors have 18 and 19 digits, ten of them after the point.
CROSS JOIN LATERAL (SELECT (p.unit_price * u.traces)::numeric(38, 10) AS cost) c
-- Without prices the view reads no usage.
WHERE u.traces > 0 AND EXISTS (SELECT FROM usage.price);
COMMENT ON VIEW reporting.focus_cost_usage_estimated IS 'Grain: UTC day x workspace x SKU, days with usage on which a price is valid (key: x_SourceId, x_UsageDate, SubAccountId, SkuId). An ESTIMATE from the imported prices, not an invoice: without taxes, discounts, free allowances and commitments. Columns of FOCUS 1.2. Costs add up over all of these within one BillingCurrency; quantities add up within one SkuId. Empty without prices.';
