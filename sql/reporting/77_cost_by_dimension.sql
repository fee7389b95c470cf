-- Costs by workspace, project, user and key: estimates from imported prices. Building blocks first; readers cannot see them.

-- Months whose costs were closed, by workspace. One that the close left out has none of it.
CREATE OR REPLACE VIEW usage.charged_month AS
SELECT m.close_id, m.source_id, m.month_start, w.entity_id AS workspace_entity_id,
       daterange(m.month_start, (m.month_start + interval '1 month')::date) AS days
FROM usage.month_close m
JOIN usage.entity e USING (source_id)
JOIN usage.workspace w USING (entity_id)
WHERE m.costs_closed_at IS NOT NULL AND NOT EXISTS (
  SELECT FROM usage.closed_workspace x WHERE x.close_id = m.close_id AND x.workspace_id = w.entity_id AND x.is_left_out
);

-- The charges that readers see: those of a closed month as it was closed, else the current estimate.
CREATE OR REPLACE VIEW usage.booked_charge AS
WITH closed AS MATERIALIZED (SELECT * FROM usage.charged_month)
SELECT c.slug, c.usage_date, c.workspace_id, c.workspace_name, c.sku, c.price_id, c.tier, c.unit_price, c.currency, c.traces,
       c.cost, false AS is_closed, c.is_final, c.coverage_status, c.is_flat, c.measure
FROM usage.every_charge c
WHERE NOT EXISTS (
  SELECT FROM closed x
  WHERE x.source_id = c.source_id AND x.month_start = c.month_start AND x.workspace_entity_id = c.workspace_entity_id
)
UNION ALL
SELECT s.slug, c.usage_date, w.dimension_id, w.dimension_name, c.sku, c.price_id, c.tier, c.unit_price, c.currency, c.traces,
       c.cost, true, true, 'ok', false, c.measure
FROM usage.closed_charge c
JOIN usage.month_close m USING (close_id)
JOIN usage.source s USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id;

-- What a trace costs without tiers, by workspace and SKU, on the loaded days that no close keeps the charges of.
CREATE OR REPLACE VIEW usage.flat_rate AS
SELECT p.slug, p.workspace_id, p.sku, p.currency, p.unit_price,
       p.days * x.loaded - coalesce(
         (SELECT range_agg(m.days) FROM usage.charged_month m WHERE m.workspace_entity_id = p.workspace_entity_id), '{}'
       ) AS days
FROM usage.workspace_price p
JOIN usage.cell_days x ON x.slug = p.slug AND x.workspace_id = p.workspace_id AND x.group_by = 'workspace'
WHERE NOT p.is_tiered;

-- What a workspace, day and SKU cost elsewhere. It is one unit price, but on a day within which a volume tier begins.
CREATE OR REPLACE VIEW usage.stepped_cost AS
SELECT slug, usage_date, workspace_id, workspace_name, sku, min(currency) AS currency, sum(traces)::bigint AS traces,
       sum(cost)::numeric(38, 10) AS cost, CASE WHEN count(*) = 1 THEN min(unit_price) END AS unit_price,
       bool_and(is_closed) AS is_closed, bool_and(is_final) AS is_final, min(coverage_status) AS coverage_status
FROM usage.booked_charge
WHERE measure = 'traces' AND NOT is_flat AND (EXISTS (SELECT FROM usage.price_tier) OR EXISTS (SELECT FROM usage.closed_charge))
GROUP BY slug, usage_date, workspace_id, workspace_name, sku;

-- The usage of a workspace, day and SKU is a line: first the ids, one after the other, then what has no id, and in a closed month what
-- changed since, which is below zero where there is more now. This is the cost of the line up to a quantity; a part of it costs the
-- difference of its ends, so all parts together cost the whole, to the last digit. whole and whole_cost: only where volume tiers begin
-- within the day. Then each id has the average price.
CREATE OR REPLACE FUNCTION usage.cost_up_to(quantity numeric, unit_price numeric, whole numeric, whole_cost numeric) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN whole IS NULL THEN unit_price * quantity ELSE round(whole_cost * quantity / whole, 10) END;

-- Traces of each workspace and dimension by day whose records carry an id.
CREATE OR REPLACE VIEW usage.attributed_day AS
SELECT slug, group_by, workspace_id, workspace_name, usage_date, sum(traces)::bigint AS traces
FROM (
  SELECT c.slug, c.group_by, c.workspace_id, c.workspace_name, r.bucket_start AS usage_date, r.traces
  FROM usage.cell c
  JOIN usage.series s ON s.scope_id = c.day_scope_id
  JOIN usage.dated_record r USING (series_id)
  JOIN usage.entity e ON e.entity_id = s.entity_id AND e.external_id <> ''
  WHERE c.meter = 'traces'
  UNION ALL
  SELECT f.slug, f.group_by, f.workspace_id, f.workspace_name, f.usage_date, f.traces
  FROM usage.figure_of_hours f
  JOIN usage.entity e ON e.entity_id = f.entity_id AND e.external_id <> ''
) part
GROUP BY slug, group_by, workspace_id, workspace_name, usage_date;

CREATE OR REPLACE VIEW reporting.fct_cost_workspace_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, sku, price_id, tier AS volume_tier, unit_price, currency,
       CASE WHEN measure IN ('traces', 'longlived', 'shortlived') THEN traces END AS traces, cost AS estimated_cost, is_closed, is_final,
       coverage_status, measure, traces AS quantity
FROM usage.booked_charge;
COMMENT ON VIEW reporting.fct_cost_workspace_daily IS 'Grain: UTC day x workspace x SKU x volume tier, days with usage on which a price is valid (key: source_id, usage_date, workspace_id, sku, volume_tier). An ESTIMATE from the imported prices, not an invoice. A closed month keeps the costs that it was closed with. Costs add up over all of these within one currency; traces and quantity add up within one sku. Never add them to those of another dimension. Empty without prices.';

-- What a workspace, day and SKU of a retention tier or of deployments cost. It is one unit price, but on a day within which a volume
-- tier begins.
CREATE OR REPLACE VIEW usage.measured_cost AS
SELECT slug, usage_date, workspace_id, workspace_name, sku, measure, min(currency) AS currency, sum(traces)::bigint AS quantity,
       sum(cost)::numeric(38, 10) AS cost, CASE WHEN count(*) = 1 THEN min(unit_price) END AS unit_price,
       bool_and(is_closed) AS is_closed, bool_and(is_final) AS is_final, min(coverage_status) AS coverage_status
FROM usage.booked_charge
WHERE measure <> 'traces'
GROUP BY slug, usage_date, workspace_id, workspace_name, sku, measure;

-- Their SKUs, also those that only closed months have.
CREATE OR REPLACE VIEW usage.measured_sku AS
SELECT name AS sku, measure FROM usage.sku WHERE measure <> 'traces'
UNION
SELECT sku, measure FROM usage.closed_charge WHERE measure <> 'traces';

-- each dimension but workspace
-- The same divided by {deployment_dimension}, of tiers by {dimension}: the parts of the line (usage.cost_up_to). What has no id has a
-- null id where this dimension is not loaded. Costs and ids are one list, and each finds its cost within its day by a window: so a
-- filter on the day reaches the records of both.
CREATE OR REPLACE VIEW usage.divided_cost_{dimension} AS
WITH x AS MATERIALIZED (SELECT * FROM usage.figure_days t WHERE t.group_by = '{dimension}'),
sku AS MATERIALIZED (SELECT * FROM usage.measured_sku)
SELECT d.slug, d.usage_date, d.workspace_id, d.workspace_name,
       CASE WHEN part.is_adjustment THEN '(adjustment)' ELSE d.dimension_id END AS dimension_id, d.dimension_name, d.sku, d.measure,
       d.currency, (part.ends - part.starts)::bigint AS quantity, q.cost::numeric(38, 10) AS cost, d.is_closed,
       d.is_final AND usage.is_final(d.status) AS is_final,
       CASE WHEN usage.is_final(d.status) THEN d.coverage_status ELSE d.status END AS coverage_status
FROM (
  SELECT slug, usage_date, workspace_id, workspace_name, dimension_id, dimension_name, sku, measure, kind, quantity, status,
         max(currency) OVER v AS currency, bool_and(is_closed) OVER v AS is_closed, bool_and(is_final) OVER v AS is_final,
         max(coverage_status) OVER v AS coverage_status, max(unit_price) OVER v AS unit_price, max(cost) OVER v AS whole_cost,
         max(quantity) FILTER (WHERE kind = 'whole') OVER v AS whole,
         CASE WHEN bool_and(is_closed) OVER v THEN coalesce(max(quantity) FILTER (WHERE kind = 'now') OVER v, 0)
              ELSE max(quantity) FILTER (WHERE kind = 'whole') OVER v END AS now,
         coalesce(sum(quantity) FILTER (WHERE kind = 'id') OVER v, 0) AS of_ids,
         sum(quantity) FILTER (WHERE kind = 'id') OVER (v ORDER BY dimension_id COLLATE "C") AS counted
  FROM (
    SELECT c.slug, c.usage_date, c.workspace_id, c.workspace_name, CASE WHEN x.loaded @> c.usage_date THEN '(none)' END AS dimension_id,
           NULL::text AS dimension_name, c.sku, c.measure, 'whole' AS kind, c.quantity, c.cost, c.unit_price, c.currency, c.is_closed,
           c.is_final, c.coverage_status,
           CASE WHEN x.slug IS NULL THEN 'missing'
                ELSE usage.day_status(c.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) END AS status
    FROM usage.measured_cost c
    LEFT JOIN x
      ON x.slug = c.slug AND x.workspace_id = c.workspace_id
     AND x.meter = CASE WHEN c.measure IN ('longlived', 'shortlived') THEN c.measure ELSE 'deployments' END
    UNION ALL
    SELECT m.slug, m.usage_date, m.workspace_id, m.workspace_name, NULL, NULL, k.sku, k.measure, 'now', m.traces, NULL, NULL, NULL, NULL,
           NULL, NULL, NULL
    FROM usage.measured_day m
    JOIN sku k USING (measure)
    WHERE EXISTS (SELECT FROM usage.closed_charge WHERE measure <> 'traces')
    UNION ALL
    SELECT t.source_id, t.usage_date, t.workspace_id, t.workspace_name, t.id, t.name, k.sku, k.measure, 'id', t.quantity, NULL, NULL, NULL,
           NULL, NULL, NULL, t.coverage_status
    FROM (
      SELECT source_id, usage_date, workspace_id, workspace_name, {id_column} AS id, {name_column} AS name, trace_tier AS measure,
             traces AS quantity, coverage_status
      FROM reporting.fct_usage_{dimension}_by_tier_daily
      UNION ALL
      SELECT d.source_id, d.usage_date, d.workspace_id, d.workspace_name, d.{deployment_id_column}, {deployment_name_column},
             m.measure, m.quantity, d.coverage_status
      FROM reporting.fct_deployment_usage_{deployment_dimension}_daily d
      CROSS JOIN LATERAL (
        VALUES ('nodes_executed', d.nodes_executed), ('agent_runs', d.agent_runs), ('agent_uptime_seconds', d.agent_uptime_seconds)
      ) m (measure, quantity)
    ) t
    JOIN sku k USING (measure)
    WHERE t.id <> '(none)' AND t.quantity > 0
  ) listed
  WINDOW v AS (PARTITION BY slug, usage_date, workspace_id, measure, sku)
) d
CROSS JOIN LATERAL (
  SELECT false AS is_adjustment, d.counted - d.quantity AS starts, d.counted AS ends WHERE d.kind = 'id'
  UNION ALL
  SELECT false, d.of_ids, d.now WHERE d.kind = 'whole'
  UNION ALL
  SELECT true, d.now, d.whole WHERE d.kind = 'whole'
) part
CROSS JOIN LATERAL (
  SELECT CASE WHEN d.unit_price IS NULL THEN d.whole END AS whole
) l
CROSS JOIN LATERAL (
  SELECT usage.cost_up_to(part.ends, d.unit_price, l.whole, d.whole_cost)
           - usage.cost_up_to(part.starts, d.unit_price, l.whole, d.whole_cost) AS cost
) q
-- Without a cost of its workspace nothing is divided. A part of nothing is no row.
WHERE q.cost IS NOT NULL AND part.ends <> part.starts;

-- each dimension but workspace
-- The parts of the line of traces (usage.cost_up_to): ids, what has no id (null where this dimension is not loaded), and what changed
-- since a close. So every dimension has the same sum, to the last digit. What is left of a whole is a union and grouped, not joined:
-- then a filter on the day reaches the records.
CREATE OR REPLACE VIEW reporting.fct_cost_{dimension}_daily AS
WITH stepped AS MATERIALIZED (SELECT * FROM usage.stepped_cost),
-- Few rows, so that they can be joined to all records. whole: only where the price is the average one of a day.
rate AS MATERIALIZED (
  SELECT slug, workspace_id, sku, currency, unit_price, NULL::bigint AS whole, NULL::numeric AS whole_cost, false AS is_closed,
         true AS is_final, 'ok' AS coverage_status, days, true AS is_flat
  FROM usage.flat_rate
  UNION ALL
  SELECT slug, workspace_id, sku, currency, unit_price, CASE WHEN unit_price IS NULL THEN traces END,
         CASE WHEN unit_price IS NULL THEN cost END, is_closed, is_final, coverage_status,
         range_agg(daterange(usage_date, usage_date + 1)), false
  FROM stepped
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
)
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.workspace_name, {columns}, d.sku, d.currency, d.traces,
       d.cost::numeric(38, 10) AS estimated_cost, d.is_closed, d.is_certain AND usage.is_final(d.status) AS is_final,
       CASE WHEN usage.is_final(d.status) THEN d.coverage_status ELSE d.status END AS coverage_status, 'traces'::text AS measure,
       d.traces AS quantity
FROM (
  SELECT d.slug, d.usage_date, d.workspace_id, d.workspace_name, d.dimension_id, d.dimension_name, r.sku, r.currency, d.traces,
         r.unit_price * d.traces AS cost, r.is_closed, r.is_final AS is_certain, r.coverage_status, d.status
  FROM usage.daily_row d
  JOIN rate r ON r.slug = d.slug AND r.workspace_id = d.workspace_id AND r.days @> d.usage_date
  WHERE d.group_by = '{dimension}' AND d.dimension_id <> '(none)' AND d.traces > 0 AND r.whole IS NULL
  UNION ALL
  SELECT slug, usage_date, workspace_id, workspace_name, dimension_id, dimension_name, sku, currency, traces,
         usage.cost_up_to(counted, NULL, whole, whole_cost) - usage.cost_up_to(counted - traces, NULL, whole, whole_cost), is_closed,
         is_certain, coverage_status, status
  FROM (
    SELECT d.slug, d.usage_date, d.workspace_id, d.workspace_name, d.dimension_id, d.dimension_name, r.sku, r.currency, d.traces,
           sum(d.traces) OVER (PARTITION BY d.slug, d.usage_date, d.workspace_id, r.sku ORDER BY d.dimension_id COLLATE "C") AS counted,
           r.whole, r.whole_cost, r.is_closed, r.is_final AS is_certain, r.coverage_status, d.status
    FROM usage.daily_row d
    JOIN rate r ON r.slug = d.slug AND r.workspace_id = d.workspace_id AND r.days @> d.usage_date
    WHERE d.group_by = '{dimension}' AND d.dimension_id <> '(none)' AND d.traces > 0 AND r.whole IS NOT NULL
  ) average
  UNION ALL
  SELECT c.slug, c.usage_date, c.workspace_id, c.workspace_name,
         CASE WHEN c.is_adjustment THEN '(adjustment)' WHEN x.loaded @> c.usage_date THEN '(none)' END, NULL, c.sku, c.currency, c.traces,
         c.cost, c.is_closed, c.is_final, c.coverage_status,
         usage.day_status(c.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified)
  FROM (
    SELECT slug, usage_date, workspace_id, workspace_name, sku, is_adjustment, min(currency) AS currency, sum(traces)::bigint AS traces,
           sum(cost)::numeric(38, 10) AS cost, bool_or(is_closed) AS is_closed, coalesce(bool_and(is_final), false) AS is_final,
           coalesce(min(coverage_status), 'provisional') AS coverage_status
    FROM (
      -- What the workspace has now: in a closed month that is not what was charged.
      SELECT u.slug, u.usage_date, u.workspace_id, u.workspace_name, r.sku, r.currency, part.is_adjustment, part.sign * u.traces AS traces,
             part.sign * usage.cost_up_to(u.traces, r.unit_price, r.whole, r.whole_cost) AS cost, r.is_closed,
             r.is_closed OR usage.is_final(u.status) AS is_final, CASE WHEN r.is_closed THEN 'ok' ELSE u.status END AS coverage_status
      FROM usage.workspace_usage u
      JOIN rate r
        ON r.slug = u.slug AND r.workspace_id = u.workspace_id AND r.days @> u.usage_date AND (r.is_flat OR r.is_closed)
      JOIN (VALUES (false, 1), (true, -1)) part (is_adjustment, sign) ON r.is_closed OR NOT part.is_adjustment
      UNION ALL
      SELECT slug, usage_date, workspace_id, workspace_name, sku, currency, is_closed, traces, cost, is_closed, is_final, coverage_status
      FROM stepped
      UNION ALL
      SELECT a.slug, a.usage_date, a.workspace_id, a.workspace_name, r.sku, r.currency, false, -a.traces,
             -usage.cost_up_to(a.traces, r.unit_price, r.whole, r.whole_cost), NULL, NULL, NULL
      FROM usage.attributed_day a
      JOIN rate r ON r.slug = a.slug AND r.workspace_id = a.workspace_id AND r.days @> a.usage_date
      WHERE a.group_by = '{dimension}'
    ) part
    GROUP BY slug, usage_date, workspace_id, workspace_name, sku, is_adjustment
    HAVING sum(traces) <> 0
  ) c
  JOIN usage.cell_days x ON x.slug = c.slug AND x.workspace_id = c.workspace_id AND x.group_by = '{dimension}'
) d
WHERE EXISTS (SELECT FROM usage.price) OR EXISTS (SELECT FROM usage.closed_charge)
UNION ALL
SELECT d.slug, d.usage_date, d.workspace_id, d.workspace_name, {columns}, d.sku, d.currency,
       CASE WHEN d.measure IN ('longlived', 'shortlived') THEN d.quantity END, d.cost, d.is_closed, d.is_final, d.coverage_status, d.measure,
       d.quantity
FROM (
  SELECT slug, usage_date, workspace_id, workspace_name, dimension_id, dimension_name, sku, currency, quantity, cost, is_closed, is_final,
         coverage_status, measure
  FROM usage.divided_cost_{dimension}
  WHERE measure IN ('longlived', 'shortlived') OR '{dimension}' = '{deployment_dimension}'
  UNION ALL
  -- A deployment is no {dimension}.
  SELECT slug, usage_date, workspace_id, workspace_name, '(none)', NULL, sku, currency, quantity, cost, is_closed, is_final,
         coverage_status, measure
  FROM usage.measured_cost
  WHERE measure NOT IN ('longlived', 'shortlived') AND '{dimension}' <> '{deployment_dimension}'
) d
WHERE EXISTS (SELECT FROM usage.measured_sku);
COMMENT ON VIEW reporting.fct_cost_{dimension}_daily IS 'Grain: UTC day x workspace x {title} x SKU, days with usage on which a price is valid (key: source_id, usage_date, workspace_id, {id_column}, sku). An ESTIMATE: what the SKU counts times the average unit price of its workspace, day and SKU. What no id has is the row (none), or a row with null id where this dimension is not loaded. In a closed month the row (adjustment) is what was closed less what is charged to these now. So the sum is that of fct_cost_workspace_daily. Costs add up over all of these within one currency; traces and quantity add up within one sku. Never add them to those of another dimension. Empty without prices.';

-- end
CREATE OR REPLACE VIEW reporting.fct_cost_deployment_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, dimension_id AS deployment_id, dimension_name AS deployment_name, sku,
       measure, currency, quantity, cost AS estimated_cost, is_closed, is_final, coverage_status
FROM usage.divided_cost_project
WHERE measure NOT IN ('longlived', 'shortlived') AND EXISTS (SELECT FROM usage.measured_sku);
COMMENT ON VIEW reporting.fct_cost_deployment_daily IS 'Grain: UTC day x workspace x deployment x SKU of deployment usage, days with usage on which a price is valid (key: source_id, usage_date, workspace_id, deployment_id, sku). An ESTIMATE: the quantity times the average unit price of its workspace, day and SKU. What no id has is the row (none), or a row with null id where deployments are not loaded. In a closed month the row (adjustment) is what was closed less what is charged to these now. So the sum is that of fct_cost_workspace_daily for these SKUs. Costs add up over all of these within one currency; quantity adds up within one sku. Never add them to those of another dimension: those have them too.';
