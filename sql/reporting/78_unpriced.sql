-- Usage that the estimates leave out, since no price is valid for it, or its month was closed without costs. Without prices there is nothing to leave out.
CREATE OR REPLACE VIEW reporting.usage_unpriced_daily AS
WITH sku AS MATERIALIZED (
  SELECT slug, workspace_id, sku, range_agg(days) AS days
  FROM usage.measured_price
  -- A price for short-lived traces stands in for one for all of them. Prices of long-lived ones come on top.
  WHERE measure IN ('traces', 'shortlived')
  GROUP BY slug, workspace_id, sku
),
workspace AS MATERIALIZED (
  SELECT slug, workspace_id, range_intersect_agg(days) AS every_sku, range_agg(days) AS any_sku
  FROM sku
  GROUP BY slug, workspace_id
)
SELECT u.slug AS source_id, u.usage_date, u.workspace_id, u.workspace_name, u.traces,
       coalesce(w.any_sku @> u.usage_date, false) AS has_other_price,
       (SELECT string_agg(k.sku, ', ' ORDER BY k.sku COLLATE "C")
        FROM sku k
        WHERE k.slug = u.slug AND k.workspace_id = u.workspace_id AND NOT k.days @> u.usage_date) AS unpriced_skus,
       usage.is_final(u.status) AS is_final, u.status AS coverage_status
FROM usage.workspace_usage u
LEFT JOIN workspace w USING (slug, workspace_id)
WHERE (w.every_sku @> u.usage_date) IS NOT TRUE AND EXISTS (SELECT FROM usage.price);
COMMENT ON VIEW reporting.usage_unpriced_daily IS 'Grain: UTC day x workspace (key: source_id, usage_date, workspace_id), loaded days with usage on which a SKU has no price that is valid, or whose month was closed without costs. Where has_other_price is false, the traces cost nothing in the estimates. Traces add up over days and workspaces within one value of has_other_price. Empty without prices: then nothing is estimated.';
