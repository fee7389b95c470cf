-- Costs in the columns of FOCUS, estimated from imported prices. Names are spelled as in FOCUS, so that any reader of FOCUS files
-- can read these views. Columns that are not of FOCUS begin with x_, as it asks.

-- Who provides and invoices the usage of a source. Without the settings all that is known is the host of the billing API, without
-- scheme, port and path.
CREATE OR REPLACE VIEW usage.provider AS
SELECT s.source_id, s.slug, coalesce(s.organization_id, s.slug) AS account_id, coalesce(s.organization_name, s.slug) AS account_name,
       p.name AS provider_name, coalesce(s.invoice_issuer_name, p.name) AS invoice_issuer_name, s.data_start, s.created_at
FROM usage.source s
CROSS JOIN LATERAL (
  SELECT coalesce(s.provider_name, substring(s.base_url FROM '^[a-z]+://(?:[^/@]*@)?([^/:?#]+)')) AS name
) p;

-- The name of each workspace in time: of those in use on a day, the one that went out of use first, since a later fetch of the day
-- may bring a newer one. A name lasts until the next one begins.
CREATE OR REPLACE VIEW usage.workspace_name AS
WITH known AS MATERIALIZED (
  SELECT n.entity_id, n.name, (n.first_bucket AT TIME ZONE 'UTC')::date AS first, (n.last_bucket AT TIME ZONE 'UTC')::date AS last,
         n.last_bucket, n.fetch_number
  FROM usage.workspace
  JOIN usage.entity_name n USING (entity_id)
),
step AS (
  SELECT entity_id, first AS day FROM known
  UNION
  SELECT entity_id, last + 1 FROM known
)
SELECT s.entity_id,
       daterange(CASE WHEN row_number() OVER days > 1 THEN s.day END, lead(s.day) OVER days) AS days,
       (
         SELECT k.name FROM known k
         WHERE k.entity_id = s.entity_id
         ORDER BY greatest(k.first - s.day, s.day - k.last, 0), k.last_bucket, k.fetch_number, k.name
         LIMIT 1
       ) AS name
FROM step s
WINDOW days AS (PARTITION BY s.entity_id ORDER BY s.day);

-- Properties of a price beside its amount: its volume tier, as texts, since FOCUS takes a number for one per unit.
CREATE OR REPLACE FUNCTION usage.price_details(tier integer, from_quantity bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN tier = 0 THEN '{}'
  ELSE jsonb_build_object('x_VolumeTier', tier::text, 'x_VolumeTierFrom', from_quantity::text)::text END;

-- What a quantity of a SKU counts: FOCUS's meter, its unit, and the service.
CREATE OR REPLACE FUNCTION usage.meter_name(measure text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE measure WHEN 'traces' THEN 'Traces' WHEN 'longlived' THEN 'Long-lived Traces' WHEN 'shortlived' THEN 'Short-lived Traces'
  WHEN 'nodes_executed' THEN 'Nodes Executed' WHEN 'agent_runs' THEN 'Agent Runs' WHEN 'agent_uptime_seconds' THEN 'Agent Uptime' END;

CREATE OR REPLACE FUNCTION usage.meter_unit(measure text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE measure WHEN 'nodes_executed' THEN 'Nodes' WHEN 'agent_runs' THEN 'Runs' WHEN 'agent_uptime_seconds' THEN 'Seconds'
  ELSE 'Traces' END;

CREATE OR REPLACE FUNCTION usage.service_name(measure text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN measure IN ('traces', 'longlived', 'shortlived') THEN 'Agent platform traces' ELSE 'Agent platform deployments' END;

-- These are columns of FOCUS 1.3, and the view is of 1.2. CREATE OR REPLACE cannot rename. Views of customers on them go on working.
DO $$
DECLARE
  one text;
BEGIN
  FOR one IN
    SELECT attname FROM pg_attribute
    WHERE attrelid = to_regclass('reporting.focus_cost_usage_estimated') AND attname IN ('ServiceProviderName', 'HostProviderName')
  LOOP
    EXECUTE format('ALTER VIEW reporting.focus_cost_usage_estimated RENAME COLUMN %I TO %I', one, 'x_' || one);
  END LOOP;
END
$$;

-- FOCUS 1.2. It reads one dimension, the workspace: the others show the same traces and would charge them again. Days without
-- traces have no row: FOCUS wants a positive quantity.
CREATE OR REPLACE VIEW reporting.focus_cost_usage_estimated AS
WITH name AS MATERIALIZED (SELECT * FROM usage.workspace_name)
SELECT u.cost AS "BilledCost",
       s.account_id AS "BillingAccountId",
       s.account_name AS "BillingAccountName",
       'Organization'::text AS "BillingAccountType",
       u.currency AS "BillingCurrency",
       (date_trunc('month', u.usage_date::timestamp) + interval '1 month') AT TIME ZONE 'UTC' AS "BillingPeriodEnd",
       date_trunc('month', u.usage_date::timestamp) AT TIME ZONE 'UTC' AS "BillingPeriodStart",
       'Usage'::text AS "ChargeCategory",
       -- Null: no correction of an earlier billing period.
       NULL::text AS "ChargeClass",
       concat(
         'Estimate: ', u.traces, ' ', lower(usage.meter_name(u.measure)), ' of ', coalesce(n.name, u.workspace_id), ' on ', to_char(u.usage_date, 'YYYY-MM-DD'), ' at ',
         trim_scale(u.unit_price), ' ', u.currency, ' each (', u.sku, ')'
       ) AS "ChargeDescription",
       'Usage-Based'::text AS "ChargeFrequency",
       (u.usage_date + 1)::timestamp AT TIME ZONE 'UTC' AS "ChargePeriodEnd",
       u.usage_date::timestamp AT TIME ZONE 'UTC' AS "ChargePeriodStart",
       u.traces::numeric(20, 0) AS "ConsumedQuantity",
       usage.meter_unit(u.measure) AS "ConsumedUnit",
       u.cost AS "ContractedCost",
       u.unit_price AS "ContractedUnitPrice",
       u.cost AS "EffectiveCost",
       -- No invoice: an estimate is not billed.
       NULL::text AS "InvoiceId",
       s.invoice_issuer_name AS "InvoiceIssuerName",
       u.cost AS "ListCost",
       u.unit_price AS "ListUnitPrice",
       'Standard'::text AS "PricingCategory",
       u.traces::numeric(20, 0) AS "PricingQuantity",
       usage.meter_unit(u.measure) AS "PricingUnit",
       s.provider_name AS "ProviderName",
       s.provider_name AS "PublisherName",
       'AI and Machine Learning'::text AS "ServiceCategory",
       usage.service_name(u.measure) AS "ServiceName",
       'AI Platforms'::text AS "ServiceSubcategory",
       u.sku AS "SkuId",
       usage.meter_name(u.measure) AS "SkuMeter",
       u.price_id || CASE WHEN u.tier > 0 THEN '-' || u.tier ELSE '' END AS "SkuPriceId",
       u.workspace_id AS "SubAccountId",
       n.name AS "SubAccountName",
       'Workspace'::text AS "SubAccountType",
       '{}'::text AS "Tags",
       -- Columns that are not of FOCUS 1.2. FOCUS 1.3 replaces ProviderName and PublisherName by the first two.
       s.provider_name AS "x_ServiceProviderName",
       s.provider_name AS "x_HostProviderName",
       u.slug AS "x_SourceId",
       u.usage_date AS "x_UsageDate",
       u.is_final AS "x_IsFinal",
       u.coverage_status AS "x_CoverageStatus",
       usage.price_details(u.tier, u.from_quantity) AS "SkuPriceDetails",
       date_trunc('month', u.usage_date::timestamp)::date AS "x_BillingMonth"
FROM usage.every_charge u
JOIN usage.provider s USING (source_id)
LEFT JOIN name n ON n.entity_id = u.workspace_entity_id AND n.days @> u.usage_date;
COMMENT ON VIEW reporting.focus_cost_usage_estimated IS 'Grain: UTC day x workspace x SKU x volume tier, days with usage on which a price is valid (key: x_SourceId, x_UsageDate, SubAccountId, SkuPriceId). An ESTIMATE from the imported prices, not an invoice: without taxes, discounts and commitments. Columns of FOCUS 1.2; names are those of the day. Costs add up over all of these within one BillingCurrency; quantities add up within one SkuId. Empty without prices.';
