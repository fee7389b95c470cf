-- Costs in the columns of FOCUS 1.4, estimated from imported prices. Names are spelled as in FOCUS, so that any reader of FOCUS files
-- can read these views. Columns that are not of FOCUS begin with x_, as it asks.
-- They read one dimension, the workspace: the others show the same traces and would charge them again. Days without traces have no
-- row: FOCUS wants a positive quantity. What a closed month was charged stays as it was. What changes later is a correction: a row of
-- its own, in the first month after it that is open.

-- Who provides and invoices the usage of a source. Without the settings all that is known is the host of the billing API, without
-- scheme, port and path.
CREATE OR REPLACE VIEW usage.provider AS
SELECT s.source_id, s.slug, coalesce(s.organization_id, s.slug) AS account_id, coalesce(s.organization_name, s.slug) AS account_name,
       p.name AS provider_name, coalesce(s.invoice_issuer_name, p.name) AS invoice_issuer_name, s.data_start, s.created_at
FROM usage.source s
CROSS JOIN LATERAL (
  SELECT coalesce(s.provider_name, substring(s.base_url FROM '^[a-z]+://(?:[^/@]*@)?([^/:?#]+)')) AS name
) p;

-- Properties of a price beside its amount: its volume tier, as texts, since FOCUS takes a number for one per unit.
CREATE OR REPLACE FUNCTION usage.price_details(tier integer, from_quantity bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN tier = 0 THEN '{}'
  ELSE jsonb_build_object('x_VolumeTier', tier::text, 'x_VolumeTierFrom', from_quantity::text)::text END;

-- What a quantity of a SKU counts: FOCUS's meter, its unit, and the service.
CREATE OR REPLACE FUNCTION usage.meter_name(measure text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE measure WHEN 'traces' THEN 'Traces' WHEN 'longlived' THEN 'Long-lived Traces' WHEN 'shortlived' THEN 'Short-lived Traces'
  WHEN 'nodes_executed' THEN 'Nodes Executed' WHEN 'agent_runs' THEN 'Agent Runs' WHEN 'agent_uptime_seconds' THEN 'Agent Uptime'
  WHEN 'lcu' THEN 'Sandbox Compute Units' WHEN 'lsu' THEN 'Sandbox Storage Units' END;

CREATE OR REPLACE FUNCTION usage.meter_unit(measure text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE measure WHEN 'nodes_executed' THEN 'Nodes' WHEN 'agent_runs' THEN 'Runs' WHEN 'agent_uptime_seconds' THEN 'Seconds'
  WHEN 'lcu' THEN 'LCU' WHEN 'lsu' THEN 'LSU' ELSE 'Traces' END;

-- Digits after the point that a part of a quantity may have: those of the measure, or those of an owner's share of it.
CREATE OR REPLACE FUNCTION usage.quantity_digits(measure text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE usage.meter_of_measure(measure) WHEN 'sandboxes' THEN 6 ELSE 4 END;

CREATE OR REPLACE FUNCTION usage.service_of(measure text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN measure IN ('longlived', 'shortlived') THEN 'traces' ELSE usage.meter_of_measure(measure) END;

-- A month whose costs were closed, and the month that shows corrections of it.
CREATE OR REPLACE VIEW usage.closed_period AS
SELECT m.close_id, m.source_id, m.month_start, m.costs_closed_at AS closed_at, o.month_start AS corrected_in
FROM usage.month_close m
CROSS JOIN LATERAL (
  SELECT min(t.month_start) AS month_start
  FROM usage.months_of((m.month_start + interval '1 month')::date, (now() AT TIME ZONE 'UTC')::date) t (month_start)
  WHERE NOT EXISTS (
    SELECT FROM usage.month_close l
    WHERE l.source_id = m.source_id AND l.month_start = t.month_start AND l.costs_closed_at IS NOT NULL
  )
) o
WHERE m.costs_closed_at IS NOT NULL;

-- What changed since a month was closed and no later close has kept: the charges of now, less those kept, less the corrections
-- kept. By unit price, so that quantity times price is the cost; a price imported anew at the same amount changes nothing. A day
-- that is not loaded now has no correction: what it costs is not known. All corrections of a day are as final as what the day
-- costs now.
CREATE OR REPLACE VIEW usage.open_correction AS
WITH period AS MATERIALIZED (SELECT * FROM usage.closed_period),
loaded AS MATERIALIZED (
  SELECT 'traces' AS measure, x.workspace_entity_id, x.loaded, x.final, x.not_available, x.failed, x.missing, x.unverified
  FROM usage.trace_cell x
  WHERE x.group_by = 'workspace' AND EXISTS (SELECT FROM period m WHERE m.source_id = x.source_id)
  UNION ALL
  SELECT m.measure, x.workspace_entity_id, x.loaded, x.final, x.not_available, x.failed, x.missing, x.unverified
  FROM usage.figure_days x
  JOIN (
    VALUES ('longlived', 'longlived'), ('shortlived', 'shortlived'), ('deployments', 'nodes_executed'), ('deployments', 'agent_runs'),
           ('deployments', 'agent_uptime_seconds'), ('sandboxes', 'lcu'), ('sandboxes', 'lsu')
  ) m (meter, measure) USING (meter)
  WHERE x.group_by = 'workspace' AND EXISTS (SELECT FROM period m WHERE m.source_id = x.source_id)
)
SELECT c.source_id, c.usage_date, c.billing_month, c.workspace_entity_id, c.sku, c.price_id, c.tier, c.from_quantity,
       c.unit_price, c.currency, c.traces, c.cost,
       -- Without a charge of now, the day's own figure decides.
       coalesce(c.is_final, usage.is_final(t.status)) AS is_final, coalesce(c.coverage_status, t.status) AS coverage_status,
       c.measure
FROM (
  SELECT m.source_id, d.usage_date, m.corrected_in AS billing_month, d.workspace_entity_id, d.sku,
         -- Of the newest price with this amount.
         (max(ARRAY[d.price_id, d.tier, d.from_quantity]))[1]::integer AS price_id,
         (max(ARRAY[d.price_id, d.tier, d.from_quantity]))[2]::integer AS tier,
         (max(ARRAY[d.price_id, d.tier, d.from_quantity]))[3] AS from_quantity,
         d.measure, d.unit_price, d.currency, sum(d.traces) AS traces, sum(d.cost)::numeric(38, 10) AS cost,
         bool_and(bool_and(d.is_final)) OVER one AS is_final, min(min(d.coverage_status)) OVER one AS coverage_status
  FROM period m
  JOIN (
    SELECT source_id, month_start, usage_date, workspace_id AS workspace_entity_id, sku, price_id, tier, from_quantity, unit_price,
           currency, traces, cost, is_final, coverage_status, measure
    FROM usage.charge
    WHERE NOT is_closed
    UNION ALL
    SELECT m.source_id, m.month_start, k.usage_date, k.workspace_id, k.sku, k.price_id, k.tier, k.from_quantity, k.unit_price,
           k.currency, -k.traces, -k.cost, NULL, NULL, k.measure
    FROM usage.closed_charge k
    JOIN usage.month_close m USING (close_id)
    UNION ALL
    SELECT m.source_id, date_trunc('month', k.usage_date::timestamp)::date, k.usage_date, k.workspace_id, k.sku, k.price_id, k.tier,
           k.from_quantity, k.unit_price, k.currency, -k.traces, -k.cost, NULL, NULL, k.measure
    FROM usage.closed_correction k
    JOIN usage.month_close m USING (close_id)
  ) d USING (source_id, month_start)
  GROUP BY m.source_id, d.usage_date, m.corrected_in, d.workspace_entity_id, d.sku, d.measure, d.unit_price, d.currency
  WINDOW one AS (PARTITION BY m.source_id, d.usage_date, d.workspace_entity_id, d.sku)
) c
JOIN loaded l
  ON l.workspace_entity_id = c.workspace_entity_id AND l.measure = c.measure AND coalesce(l.loaded @> c.usage_date, false)
CROSS JOIN LATERAL (
  SELECT usage.day_status(c.usage_date, l.final, l.not_available, l.failed, l.missing, l.unverified) AS status
) t
WHERE c.traces <> 0;

-- Charges with their billing month: of open months those of now, of closed months those kept, and the corrections that a close kept.
CREATE OR REPLACE VIEW usage.kept_charge AS
WITH period AS MATERIALIZED (SELECT * FROM usage.closed_period)
SELECT c.source_id, c.usage_date, c.month_start AS billing_month, false AS is_correction, c.workspace_id AS workspace_entity_id, c.sku,
       c.price_id, c.tier, c.from_quantity, c.unit_price, c.currency, c.traces, c.cost, c.is_final, c.coverage_status, c.measure
FROM usage.charge c
WHERE NOT c.is_closed AND NOT EXISTS (
  SELECT FROM period m WHERE m.source_id = c.source_id AND m.month_start = c.month_start
)
UNION ALL
SELECT m.source_id, k.usage_date, m.month_start, false, k.workspace_id, k.sku, k.price_id, k.tier, k.from_quantity, k.unit_price,
       k.currency, k.traces, k.cost, true, 'ok', k.measure
FROM usage.closed_charge k
JOIN period m USING (close_id)
UNION ALL
SELECT m.source_id, k.usage_date, m.month_start, true, k.workspace_id, k.sku, k.price_id, k.tier, k.from_quantity, k.unit_price,
       k.currency, k.traces, k.cost, true, 'ok', k.measure
FROM usage.closed_correction k
JOIN period m USING (close_id);

-- All charges: also the corrections that no close has kept yet. They are of no resource: see usage.divided_charge.
CREATE OR REPLACE VIEW usage.billed_charge AS
SELECT c.*, NULL::text AS dimension, NULL::text AS dimension_id, NULL::text AS dimension_name, NULL::text AS owner,
       NULL::jsonb AS owner_tags, NULL::numeric AS share, '{}'::text AS tags
FROM (
  SELECT source_id, usage_date, billing_month, is_correction, workspace_entity_id, sku, price_id, tier, from_quantity, unit_price,
         currency, traces, cost, is_final, coverage_status, measure
  FROM usage.kept_charge
  UNION ALL
  SELECT source_id, usage_date, billing_month, true, workspace_entity_id, sku, price_id, tier, from_quantity, unit_price, currency,
         traces, cost, is_final, coverage_status, measure
  FROM usage.open_correction
) c;

-- What each project, deployment, sandbox and owner has of a day and SKU: a part of the line from 0 to `whole`. Since FOCUS wants a positive
-- quantity, ids share a charge in proportion where they have more than it: as in a closed month of which more was counted later.
CREATE OR REPLACE VIEW usage.charge_part AS
SELECT c.*, sum(quantity) OVER day AS whole,
       sum(quantity) OVER (day ORDER BY dimension, dimension_id COLLATE "C", owner, cost_center, share) AS ends
FROM (
  SELECT slug, workspace_id, usage_date, sku, dimension, dimension_id, max(dimension_name) AS dimension_name, owner, cost_center, share,
         sum(quantity) AS quantity, bool_and(is_final) AS is_final, usage.worst_status(array_agg(coverage_status)) AS coverage_status
  FROM usage.owned_cost
  GROUP BY slug, workspace_id, usage_date, sku, dimension, dimension_id, owner, cost_center, share
  HAVING sum(quantity) > 0
) c
WINDOW day AS (PARTITION BY slug, workspace_id, usage_date, sku);

-- All charges, divided by project, deployment and sandbox, and by owner. A correction is of no resource: its owner is the one of the rest
-- of its workspace. Parts are rounded where they end, so that they add up to the charge.
CREATE OR REPLACE VIEW usage.divided_charge AS
WITH rest AS MATERIALIZED (
  SELECT slug, workspace_id, days, owner, cost_center, share, sum(share) OVER (one ORDER BY owner, cost_center) AS ends
  FROM usage.owned_days
  WHERE dimension = ''
  WINDOW one AS (PARTITION BY slug, workspace_id, rule_number)
)
SELECT d.source_id, d.usage_date, d.billing_month, d.is_correction, d.workspace_entity_id, d.sku, d.price_id, d.tier, d.from_quantity,
       d.unit_price, d.currency, d.traces, (d.unit_price * d.traces)::numeric(38, 14) AS cost, d.is_final, d.coverage_status, d.measure,
       d.dimension, d.dimension_id, d.dimension_name, d.owner, o.tags AS owner_tags, d.share,
       (coalesce(t.tags, '{}') || o.tags)::text AS tags
FROM (
  SELECT c.source_id, c.usage_date, c.billing_month, c.is_correction, c.workspace_entity_id, c.sku, c.price_id, c.tier, c.from_quantity,
         c.unit_price, c.currency, c.measure, r.dimension, r.dimension_id, max(r.dimension_name) AS dimension_name, p.owner, p.cost_center, p.share,
         bool_and(p.is_final) AS is_final, usage.worst_status(array_agg(p.coverage_status)) AS coverage_status,
         sum(round(c.traces * p.ends / p.whole, q.digits) - round(c.traces * (p.ends - p.quantity) / p.whole, q.digits)) AS traces
  FROM usage.kept_charge c
  JOIN usage.shown_workspace w ON w.entity_id = c.workspace_entity_id
  JOIN usage.charge_part p
    ON p.slug = w.slug AND p.workspace_id = w.workspace_id AND p.usage_date = c.usage_date AND p.sku = c.sku
  CROSS JOIN LATERAL (SELECT usage.quantity_digits(c.measure) AS digits) q
  -- Users and API keys are no resources.
  LEFT JOIN LATERAL (
    SELECT p.dimension, p.dimension_id, p.dimension_name WHERE p.dimension IN ('project', 'deployment', 'sandbox')
  ) r ON true
  WHERE NOT c.is_correction
  GROUP BY c.source_id, c.usage_date, c.billing_month, c.is_correction, c.workspace_entity_id, c.sku, c.price_id, c.tier,
           c.from_quantity, c.unit_price, c.currency, c.measure, r.dimension, r.dimension_id, p.owner, p.cost_center, p.share
  UNION ALL
  SELECT c.source_id, c.usage_date, c.billing_month, c.is_correction, c.workspace_entity_id, c.sku, c.price_id, c.tier, c.from_quantity,
         c.unit_price, c.currency, c.measure, NULL, NULL, NULL, coalesce(r.owner, '(unallocated)'), coalesce(r.cost_center, '(none)'),
         coalesce(r.share, 1), c.is_final, c.coverage_status,
         round(c.traces * coalesce(r.ends, 1), q.digits) - round(c.traces * coalesce(r.ends - r.share, 0), q.digits)
  FROM usage.billed_charge c
  JOIN usage.shown_workspace w ON w.entity_id = c.workspace_entity_id
  CROSS JOIN LATERAL (SELECT usage.quantity_digits(c.measure) AS digits) q
  LEFT JOIN rest r ON r.slug = w.slug AND r.workspace_id = w.workspace_id AND r.days @> c.usage_date
  WHERE c.is_correction
) d
CROSS JOIN LATERAL (
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'usage-etl/owner', nullif(d.owner, '(unallocated)'), 'usage-etl/cost_center', nullif(d.cost_center, '(none)')
  )) AS tags
) o
CROSS JOIN LATERAL (
  SELECT jsonb_object_agg(t.tag_key, t.tag_value) AS tags
  FROM usage.resource_tag t
  WHERE t.workspace_id = d.workspace_entity_id AND t.dimension = d.dimension AND t.external_id = usage.platform_id(d.dimension_id)
    AND t.valid_from <= d.usage_date AND coalesce(d.usage_date < t.valid_to, true)
) t
WHERE d.traces <> 0;

-- All columns of the dataset, in its order. Null: those whose condition does not hold here (docs/files.md).
-- each list of charges
CREATE OR REPLACE VIEW reporting_detail.{view} AS
WITH name AS MATERIALIZED (SELECT n.* FROM usage.workspace JOIN usage.name_in_time n USING (entity_id))
SELECT a.details AS "AllocatedMethodDetails",
       a.method AS "AllocatedMethodId",
       a.owner AS "AllocatedResourceId",
       a.owner AS "AllocatedResourceName",
       a.owner_tags::text AS "AllocatedTags",
       NULL::text AS "AvailabilityZone",
       u.cost AS "BilledCost",
       s.account_id AS "BillingAccountId",
       s.account_name AS "BillingAccountName",
       'Organization'::text AS "BillingAccountType",
       u.currency AS "BillingCurrency",
       (u.billing_month + interval '1 month') AT TIME ZONE 'UTC' AS "BillingPeriodEnd",
       u.billing_month::timestamp AT TIME ZONE 'UTC' AS "BillingPeriodStart",
       NULL::text AS "CapacityReservationId",
       NULL::text AS "CapacityReservationStatus",
       'Usage'::text AS "ChargeCategory",
       CASE WHEN u.is_correction THEN 'Correction' END AS "ChargeClass",
       concat(
         CASE WHEN u.is_correction THEN 'Correction of the estimate' ELSE 'Estimate' END,
         CASE WHEN usage.is_on_no_invoice(u.measure, u.usage_date) THEN ', which no invoice has: ' ELSE ': ' END, trim_scale(u.traces), ' ', lower(usage.meter_name(u.measure)), ' of ',
         coalesce(n.name, usage.shown_id(w.external_id)), ' on ', to_char(u.usage_date, 'YYYY-MM-DD'), ' at ', trim_scale(u.unit_price), ' ',
         u.currency, ' each (', u.sku, ')'
       ) AS "ChargeDescription",
       'Usage-Based'::text AS "ChargeFrequency",
       (u.usage_date + 1)::timestamp AT TIME ZONE 'UTC' AS "ChargePeriodEnd",
       u.usage_date::timestamp AT TIME ZONE 'UTC' AS "ChargePeriodStart",
       NULL::text AS "CommitmentDiscountCategory",
       NULL::text AS "CommitmentDiscountId",
       NULL::text AS "CommitmentDiscountName",
       NULL::numeric(38, 10) AS "CommitmentDiscountQuantity",
       NULL::text AS "CommitmentDiscountStatus",
       NULL::text AS "CommitmentDiscountType",
       NULL::text AS "CommitmentDiscountUnit",
       NULL::text AS "CommitmentProgramEligibilityDetails",
       u.traces::numeric(26, 6) AS "ConsumedQuantity",
       usage.meter_unit(u.measure) AS "ConsumedUnit",
       NULL::text AS "ContractApplied",
       u.cost AS "ContractedCost",
       u.unit_price AS "ContractedUnitPrice",
       u.cost AS "EffectiveCost",
       s.provider_name AS "HostProviderName",
       NULL::text AS "InvoiceDetailId",
       NULL::text AS "InvoiceId",
       s.invoice_issuer_name AS "InvoiceIssuerName",
       u.cost AS "ListCost",
       u.unit_price AS "ListUnitPrice",
       'Standard'::text AS "PricingCategory",
       u.currency AS "PricingCurrency",
       u.unit_price AS "PricingCurrencyContractedUnitPrice",
       u.cost AS "PricingCurrencyEffectiveCost",
       u.unit_price AS "PricingCurrencyListUnitPrice",
       u.traces::numeric(26, 6) AS "PricingQuantity",
       usage.meter_unit(u.measure) AS "PricingUnit",
       NULL::text AS "RegionId",
       NULL::text AS "RegionName",
       u.dimension_id AS "ResourceId",
       u.dimension_name AS "ResourceName",
       initcap(u.dimension) AS "ResourceType",
       'AI and Machine Learning'::text AS "ServiceCategory",
       'Agent platform ' || usage.service_of(u.measure) AS "ServiceName",
       s.provider_name AS "ServiceProviderName",
       'AI Platforms'::text AS "ServiceSubcategory",
       u.sku AS "SkuId",
       usage.meter_name(u.measure) AS "SkuMeter",
       usage.price_details(u.tier, u.from_quantity) AS "SkuPriceDetails",
       u.price_id || CASE WHEN u.tier > 0 THEN '-' || u.tier ELSE '' END AS "SkuPriceId",
       usage.shown_id(w.external_id) AS "SubAccountId",
       n.name AS "SubAccountName",
       'Workspace'::text AS "SubAccountType",
       u.tags AS "Tags",
       s.slug AS "x_SourceId",
       u.usage_date AS "x_UsageDate",
       u.billing_month AS "x_BillingMonth",
       u.is_final AS "x_IsFinal",
       u.coverage_status AS "x_CoverageStatus"
FROM {charges} u
JOIN usage.provider s USING (source_id)
JOIN usage.entity w ON w.entity_id = u.workspace_entity_id
LEFT JOIN name n ON n.entity_id = u.workspace_entity_id AND n.days @> u.usage_date
-- Where owners share a resource.
LEFT JOIN LATERAL (
  SELECT 'usage-etl/owner-shares' AS method, u.owner, u.owner_tags,
         jsonb_build_object('Elements', jsonb_build_array(jsonb_build_object('AllocatedRatio', u.share)))::text AS details
  WHERE u.share < 1
) a ON true;
-- end
COMMENT ON VIEW reporting_detail.focus_1_4_cost_and_usage IS 'What usage costs, in the columns of FOCUS 1.4. Grain: UTC day x workspace x SKU x price x billing month (key: x_SourceId, x_BillingMonth, x_UsageDate, SubAccountId, SkuId, SkuPriceId, BillingCurrency, ContractedUnitPrice). An ESTIMATE from the imported prices, not an invoice. Rows of a closed month never change: what changed since is a row with ChargeClass Correction in the first open month after it. Costs add up over all of these within one BillingCurrency, to what the loaded days cost now. Empty without prices.';
COMMENT ON VIEW reporting_detail.focus_1_4_cost_and_usage_by_resource IS 'What usage costs by project, deployment or sandbox and owner, in the columns of FOCUS 1.4. Grain: UTC day x workspace x SKU x price x billing month x project, deployment or sandbox x owner (key: x_SourceId, x_BillingMonth, x_UsageDate, SubAccountId, SkuId, SkuPriceId, BillingCurrency, ContractedUnitPrice, ResourceType, ResourceId, Tags, AllocatedMethodDetails). The charges of focus_1_4_cost_and_usage divided, so never add the two: an ESTIMATE from the imported prices, not an invoice. Tags has those of the resource on the day and, as usage-etl/owner and usage-etl/cost_center, who pays by the owner file. A part that has no resource has null ResourceId. Costs add up over all of these within one BillingCurrency to focus_1_4_cost_and_usage, to the last digit. Closed months keep their charges, and are divided by the counts, rules and names of now. Filter on x_UsageDate.';

-- One row for each issuer of invoices: FOCUS joins by issuer and period. Closed once every source of the issuer has closed it.
CREATE OR REPLACE VIEW reporting_detail.focus_1_4_billing_period AS
SELECT p.created_at AS "BillingPeriodCreated",
       (p.month_start + interval '1 month') AT TIME ZONE 'UTC' AS "BillingPeriodEnd",
       greatest(p.created_at, p.closed_at) AS "BillingPeriodLastUpdated",
       p.month_start::timestamp AT TIME ZONE 'UTC' AS "BillingPeriodStart",
       CASE WHEN p.sources_closed = p.sources THEN 'Closed' ELSE 'Open' END AS "BillingPeriodStatus",
       p.invoice_issuer_name AS "InvoiceIssuerName",
       p.month_start AS "x_BillingMonth",
       p.sources::integer AS "x_Sources",
       p.sources_closed::integer AS "x_SourcesClosed"
FROM (
  SELECT t.month_start, s.invoice_issuer_name, count(*) AS sources, count(m.close_id) AS sources_closed,
         greatest(min(s.created_at), t.month_start::timestamp AT TIME ZONE 'UTC') AS created_at, max(m.closed_at) AS closed_at
  FROM usage.provider s
  CROSS JOIN usage.months_of(s.data_start, (now() AT TIME ZONE 'UTC')::date) t (month_start)
  LEFT JOIN usage.closed_period m ON m.source_id = s.source_id AND m.month_start = t.month_start
  GROUP BY t.month_start, s.invoice_issuer_name
) p;
COMMENT ON VIEW reporting_detail.focus_1_4_billing_period IS 'Which months are closed, in the columns of FOCUS 1.4. Grain: calendar month (UTC) x issuer of invoices, from the data start on (key: InvoiceIssuerName, x_BillingMonth). Joins focus_1_4_cost_and_usage by BillingPeriodStart and InvoiceIssuerName. Closed: every source of the issuer closed the month.';
