-- The valid price for each workspace and day, and what its volume tiers cost. Readers cannot see these views.

-- Each price by volume tier. A price without tiers is tier 0, from the first trace on.
CREATE OR REPLACE VIEW usage.volume_tier AS
SELECT price_id, CASE WHEN count(*) OVER price = 1 THEN 0 ELSE row_number() OVER steps END::integer AS tier,
       from_quantity, lead(from_quantity) OVER steps AS to_quantity, unit_price
FROM (
  SELECT price_id, 0 AS from_quantity, unit_price FROM usage.price
  UNION ALL
  SELECT price_id, from_quantity, unit_price FROM usage.price_tier
) t
WINDOW price AS (PARTITION BY price_id), steps AS (PARTITION BY price_id ORDER BY from_quantity);

-- The price that applies to a workspace, and its days: the most specific price of each SKU, a workspace's before its
-- source's before everybody's. The days of one workspace and SKU never overlap. No price is valid in a month that was
-- closed without costs and not closed again since.
CREATE OR REPLACE VIEW usage.measured_price AS
SELECT s.source_id, s.slug, w.entity_id AS workspace_entity_id, usage.shown_id(e.external_id) AS workspace_id,
       p.price_id, k.sku_id, k.name AS sku, p.unit_price, p.currency, p.counted_over, p.source_id AS price_source_id,
       p.workspace_id AS price_workspace_id, d.days,
       -- Prices of one SKU and scope follow each other in time; if one has tiers, all of them are counted together.
       EXISTS (
         SELECT FROM usage.price o
         JOIN usage.price_tier USING (price_id)
         WHERE o.sku_id = p.sku_id AND o.source_id IS NOT DISTINCT FROM p.source_id
           AND o.workspace_id IS NOT DISTINCT FROM p.workspace_id
       ) AS is_tiered,
       k.measure
FROM usage.workspace w
JOIN usage.entity e USING (entity_id)
JOIN usage.source s USING (source_id)
JOIN usage.price p
  ON (p.source_id IS NULL OR p.source_id = s.source_id) AND (p.workspace_id IS NULL OR p.workspace_id = w.entity_id)
JOIN usage.sku k USING (sku_id)
CROSS JOIN LATERAL (
  SELECT datemultirange(daterange(p.valid_from, p.valid_to))
           - coalesce(range_agg(daterange(o.valid_from, o.valid_to)), '{}')
           - coalesce((
             SELECT range_agg(daterange(n.month_start, (n.month_start + interval '1 month')::date))
             FROM usage.close n
             WHERE n.source_id = s.source_id AND n.costs_closed_at IS NULL AND n.month_start IS NOT NULL
           ), '{}') AS days
  FROM usage.price o
  WHERE o.sku_id = p.sku_id AND (
    (o.workspace_id = w.entity_id AND p.workspace_id IS NULL)
    OR (o.source_id = s.source_id AND o.workspace_id IS NULL AND p.source_id IS NULL)
  )
) d
WHERE NOT isempty(d.days);
