-- What traces cost. Building blocks of the views of costs; readers cannot see them.

-- Each price by volume tier. A price without tiers is tier 0, from the first trace on.
CREATE OR REPLACE VIEW usage.volume_tier AS
SELECT price_id, CASE WHEN count(*) OVER price = 1 THEN 0 ELSE row_number() OVER steps END::integer AS tier, from_quantity,
       lead(from_quantity) OVER steps AS to_quantity, unit_price
FROM (
  SELECT price_id, 0 AS from_quantity, unit_price FROM usage.price
  UNION ALL
  SELECT price_id, from_quantity, unit_price FROM usage.price_tier
) t
WINDOW price AS (PARTITION BY price_id), steps AS (PARTITION BY price_id ORDER BY from_quantity);

-- Each expected day of a workspace with each SKU that has a price there, loaded or not: source x UTC day x workspace x SKU.
CREATE OR REPLACE VIEW usage.priced_day AS
-- Materialized: computed once, not for each day. Prices are few, entities are many.
WITH price AS MATERIALIZED (
  SELECT p.price_id, p.sku_id, k.name AS sku, p.source_id, p.workspace_id, p.unit_price, p.currency, p.valid_from, p.valid_to,
         p.counted_over,
         EXISTS (
           SELECT FROM usage.price o
           JOIN usage.price_tier USING (price_id)
           WHERE o.sku_id = p.sku_id AND o.source_id IS NOT DISTINCT FROM p.source_id
             AND o.workspace_id IS NOT DISTINCT FROM p.workspace_id
         ) AS is_tiered
  FROM usage.price p
  JOIN usage.sku k USING (sku_id)
)
SELECT s.source_id, u.source_id AS slug, u.usage_date, date_trunc('month', u.usage_date::timestamp)::date AS month_start,
       w.entity_id AS workspace_entity_id, u.workspace_id, u.workspace_name, u.traces, u.is_final, u.coverage_status,
       p.sku_id, p.sku, p.price_id, p.unit_price, p.currency, p.counted_over,
       -- Prices of one SKU and scope follow each other in time; if one has tiers, all of them are counted together.
       p.source_id AS price_source_id, p.workspace_id AS price_workspace_id, p.is_tiered
FROM reporting.fct_usage_workspace_daily u
JOIN usage.source s ON s.slug = u.source_id
JOIN (
  SELECT e.entity_id, e.source_id, usage.shown_id(e.external_id) AS workspace_id
  FROM usage.workspace
  JOIN usage.entity e USING (entity_id)
) w ON w.source_id = s.source_id AND w.workspace_id = u.workspace_id
CROSS JOIN LATERAL (
  SELECT DISTINCT ON (p.sku_id) p.*
  FROM price p
  WHERE p.valid_from <= u.usage_date AND (p.valid_to IS NULL OR p.valid_to > u.usage_date)
    AND (p.source_id IS NULL OR p.source_id = s.source_id) AND (p.workspace_id IS NULL OR p.workspace_id = w.entity_id)
  -- The most specific price of each SKU.
  ORDER BY p.sku_id, p.workspace_id NULLS LAST, p.source_id NULLS LAST
) p
-- Without prices the view reads no usage.
WHERE EXISTS (SELECT FROM usage.price);

-- The current estimate: source x UTC day x workspace x SKU x volume tier, days with usage. A tier is filled in the order of
-- days, and within a day of the workspaces' ids. Filters of usage_date and month_start reach the days of SKUs without tiers;
-- with tiers only month_start does, since a day's tiers depend on the days before it.
CREATE OR REPLACE VIEW usage.charge AS
SELECT source_id, slug, usage_date, month_start, workspace_entity_id, workspace_id, workspace_name, sku, price_id, 0 AS tier,
       0::bigint AS from_quantity, unit_price, currency, traces,
       -- Exact: the factors have 18 and 19 digits, ten of them after the point.
       (unit_price * traces)::numeric(38, 10) AS cost, is_final, coverage_status
FROM usage.priced_day
WHERE NOT is_tiered AND traces > 0
UNION ALL
SELECT d.source_id, d.slug, d.usage_date, d.month_start, d.workspace_entity_id, d.workspace_id, d.workspace_name, d.sku,
       d.price_id, t.tier, t.from_quantity, t.unit_price, d.currency, q.traces::bigint,
       (t.unit_price * q.traces)::numeric(38, 10), d.is_certain,
       -- The day may be final while one before it is not, which shifts the tiers.
       CASE WHEN d.is_final AND NOT d.is_certain THEN 'provisional' ELSE d.coverage_status END
FROM (
  SELECT d.*,
         CASE d.counted_over WHEN 'workspace' THEN sum(d.traces) OVER one ELSE sum(d.traces) OVER whole END AS counted,
         CASE d.counted_over WHEN 'workspace' THEN bool_and(d.is_final) OVER one ELSE bool_and(d.is_final) OVER whole END
           AS is_certain
  FROM usage.priced_day d
  WHERE d.is_tiered
  WINDOW whole AS (
           PARTITION BY d.source_id, d.slug, d.month_start, d.sku_id, d.sku, d.price_source_id, d.price_workspace_id
           ORDER BY d.usage_date, d.workspace_id COLLATE "C"
         ),
         one AS (
           PARTITION BY d.source_id, d.slug, d.month_start, d.sku_id, d.sku, d.price_source_id, d.price_workspace_id,
                        d.workspace_id
           ORDER BY d.usage_date
         )
) d
JOIN usage.volume_tier t USING (price_id)
CROSS JOIN LATERAL (
  SELECT least(d.counted, t.to_quantity) - greatest(d.counted - d.traces, t.from_quantity) AS traces
) q
WHERE d.traces > 0 AND q.traces > 0 AND EXISTS (SELECT FROM usage.price_tier);
