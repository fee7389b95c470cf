-- Costs in the columns of FOCUS 1.4, estimated from imported prices. Names are spelled as in FOCUS, so that any reader
-- of FOCUS files can read these views. Columns that are not part of FOCUS begin with x_, as it requires. They read one
-- dimension, the workspace: the others count the same traces and would charge them again. Days without traces have no
-- row: FOCUS requires a positive quantity. The charges of a closed month stay as they were. A later change is a
-- correction: a row in the first open month after it.

-- The provider and invoice issuer of a source's usage. Without the settings, only the host of the billing API is known,
-- without scheme, port and path.
CREATE OR REPLACE VIEW usage.provider AS
SELECT s.source_id, s.slug, coalesce(s.organization_id, s.slug) AS account_id,
       coalesce(s.organization_name, s.slug) AS account_name, p.name AS provider_name,
       coalesce(s.invoice_issuer_name, p.name) AS invoice_issuer_name, s.data_start, s.created_at
FROM usage.source s
CROSS JOIN LATERAL (
  SELECT coalesce(s.provider_name, substring(s.base_url FROM '^[a-z]+://(?:[^/@]*@)?([^/:?#]+)')) AS name
) p;

-- A month whose costs were closed, and the month that shows corrections of it.
CREATE OR REPLACE VIEW usage.closed_period AS
SELECT m.close_id, m.source_id, m.month_start, m.costs_closed_at AS closed_at, o.month_start AS corrected_in
FROM usage.close m
CROSS JOIN LATERAL (
  SELECT min(t.month_start) AS month_start
  FROM usage.months_of((m.month_start + interval '1 month')::date, (now() AT TIME ZONE 'UTC')::date) t (month_start)
  WHERE NOT EXISTS (
    SELECT FROM usage.close l
    WHERE l.source_id = m.source_id AND l.month_start = t.month_start AND l.costs_closed_at IS NOT NULL
  )
) o
WHERE m.costs_closed_at IS NOT NULL;

-- Changes since months were closed that no later close has kept, in the month that shows them: today's charges, less
-- the charges and corrections that were kept. They are grouped by unit price, so that quantity times price is the cost.
-- A price that is imported again at the same amount changes nothing. A day that is no longer loaded has no correction,
-- since its cost is not known. All corrections of a day are as final as today's cost of the day. A function, because
-- planning this takes longer than reading the bill of a month, and few months have corrections. It runs as its owner,
-- since readers may not read the tables.
CREATE OR REPLACE FUNCTION usage.open_corrections(source smallint, month date)
RETURNS TABLE (
  usage_date date, workspace_entity_id integer, sku text, price_id integer, tier integer, from_quantity bigint,
  unit_price numeric, currency text, quantity numeric, cost numeric, is_final boolean, coverage_status text,
  measure text
)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  WITH period AS (
    SELECT close_id, month_start FROM usage.closed_period WHERE source_id = source AND corrected_in = month
  ),
  loaded AS (
    SELECT 'traces' AS measure, x.workspace_entity_id, x.loaded, x.final, x.not_available, x.failed, x.missing,
           x.unverified
    FROM usage.trace_cell x
    WHERE x.source_id = source AND x.group_by = 'workspace'
    UNION ALL
    SELECT m.measure, x.workspace_entity_id, x.loaded, x.final, x.not_available, x.failed, x.missing, x.unverified
    FROM usage.figure_days x
    JOIN usage.measure m USING (meter)
    WHERE x.source_id = source AND x.group_by = 'workspace'
  )
  SELECT c.usage_date, c.workspace_entity_id, c.sku, c.newest[1]::integer, c.newest[2]::integer, c.newest[3],
         c.unit_price, c.currency, c.quantity, c.cost,
         -- If the day has no charge today, its own figure decides.
         coalesce(c.is_final, usage.is_final(t.status)), coalesce(c.coverage_status, t.status), c.measure
  FROM (
    SELECT d.usage_date, d.workspace_id AS workspace_entity_id, d.sku,
           -- The newest price with this amount.
           max(ARRAY[d.price_id, d.tier, d.from_quantity]) AS newest, d.measure, d.unit_price, d.currency,
           sum(d.sign * d.quantity) AS quantity, sum(d.sign * d.cost)::numeric(38, 10) AS cost,
           bool_and(bool_and(d.is_final)) OVER one AS is_final, min(min(d.coverage_status)) OVER one AS coverage_status
    FROM (
      SELECT 1 AS sign, c.usage_date, c.workspace_id, c.sku, c.price_id, c.tier, c.from_quantity, c.unit_price,
             c.currency, c.quantity, c.cost, c.is_final, c.coverage_status, c.measure
      FROM usage.charge c
      WHERE c.source_id = source AND c.month_start IN (SELECT m.month_start FROM period m)
      UNION ALL
      SELECT -1, k.usage_date, k.workspace_id, k.sku, k.price_id, k.tier, k.from_quantity, k.unit_price, k.currency,
             k.quantity, k.cost, NULL, NULL, k.measure
      FROM period m
      JOIN usage.closed_charge k USING (close_id)
      UNION ALL
      SELECT -1, k.usage_date, k.workspace_id, k.sku, k.price_id, k.tier, k.from_quantity, k.unit_price, k.currency,
             k.quantity, k.cost, NULL, NULL, k.measure
      FROM usage.closed_correction k
      JOIN usage.close x USING (close_id)
      JOIN period m ON x.source_id = source AND m.month_start = usage.month_of(k.usage_date)
    ) d
    GROUP BY d.usage_date, d.workspace_id, d.sku, d.measure, d.unit_price, d.currency
    WINDOW one AS (PARTITION BY d.usage_date, d.workspace_id, d.sku)
  ) c
  JOIN loaded l
    ON l.workspace_entity_id = c.workspace_entity_id AND l.measure = c.measure
      AND coalesce(l.loaded @> c.usage_date, false)
  CROSS JOIN LATERAL (
    SELECT usage.status_at(c.usage_date, l.final, l.not_available, l.failed, l.missing, l.unverified) AS status
  ) t
  WHERE c.quantity <> 0
$$;

-- All charges with their billing month: today's charges for open months, kept charges for closed months, the
-- corrections that a close kept, and those that no close has kept yet.
CREATE OR REPLACE VIEW usage.billed_charge AS
WITH period AS (SELECT * FROM usage.closed_period)
SELECT c.source_id, c.usage_date, c.month_start AS billing_month, false AS is_correction,
       c.workspace_id AS workspace_entity_id, c.sku, c.price_id, c.tier, c.from_quantity, c.unit_price, c.currency,
       c.quantity, c.cost, c.is_final, c.coverage_status, c.measure
FROM usage.open_charge c
WHERE NOT EXISTS (
  SELECT FROM period m WHERE m.source_id = c.source_id AND m.month_start = c.month_start
)
UNION ALL
SELECT m.source_id, k.usage_date, m.month_start, k.is_correction, k.workspace_id, k.sku, k.price_id, k.tier,
       k.from_quantity, k.unit_price, k.currency, k.quantity, k.cost, true, 'ok', k.measure
FROM (
  SELECT close_id, usage_date, workspace_id, sku, price_id, tier, from_quantity, unit_price, currency, quantity, cost,
         measure, false AS is_correction
  FROM usage.closed_charge
  UNION ALL
  SELECT close_id, usage_date, workspace_id, sku, price_id, tier, from_quantity, unit_price, currency, quantity, cost,
         measure, true
  FROM usage.closed_correction
) k
JOIN period m USING (close_id)
UNION ALL
SELECT m.source_id, o.usage_date, m.corrected_in, true, o.workspace_entity_id, o.sku, o.price_id, o.tier,
       o.from_quantity, o.unit_price::numeric(18, 10), o.currency, o.quantity, o.cost, o.is_final,
       o.coverage_status, o.measure
FROM (SELECT DISTINCT source_id, corrected_in FROM usage.closed_period) m
CROSS JOIN LATERAL usage.open_corrections(m.source_id, m.corrected_in) o;

-- The charges of FOCUS, which joins periods by issuer: a month is closed when the issuer's last source closes it. Until
-- then it has today's charges and no corrections, also of a source that closed it before.
CREATE OR REPLACE VIEW usage.focus_billed_charge AS
WITH waiting AS MATERIALIZED (
  SELECT m.source_id, m.month_start
  FROM usage.closed_period m
  JOIN usage.provider s USING (source_id)
  JOIN usage.provider o
    ON o.invoice_issuer_name = s.invoice_issuer_name AND o.data_start < (m.month_start + interval '1 month')
  LEFT JOIN usage.closed_period c ON c.source_id = o.source_id AND c.month_start = m.month_start
  GROUP BY m.source_id, m.month_start
  HAVING count(c.close_id) < count(*)
)
SELECT b.* FROM usage.billed_charge b
WHERE NOT EXISTS (
  SELECT FROM waiting w WHERE w.source_id = b.source_id AND w.month_start = usage.month_of(b.usage_date)
)
UNION ALL
SELECT c.source_id, c.usage_date, c.month_start, false, c.workspace_id, c.sku, c.price_id, c.tier, c.from_quantity,
       c.unit_price, c.currency, c.quantity, c.cost, c.is_final, c.coverage_status, c.measure
FROM usage.charge c
JOIN waiting w USING (source_id, month_start);

-- All charges, divided by project, deployment and sandbox, and by owner. A correction has no resource: its owner is the
-- owner of the rest of its workspace. Parts are rounded where they end, so that they add up to the charge.
CREATE OR REPLACE VIEW usage.divided_charge AS
WITH rest AS (
  SELECT slug, workspace_id, days, owner, cost_center, share, sum(share) OVER (one ORDER BY owner, cost_center) AS ends
  FROM usage.owned_days
  WHERE dimension = ''
  WINDOW one AS (PARTITION BY slug, workspace_id, rule_number)
),
-- The part of each project, deployment, sandbox and owner in a day and SKU: a part of the line from 0 to `whole`. FOCUS
-- requires a positive quantity, so ids share a charge in proportion if they have more than the charge, as in a closed
-- month that grew later.
part AS (
  SELECT c.*, sum(quantity) OVER day AS whole,
         sum(quantity) OVER (day ORDER BY dimension, dimension_id COLLATE "C", owner, cost_center, share) AS ends
  FROM (
    SELECT slug, workspace_id, usage_date, sku, dimension, dimension_id, max(dimension_name) AS dimension_name, owner,
           cost_center, share, sum(quantity) AS quantity, bool_and(is_final) AS is_final,
           usage.worst_status(array_agg(coverage_status)) AS coverage_status
    FROM usage.owned_cost
    GROUP BY slug, workspace_id, usage_date, sku, dimension, dimension_id, owner, cost_center, share
    HAVING sum(quantity) > 0
  ) c
  WINDOW day AS (PARTITION BY slug, workspace_id, usage_date, sku)
)
SELECT d.source_id, d.usage_date, d.billing_month, d.is_correction, d.workspace_entity_id, d.sku, d.price_id, d.tier,
       d.from_quantity, d.unit_price, d.currency, d.quantity, (d.unit_price * d.quantity)::numeric(38, 14) AS cost,
       d.is_final, d.coverage_status, d.measure, d.dimension, d.dimension_id, d.dimension_name, d.owner,
       o.tags AS owner_tags, d.share,
       (coalesce(t.tags, '{}') || o.tags)::text AS tags
FROM (
  SELECT c.source_id, c.usage_date, c.billing_month, c.is_correction, c.workspace_entity_id, c.sku, c.price_id, c.tier,
         c.from_quantity, c.unit_price, c.currency, c.measure, r.dimension, r.dimension_id,
         max(r.dimension_name) AS dimension_name, p.owner, p.cost_center, p.share, bool_and(p.is_final) AS is_final,
         usage.worst_status(array_agg(p.coverage_status)) AS coverage_status,
         sum(round(c.quantity * p.ends / p.whole, q.digits)
             - round(c.quantity * (p.ends - p.quantity) / p.whole, q.digits)) AS quantity
  FROM usage.focus_billed_charge c
  JOIN usage.shown_workspace w ON w.entity_id = c.workspace_entity_id
  JOIN part p
    ON p.slug = w.slug AND p.workspace_id = w.workspace_id AND p.usage_date = c.usage_date AND p.sku = c.sku
  JOIN usage.measure q ON q.measure = c.measure
  -- Users and API keys are no resources.
  LEFT JOIN LATERAL (
    SELECT p.dimension, p.dimension_id, p.dimension_name WHERE p.dimension IN ('project', 'deployment', 'sandbox')
  ) r ON true
  WHERE NOT c.is_correction
  GROUP BY c.source_id, c.usage_date, c.billing_month, c.is_correction, c.workspace_entity_id, c.sku, c.price_id,
           c.tier, c.from_quantity, c.unit_price, c.currency, c.measure, r.dimension, r.dimension_id, p.owner,
           p.cost_center, p.share
  UNION ALL
  SELECT c.source_id, c.usage_date, c.billing_month, c.is_correction, c.workspace_entity_id, c.sku, c.price_id, c.tier,
         c.from_quantity, c.unit_price, c.currency, c.measure, NULL, NULL, NULL, coalesce(r.owner, '(unallocated)'),
         coalesce(r.cost_center, '(none)'), coalesce(r.share, 1), c.is_final, c.coverage_status,
         round(c.quantity * coalesce(r.ends, 1), q.digits) - round(c.quantity * coalesce(r.ends - r.share, 0), q.digits)
  FROM usage.focus_billed_charge c
  JOIN usage.shown_workspace w ON w.entity_id = c.workspace_entity_id
  JOIN usage.measure q ON q.measure = c.measure
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
  WHERE t.workspace_id = d.workspace_entity_id AND t.dimension = d.dimension
    AND t.external_id = usage.platform_id(d.dimension_id)
    AND t.valid_from <= d.usage_date AND coalesce(d.usage_date < t.valid_to, true)
) t
WHERE d.quantity <> 0;

-- Says which settled invoice charges a SKU of a workspace in a month, by the settled comparison. A line of the whole
-- organization charges each workspace. Usage on two invoices is on none of them alone.
CREATE OR REPLACE VIEW usage.settled_usage AS
SELECT c.source_id, c.currency, t.month_start, c.sku, c.workspace, min(c.number) AS number
FROM (
  SELECT i.source_id, i.currency, i.number, i.invoice_id, l.sku, l.billed_start, l.billed_end,
         coalesce(l.workspace, w.workspace_id) AS workspace
  FROM usage.invoice i
  CROSS JOIN LATERAL (
    SELECT match_id FROM usage.invoice_settlement s WHERE s.invoice_id = i.invoice_id
    ORDER BY settlement_id DESC LIMIT 1
  ) s
  JOIN usage.invoice_match_line l ON l.match_id = s.match_id AND l.line_number IS NOT NULL AND l.sku IS NOT NULL
  LEFT JOIN usage.shown_workspace w ON l.workspace IS NULL AND w.source_id = i.source_id
  WHERE i.replaced_at IS NULL
) c
CROSS JOIN usage.months_of(c.billed_start, c.billed_end - 1) t (month_start)
GROUP BY c.source_id, c.currency, t.month_start, c.sku, c.workspace
HAVING count(DISTINCT c.invoice_id) = 1;

-- All columns of the dataset, in its order, for charges and for divided charges. A filter on is_divided leaves one of
-- the two. Null: columns whose condition does not hold here (docs/files.md).
CREATE OR REPLACE VIEW usage.focus_charge AS
-- Inlined, this would place names in time for each charge: a month of FOCUS would take 5 times as long.
WITH name AS MATERIALIZED (SELECT n.* FROM usage.workspace JOIN usage.name_in_time n USING (entity_id)),
invoiced AS MATERIALIZED (SELECT * FROM usage.settled_usage)
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
         CASE WHEN u.is_correction THEN 'Correction of the estimate' WHEN i.number IS NULL THEN 'Estimate'
              ELSE 'Invoiced' END,
         CASE WHEN usage.is_on_no_invoice(u.measure, u.usage_date) THEN ', which no invoice has: ' ELSE ': ' END,
         trim_scale(u.quantity), ' ', lower(k.name), ' of ',
         coalesce(n.name, usage.shown_id(w.external_id)), ' on ', to_char(u.usage_date, 'YYYY-MM-DD'), ' at ',
         trim_scale(u.unit_price), ' ', u.currency, ' each (', u.sku, ')'
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
       u.quantity::numeric(26, 6) AS "ConsumedQuantity",
       k.unit AS "ConsumedUnit",
       NULL::text AS "ContractApplied",
       u.cost AS "ContractedCost",
       u.unit_price AS "ContractedUnitPrice",
       u.cost AS "EffectiveCost",
       s.provider_name AS "HostProviderName",
       NULL::text AS "InvoiceDetailId",
       i.number AS "InvoiceId",
       s.invoice_issuer_name AS "InvoiceIssuerName",
       u.cost AS "ListCost",
       u.unit_price AS "ListUnitPrice",
       'Standard'::text AS "PricingCategory",
       u.currency AS "PricingCurrency",
       u.unit_price AS "PricingCurrencyContractedUnitPrice",
       u.cost AS "PricingCurrencyEffectiveCost",
       u.unit_price AS "PricingCurrencyListUnitPrice",
       u.quantity::numeric(26, 6) AS "PricingQuantity",
       k.unit AS "PricingUnit",
       NULL::text AS "RegionId",
       NULL::text AS "RegionName",
       u.dimension_id AS "ResourceId",
       u.dimension_name AS "ResourceName",
       initcap(u.dimension) AS "ResourceType",
       'AI and Machine Learning'::text AS "ServiceCategory",
       'Agent platform ' || k.service AS "ServiceName",
       s.provider_name AS "ServiceProviderName",
       'AI Platforms'::text AS "ServiceSubcategory",
       u.sku AS "SkuId",
       k.name AS "SkuMeter",
       -- Texts, since FOCUS would read a number as a quantity per unit.
       CASE WHEN u.tier = 0 THEN '{}'
            ELSE jsonb_build_object('x_VolumeTier', u.tier::text, 'x_VolumeTierFrom', u.from_quantity::text)::text
       END AS "SkuPriceDetails",
       u.price_id || CASE WHEN u.tier > 0 THEN '-' || u.tier ELSE '' END AS "SkuPriceId",
       usage.shown_id(w.external_id) AS "SubAccountId",
       coalesce(n.name, usage.shown_id(w.external_id)) AS "SubAccountName",
       'Workspace'::text AS "SubAccountType",
       u.tags AS "Tags",
       s.slug AS "x_SourceId",
       u.usage_date AS "x_UsageDate",
       u.billing_month AS "x_BillingMonth",
       u.is_final AS "x_IsFinal",
       u.coverage_status AS "x_CoverageStatus",
       u.is_divided
FROM (
  SELECT false AS is_divided, c.*, NULL::text AS dimension, NULL::text AS dimension_id, NULL::text AS dimension_name,
         NULL::text AS owner, NULL::jsonb AS owner_tags, NULL::numeric AS share, '{}'::text AS tags
  FROM usage.focus_billed_charge c
  UNION ALL
  SELECT true, * FROM usage.divided_charge
) u
JOIN usage.provider s USING (source_id)
JOIN usage.measure k ON k.measure = u.measure
JOIN usage.entity w ON w.entity_id = u.workspace_entity_id
LEFT JOIN name n ON n.entity_id = u.workspace_entity_id AND n.days @> u.usage_date
-- A line of the workspace, or of the whole organization. A charge that may still change is an estimate.
LEFT JOIN invoiced i
  ON i.source_id = u.source_id AND i.month_start = u.billing_month AND i.sku = u.sku AND i.currency = u.currency
    AND i.workspace = usage.shown_id(w.external_id) AND u.is_final AND NOT u.is_correction
-- Filled if owners share a resource.
LEFT JOIN LATERAL (
  SELECT 'usage-etl/owner-shares' AS method, u.owner, u.owner_tags,
         jsonb_build_object('Elements', jsonb_build_array(jsonb_build_object('AllocatedRatio', u.share)))::text
           AS details
  WHERE u.share < 1
) a ON true;

CREATE OR REPLACE VIEW reporting_detail.focus_1_4_cost_and_usage AS
SELECT "AllocatedMethodDetails", "AllocatedMethodId", "AllocatedResourceId", "AllocatedResourceName", "AllocatedTags",
       "AvailabilityZone", "BilledCost"::numeric(38, 10), "BillingAccountId", "BillingAccountName",
       "BillingAccountType", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "CapacityReservationId",
       "CapacityReservationStatus", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency",
       "ChargePeriodEnd", "ChargePeriodStart", "CommitmentDiscountCategory", "CommitmentDiscountId",
       "CommitmentDiscountName", "CommitmentDiscountQuantity", "CommitmentDiscountStatus", "CommitmentDiscountType",
       "CommitmentDiscountUnit", "CommitmentProgramEligibilityDetails", "ConsumedQuantity", "ConsumedUnit",
       "ContractApplied", "ContractedCost"::numeric(38, 10), "ContractedUnitPrice", "EffectiveCost"::numeric(38, 10),
       "HostProviderName", "InvoiceDetailId", "InvoiceId", "InvoiceIssuerName", "ListCost"::numeric(38, 10),
       "ListUnitPrice", "PricingCategory", "PricingCurrency", "PricingCurrencyContractedUnitPrice",
       "PricingCurrencyEffectiveCost"::numeric(38, 10), "PricingCurrencyListUnitPrice", "PricingQuantity",
       "PricingUnit", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory",
       "ServiceName", "ServiceProviderName", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails",
       "SkuPriceId", "SubAccountId", "SubAccountName", "SubAccountType", "Tags", "x_SourceId", "x_UsageDate",
       "x_BillingMonth", "x_IsFinal", "x_CoverageStatus"
FROM usage.focus_charge
WHERE NOT is_divided;
COMMENT ON VIEW reporting_detail.focus_1_4_cost_and_usage IS
  'What usage costs, in the columns of FOCUS 1.4. Grain: UTC day x workspace x SKU x price x billing month (key: '
  'x_SourceId, x_BillingMonth, x_UsageDate, SubAccountId, SkuId, SkuPriceId, BillingCurrency, ContractedUnitPrice). An '
  'ESTIMATE from the imported prices, not an invoice. Rows of a closed month never change: a later change is a row '
  'with ChargeClass Correction in the first open month after it. Costs add up over all keys within one '
  'BillingCurrency, to today''s cost of the loaded days. Empty without prices.';

CREATE OR REPLACE VIEW reporting_detail.focus_1_4_cost_and_usage_by_resource AS
SELECT "AllocatedMethodDetails", "AllocatedMethodId", "AllocatedResourceId", "AllocatedResourceName", "AllocatedTags",
       "AvailabilityZone", "BilledCost"::numeric(38, 14), "BillingAccountId", "BillingAccountName",
       "BillingAccountType", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "CapacityReservationId",
       "CapacityReservationStatus", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency",
       "ChargePeriodEnd", "ChargePeriodStart", "CommitmentDiscountCategory", "CommitmentDiscountId",
       "CommitmentDiscountName", "CommitmentDiscountQuantity", "CommitmentDiscountStatus", "CommitmentDiscountType",
       "CommitmentDiscountUnit", "CommitmentProgramEligibilityDetails", "ConsumedQuantity", "ConsumedUnit",
       "ContractApplied", "ContractedCost"::numeric(38, 14), "ContractedUnitPrice", "EffectiveCost"::numeric(38, 14),
       "HostProviderName", "InvoiceDetailId", "InvoiceId", "InvoiceIssuerName", "ListCost"::numeric(38, 14),
       "ListUnitPrice", "PricingCategory", "PricingCurrency", "PricingCurrencyContractedUnitPrice",
       "PricingCurrencyEffectiveCost"::numeric(38, 14), "PricingCurrencyListUnitPrice", "PricingQuantity",
       "PricingUnit", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory",
       "ServiceName", "ServiceProviderName", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails",
       "SkuPriceId", "SubAccountId", "SubAccountName", "SubAccountType", "Tags", "x_SourceId", "x_UsageDate",
       "x_BillingMonth", "x_IsFinal", "x_CoverageStatus"
FROM usage.focus_charge
WHERE is_divided;
COMMENT ON VIEW reporting_detail.focus_1_4_cost_and_usage_by_resource IS
  'What usage costs by project, deployment or sandbox and owner, in the columns of FOCUS 1.4. Grain: UTC day x '
  'workspace x SKU x price x billing month x project, deployment or sandbox x owner (key: x_SourceId, x_BillingMonth, '
  'x_UsageDate, SubAccountId, SkuId, SkuPriceId, BillingCurrency, ContractedUnitPrice, ResourceType, ResourceId, Tags, '
  'AllocatedMethodDetails). These are the charges of focus_1_4_cost_and_usage, divided: never add the two. An ESTIMATE '
  'from the imported prices, not an invoice. Tags has the resource''s tags of the day and, as usage-etl/owner and '
  'usage-etl/cost_center, who pays by the owner file. A part without a resource has null ResourceId. Costs add up over '
  'all keys within one BillingCurrency to focus_1_4_cost_and_usage, to the last digit. Closed months keep their '
  'charges, and are divided by today''s counts, rules and names. Filter on x_UsageDate.';
CALL usage.comment_columns('{reporting_detail.focus_1_4_cost_and_usage,
  reporting_detail.focus_1_4_cost_and_usage_by_resource}', VARIADIC ARRAY[
  'AllocatedMethodDetails', 'JSON object as text with the owner''s share. Null: owners do not share the row.',
  'AllocatedMethodId', 'usage-etl/owner-shares. Null: owners do not share the row.',
  'AllocatedResourceId', 'Owner of the share. Null: owners do not share the row.',
  'AllocatedResourceName', 'Same as AllocatedResourceId.',
  'AllocatedTags', 'JSON object as text: owner and cost centre of the share. Null: owners do not share the row.',
  'AvailabilityZone', 'Null: the platform names no zones.',
  'BilledCost', 'Estimate: unit price times PricingQuantity, exactly. Adds up within one BillingCurrency.',
  'BillingAccountId', 'The platform''s id of the organization; the slug of the source if the platform gives none.',
  'BillingAccountName', 'Name of the organization; the slug of the source if the platform gives none.',
  'BillingAccountType', 'Organization.',
  'BillingCurrency', 'ISO 4217 code of the imported price. Never add amounts of different currencies.',
  'CapacityReservationId', 'Null: no capacity is reserved.',
  'CapacityReservationStatus', 'Null: no capacity is reserved.',
  'ChargeCategory', 'Usage.',
  'ChargeClass',
    'Correction: a change of a month since it was closed, with quantities and costs that may be negative. Null: any '
    'other charge.',
  'ChargeDescription', 'The charge in words.',
  'ChargeFrequency', 'Usage-Based.',
  'ChargePeriodEnd', 'End of the UTC day, not included.',
  'ChargePeriodStart', 'Start of the UTC day.',
  'CommitmentDiscountCategory', 'Null: no commitments are known.',
  'CommitmentDiscountId', 'Null: no commitments are known.',
  'CommitmentDiscountName', 'Null: no commitments are known.',
  'CommitmentDiscountQuantity', 'Null: no commitments are known.',
  'CommitmentDiscountStatus', 'Null: no commitments are known.',
  'CommitmentDiscountType', 'Null: no commitments are known.',
  'CommitmentDiscountUnit', 'Null: no commitments are known.',
  'CommitmentProgramEligibilityDetails', 'Null: no commitments are known.',
  'ConsumedQuantity',
    'What the SKU counts. Adds up over days and workspaces within one SkuId: two SKUs may charge the same traces.',
  'ConsumedUnit', 'Traces, Nodes, Runs, Seconds, LCU or LSU, as the SKU counts.',
  'ContractApplied', 'Null: no contracts are known.',
  'ContractedCost', 'Same as BilledCost: ContractedUnitPrice times PricingQuantity.',
  'ContractedUnitPrice', 'Imported price of one unit of ConsumedQuantity, in BillingCurrency.',
  'EffectiveCost', 'Same as BilledCost: nothing is paid in advance.',
  'HostProviderName', 'Same as ServiceProviderName: on whose servers the platform runs is not known.',
  'InvoiceDetailId', 'Null: a day''s charge is a part of a line.',
  'InvoiceId',
    'Number of the settled invoice that charges the SKU and workspace in this month. Null: an estimate, which is on no '
    'settled invoice, or a correction.',
  'ListCost', 'Same as BilledCost: only imported prices are known, no list prices.',
  'ListUnitPrice', 'The imported unit price: no list prices are known.',
  'PricingCategory', 'Standard.',
  'PricingCurrency', 'Same as BillingCurrency.',
  'PricingCurrencyContractedUnitPrice', 'Same as ContractedUnitPrice.',
  'PricingCurrencyEffectiveCost', 'Same as EffectiveCost.',
  'PricingCurrencyListUnitPrice', 'Same as ListUnitPrice.',
  'PricingQuantity', 'Same as ConsumedQuantity.',
  'PricingUnit', 'Traces, Nodes, Runs, Seconds, LCU or LSU, as the SKU counts.',
  'RegionId', 'Null: usage is not counted by region.',
  'RegionName', 'Null: usage is not counted by region.',
  'ResourceId',
    'The platform''s id of the project, deployment or sandbox. Null: a row by workspace, or usage of no resource.',
  'ResourceName', 'Name of the resource. Null: a row by workspace, or usage of no resource.',
  'ResourceType', 'Project, Deployment or Sandbox. Null: a row by workspace, or usage of no resource.',
  'ServiceCategory', 'AI and Machine Learning.',
  'ServiceName', 'Agent platform traces, Agent platform deployments, or Agent platform sandboxes.',
  'ServiceProviderName', 'USAGE_PROVIDER_NAME, or the host of the platform''s billing API.',
  'ServiceSubcategory', 'AI Platforms.',
  'SkuId', 'SKU of the imported price.',
  'SkuMeter',
    'What the SKU counts: Traces, Long-lived Traces, Short-lived Traces, Nodes Executed, Agent Runs, Agent Uptime, '
    'Sandbox Compute Units or Sandbox Storage Units.',
  'SkuPriceDetails', 'JSON object as text: the volume tier of the price and its first quantity; {} without tiers.',
  'SkuPriceId', 'Number of the imported price, and of the volume tier where it has tiers: one unit price each.',
  'SubAccountId', 'The platform''s id of the workspace.',
  'SubAccountName', 'Name of the workspace on the day of the charge, or its id if it has none.',
  'SubAccountType', 'Workspace.',
  'Tags',
    'JSON object as text: tags of the resource and, as usage-etl/owner and usage-etl/cost_center, who pays. Empty in '
    'rows by workspace.',
  'x_SourceId', 'Slug of the source, the platform organization that usage is read from. With a single source: default.',
  'x_UsageDate', 'UTC day of the charge, for filters and joins with the other views.',
  'x_IsFinal', 'Whether the usage of the day is final. False: provisional, the estimate may still change.',
  'x_CoverageStatus', 'Status of the day''s usage, the first that applies: failed, unverified, provisional, ok.'
]);

-- One row for each issuer of invoices, because FOCUS joins by issuer and period. The row is closed once every source of
-- the issuer has closed the month.
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
         greatest(min(s.created_at), t.month_start::timestamp AT TIME ZONE 'UTC') AS created_at,
         max(m.closed_at) AS closed_at
  FROM usage.provider s
  CROSS JOIN usage.months_of(s.data_start, (now() AT TIME ZONE 'UTC')::date) t (month_start)
  LEFT JOIN usage.closed_period m ON m.source_id = s.source_id AND m.month_start = t.month_start
  GROUP BY t.month_start, s.invoice_issuer_name
) p;
COMMENT ON VIEW reporting_detail.focus_1_4_billing_period IS
  'Which months are closed, in the columns of FOCUS 1.4. Grain: calendar month (UTC) x issuer of invoices, from the '
  'data start on (key: InvoiceIssuerName, x_BillingMonth). Joins focus_1_4_cost_and_usage by BillingPeriodStart and '
  'InvoiceIssuerName. Closed: every source of the issuer closed the month.';
CALL usage.comment_columns('{reporting_detail.focus_1_4_billing_period}',
  'BillingPeriodCreated', 'Start of the month, or when the first source of the issuer was created, whichever is later.',
  'BillingPeriodLastUpdated', 'When a source of the issuer last closed the month. Before that: BillingPeriodCreated.',
  'BillingPeriodStatus',
    'Closed: every source of the issuer closed the month, so its charges never change. Open: any other month.',
  'x_Sources', 'Sources of the issuer whose data starts in this month or before.',
  'x_SourcesClosed', 'How many of them closed the month.'
);
