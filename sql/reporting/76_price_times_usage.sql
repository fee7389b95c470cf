-- What usage costs. Building blocks of the views of costs; readers cannot see them. A column `traces` of a charge holds the quantity
-- that its SKU counts: traces, those of a retention tier, or a measure of deployment usage.

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

-- Days of months that were closed without costs: nobody has closed those since. Without a price they have none anywhere.
CREATE OR REPLACE VIEW usage.costless AS
SELECT source_id, range_agg(daterange(month_start, (month_start + interval '1 month')::date)) AS days
FROM usage.month_close
WHERE costs_closed_at IS NULL
GROUP BY source_id;

-- Which price applies to a workspace, and on which days: the most specific one of each SKU, a workspace's before its source's
-- before everybody's. The days of one workspace and SKU never overlap.
CREATE OR REPLACE VIEW usage.measured_price AS
SELECT s.source_id, s.slug, w.entity_id AS workspace_entity_id, usage.shown_id(e.external_id) AS workspace_id, p.price_id,
       k.sku_id, k.name AS sku, p.unit_price, p.currency, p.counted_over, p.source_id AS price_source_id,
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
           - coalesce((SELECT n.days FROM usage.costless n WHERE n.source_id = s.source_id), '{}') AS days
  FROM usage.price o
  WHERE o.sku_id = p.sku_id AND (
    (o.workspace_id = w.entity_id AND p.workspace_id IS NULL)
    OR (o.source_id = s.source_id AND o.workspace_id IS NULL AND p.source_id IS NULL)
  )
) d
WHERE NOT isempty(d.days);

-- Those that are charged for all traces.
CREATE OR REPLACE VIEW usage.workspace_price AS
SELECT source_id, slug, workspace_entity_id, workspace_id, price_id, sku_id, sku, unit_price, currency, counted_over, price_source_id,
       price_workspace_id, days, is_tiered
FROM usage.measured_price
WHERE measure = 'traces';

-- Days with usage of each workspace. A sum, so that an answer that spells a workspace in two ways makes one day of it.
CREATE OR REPLACE VIEW usage.workspace_usage AS
SELECT slug, usage_date, workspace_id, workspace_name, sum(traces)::bigint AS traces, min(status) AS status
FROM usage.daily_row
WHERE group_by = 'workspace' AND traces > 0
GROUP BY slug, usage_date, workspace_id, workspace_name;

-- Expected days of what else is priced. Nothing is expected where the server does not count it. Without such prices nothing is read.
CREATE OR REPLACE VIEW usage.measured_day AS
SELECT d.trace_tier AS measure, d.source_id AS slug, d.usage_date, d.workspace_id, d.workspace_name, d.traces, d.is_final,
       d.coverage_status
FROM reporting.fct_usage_workspace_by_tier_daily d
WHERE d.coverage_status <> 'not_available' AND EXISTS (SELECT FROM usage.sku WHERE measure IN ('longlived', 'shortlived'))
UNION ALL
SELECT m.measure, d.source_id, d.usage_date, d.workspace_id, d.workspace_name, m.quantity, d.is_final, d.coverage_status
FROM reporting.fct_deployment_usage_workspace_daily d
CROSS JOIN LATERAL (
  VALUES ('nodes_executed', d.nodes_executed), ('agent_runs', d.agent_runs), ('agent_uptime_seconds', d.agent_uptime_seconds)
) m (measure, quantity)
WHERE d.coverage_status <> 'not_available'
  AND EXISTS (SELECT FROM usage.sku WHERE measure IN ('nodes_executed', 'agent_runs', 'agent_uptime_seconds'));

-- The current estimate. is_flat: the SKU has no tiers there, so a trace costs the same whatever else was used.
-- Grain: source x UTC day x workspace x SKU x volume tier, days with usage. A tier is filled in the order of
-- days, and within a day of the workspaces' ids. Filters reach the days of SKUs without tiers. With tiers all days are read,
-- since the tiers of a day depend on the days before it.
CREATE OR REPLACE VIEW usage.every_charge AS
-- Materialized: each is computed once, not for each day of the other, and only where something reads it.
WITH price AS MATERIALIZED (SELECT * FROM usage.measured_price),
-- A workspace that a close of the month is not about fills no tier there.
required AS MATERIALIZED (SELECT * FROM usage.required_workspace)
SELECT p.source_id, u.slug, u.usage_date, date_trunc('month', u.usage_date::timestamp)::date AS month_start,
       p.workspace_entity_id, u.workspace_id, u.workspace_name, p.sku, p.price_id, 0 AS tier, 0::bigint AS from_quantity,
       p.unit_price, p.currency, u.traces,
       -- Exact: the factors have 18 and 19 digits, ten of them after the point.
       (p.unit_price * u.traces)::numeric(38, 10) AS cost, usage.is_final(u.status) AS is_final, u.status AS coverage_status,
       true AS is_flat, u.measure
FROM (
  SELECT 'traces'::text AS measure, slug, usage_date, workspace_id, workspace_name, traces, status FROM usage.workspace_usage
  UNION ALL
  SELECT measure, slug, usage_date, workspace_id, workspace_name, traces, coverage_status FROM usage.measured_day WHERE traces > 0
) u
JOIN price p
  ON p.slug = u.slug AND p.workspace_id = u.workspace_id AND p.measure = u.measure AND p.days @> u.usage_date
-- Without prices the view reads no usage.
WHERE NOT p.is_tiered AND EXISTS (SELECT FROM usage.price)
UNION ALL
SELECT d.source_id, d.slug, d.usage_date, d.month_start, d.workspace_entity_id, d.workspace_id, d.workspace_name, d.sku,
       d.price_id, t.tier, t.from_quantity, t.unit_price, d.currency, q.traces::bigint,
       (t.unit_price * q.traces)::numeric(38, 10), d.is_certain,
       -- The day may be final while one before it is not, which shifts the tiers.
       CASE WHEN d.is_final AND NOT d.is_certain THEN 'provisional' ELSE d.coverage_status END, false, d.measure
FROM (
  SELECT d.*,
         CASE d.counted_over WHEN 'workspace' THEN sum(d.traces) OVER one ELSE sum(d.traces) OVER whole END AS counted,
         CASE d.counted_over WHEN 'workspace' THEN bool_and(d.is_final) OVER one ELSE bool_and(d.is_final) OVER whole END
           AS is_certain
  FROM (
    -- Every expected day, loaded or not.
    SELECT p.source_id, p.slug, p.workspace_entity_id, p.workspace_id, p.price_id, p.sku_id, p.sku, p.currency, p.counted_over,
           p.price_source_id, p.price_workspace_id, u.measure, u.usage_date, date_trunc('month', u.usage_date::timestamp)::date AS month_start, u.workspace_name, u.traces,
           u.is_final, u.coverage_status
    FROM (
      SELECT 'traces'::text AS measure, t.*
      FROM (
        SELECT source_id AS slug, usage_date, workspace_id, workspace_name, traces, is_final, coverage_status
        FROM reporting.fct_usage_workspace_daily
        -- Computed once, not for each price.
        OFFSET 0
      ) t
      UNION ALL
      SELECT measure, slug, usage_date, workspace_id, workspace_name, traces, is_final, coverage_status FROM usage.measured_day
    ) u
    JOIN price p
      ON p.slug = u.slug AND p.workspace_id = u.workspace_id AND p.measure = u.measure AND p.days @> u.usage_date
    JOIN required r ON r.workspace_id = p.workspace_entity_id AND coalesce(r.days @> u.usage_date, false)
    WHERE p.is_tiered
  ) d
  WINDOW whole AS (
           PARTITION BY d.source_id, d.slug, d.month_start, d.measure, d.sku_id, d.sku, d.price_source_id, d.price_workspace_id
           ORDER BY d.usage_date, d.workspace_id COLLATE "C"
         ),
         one AS (
           PARTITION BY d.source_id, d.slug, d.month_start, d.measure, d.sku_id, d.sku, d.price_source_id, d.price_workspace_id,
                        d.workspace_id
           ORDER BY d.usage_date
         )
) d
JOIN usage.volume_tier t USING (price_id)
CROSS JOIN LATERAL (
  SELECT least(d.counted, t.to_quantity) - greatest(d.counted - d.traces, t.from_quantity) AS traces
) q
WHERE d.traces > 0 AND q.traces > 0 AND EXISTS (SELECT FROM usage.price_tier);

-- The charges for all traces.
CREATE OR REPLACE VIEW usage.charge AS
SELECT source_id, slug, usage_date, month_start, workspace_entity_id, workspace_id, workspace_name, sku, price_id, tier, from_quantity,
       unit_price, currency, traces, cost, is_final, coverage_status, is_flat
FROM usage.every_charge
WHERE measure = 'traces';
