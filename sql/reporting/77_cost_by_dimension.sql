-- Costs by workspace, project, user and key: estimates from imported prices. Building blocks first; readers cannot see them.

-- Months that were closed with charges, by workspace: a workspace may have been left out.
CREATE OR REPLACE VIEW usage.charged_month AS
SELECT m.close_id, m.source_id, m.month_start, w.workspace_id AS workspace_entity_id,
       daterange(m.month_start, (m.month_start + interval '1 month')::date) AS days
FROM usage.month_close m
JOIN usage.closed_workspace w USING (close_id)
WHERE EXISTS (SELECT FROM usage.closed_charge c WHERE c.close_id = w.close_id AND c.workspace_id = w.workspace_id);

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
-- The same divided by {deployment_dimension}, of tiers by {dimension}. What is left of a cost is one more row, so the sum is exact: usage
-- without an id, or a null id where this dimension is not loaded. Costs and ids are one list, and each finds its cost within its day
-- by a window: so a filter on the day reaches the records of both.
CREATE OR REPLACE VIEW usage.divided_cost_{dimension} AS
WITH x AS MATERIALIZED (SELECT * FROM usage.figure_days t WHERE t.group_by = '{dimension}'),
sku AS MATERIALIZED (SELECT * FROM usage.measured_sku)
SELECT slug, usage_date, workspace_id, workspace_name, dimension_id, dimension_name, sku, measure, currency, quantity,
       cost::numeric(38, 10) AS cost, is_closed, is_final AND usage.is_final(status) AS is_final,
       CASE WHEN usage.is_final(status) THEN coverage_status ELSE status END AS coverage_status
FROM (
  SELECT slug, usage_date, workspace_id, workspace_name, dimension_id, dimension_name, sku, measure, currency, is_closed, is_final,
         coverage_status, status,
         CASE WHEN is_whole THEN quantity - coalesce(sum(quantity) FILTER (WHERE NOT is_whole) OVER w, 0) ELSE quantity END::bigint
           AS quantity,
         CASE WHEN is_whole THEN cost - coalesce(sum(cost) FILTER (WHERE NOT is_whole) OVER w, 0) ELSE cost END AS cost
  FROM (
    SELECT slug, usage_date, workspace_id, workspace_name, dimension_id, dimension_name, sku, measure, is_whole, quantity, status,
           max(currency) OVER v AS currency, bool_and(is_closed) OVER v AS is_closed, bool_and(is_final) OVER v AS is_final,
           max(coverage_status) OVER v AS coverage_status,
           CASE WHEN is_whole THEN cost WHEN max(unit_price) OVER v IS NOT NULL THEN max(unit_price) OVER v * quantity
                ELSE round(max(cost) OVER v * quantity / max(quantity) FILTER (WHERE is_whole) OVER v, 10) END AS cost
    FROM (
      SELECT c.slug, c.usage_date, c.workspace_id, c.workspace_name, CASE WHEN x.loaded @> c.usage_date THEN '(none)' END AS dimension_id,
             NULL::text AS dimension_name, c.sku, c.measure, true AS is_whole, c.quantity, c.cost, c.unit_price, c.currency,
             c.is_closed, c.is_final, c.coverage_status,
             CASE WHEN x.slug IS NULL THEN 'missing'
                  ELSE usage.day_status(c.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) END AS status
      FROM usage.measured_cost c
      LEFT JOIN x
        ON x.slug = c.slug AND x.workspace_id = c.workspace_id
       AND x.meter = CASE WHEN c.measure IN ('longlived', 'shortlived') THEN c.measure ELSE 'deployments' END
      UNION ALL
      SELECT t.source_id, t.usage_date, t.workspace_id, t.workspace_name, t.id, t.name, k.sku, k.measure, false, t.quantity, NULL, NULL,
             NULL, NULL, NULL, NULL, t.coverage_status
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
  ) priced
  WINDOW w AS (PARTITION BY slug, usage_date, workspace_id, measure, sku)
) divided
-- Without a cost of its workspace nothing is divided. A rest of nothing is no row.
WHERE cost IS NOT NULL AND (quantity <> 0 OR cost <> 0);

-- each dimension but workspace
-- What is left of a workspace's cost is one more row: that of traces without an id, or of a day on which this dimension is not
-- loaded. So every dimension has the same sum, to the last digit. Both parts of it are a union and grouped, not joined: then a
-- filter on the day reaches the records.
CREATE OR REPLACE VIEW reporting.fct_cost_{dimension}_daily AS
WITH stepped AS MATERIALIZED (SELECT * FROM usage.stepped_cost),
-- Few rows, so that they can be joined to all records. whole_traces: only where the price is the average one of a day.
rate AS MATERIALIZED (
  SELECT slug, workspace_id, sku, currency, unit_price, NULL::bigint AS whole_traces, NULL::numeric AS whole_cost,
         false AS is_closed, true AS is_final, 'ok' AS coverage_status, days, true AS is_flat
  FROM usage.flat_rate
  UNION ALL
  SELECT slug, workspace_id, sku, currency, unit_price, CASE WHEN unit_price IS NULL THEN traces END,
         CASE WHEN unit_price IS NULL THEN cost END, is_closed, is_final, coverage_status,
         range_agg(daterange(usage_date, usage_date + 1)), false
  FROM stepped
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
)
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.workspace_name, {columns}, r.sku, r.currency, d.traces,
       (CASE WHEN r.whole_traces IS NULL THEN r.unit_price * d.traces
             ELSE round(r.whole_cost * d.traces / r.whole_traces, 10) END)::numeric(38, 10) AS estimated_cost,
       r.is_closed, r.is_final AND usage.is_final(d.status) AS is_final,
       CASE WHEN usage.is_final(d.status) THEN r.coverage_status ELSE d.status END AS coverage_status, 'traces'::text AS measure,
       d.traces AS quantity
FROM usage.daily_row d
JOIN rate r ON r.slug = d.slug AND r.workspace_id = d.workspace_id AND r.days @> d.usage_date
WHERE d.group_by = '{dimension}' AND d.dimension_id <> '(none)' AND d.traces > 0
UNION ALL
SELECT d.slug, d.usage_date, d.workspace_id, d.workspace_name, {columns}, d.sku, d.currency, d.traces, d.cost, d.is_closed,
       d.is_final AND usage.is_final(d.status), CASE WHEN usage.is_final(d.status) THEN d.coverage_status ELSE d.status END, 'traces',
       d.traces
FROM (
  SELECT c.*, CASE WHEN x.loaded @> c.usage_date THEN '(none)' END AS dimension_id, NULL::text AS dimension_name,
         usage.day_status(c.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status
  FROM (
    SELECT slug, usage_date, workspace_id, workspace_name, sku, min(currency) AS currency, sum(traces)::bigint AS traces,
           sum(cost)::numeric(38, 10) AS cost, bool_or(is_closed) AS is_closed, coalesce(bool_and(is_final), false) AS is_final,
           coalesce(min(coverage_status), 'provisional') AS coverage_status
    FROM (
      SELECT u.slug, u.usage_date, u.workspace_id, u.workspace_name, r.sku, r.currency, u.traces, r.unit_price * u.traces AS cost,
             r.is_closed, usage.is_final(u.status) AS is_final, u.status AS coverage_status
      FROM usage.workspace_usage u
      JOIN rate r ON r.slug = u.slug AND r.workspace_id = u.workspace_id AND r.days @> u.usage_date AND r.is_flat
      UNION ALL
      SELECT slug, usage_date, workspace_id, workspace_name, sku, currency, traces, cost, is_closed, is_final, coverage_status
      FROM stepped
      UNION ALL
      SELECT a.slug, a.usage_date, a.workspace_id, a.workspace_name, r.sku, r.currency, -a.traces,
             -(CASE WHEN r.whole_traces IS NULL THEN r.unit_price * a.traces ELSE (
                 SELECT sum(round(r.whole_cost * d.traces / r.whole_traces, 10))
                 FROM usage.daily_row d
                 WHERE d.group_by = '{dimension}' AND d.slug = a.slug AND d.workspace_id = a.workspace_id
                   AND d.usage_date = a.usage_date AND d.dimension_id <> '(none)' AND d.traces > 0
               ) END),
             NULL, NULL, NULL
      FROM usage.attributed_day a
      JOIN rate r ON r.slug = a.slug AND r.workspace_id = a.workspace_id AND r.days @> a.usage_date
      WHERE a.group_by = '{dimension}'
    ) part
    GROUP BY slug, usage_date, workspace_id, workspace_name, sku
    HAVING sum(traces) <> 0 OR sum(cost) <> 0
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
COMMENT ON VIEW reporting.fct_cost_{dimension}_daily IS 'Grain: UTC day x workspace x {title} x SKU, days with usage on which a price is valid (key: source_id, usage_date, workspace_id, {id_column}, sku). An ESTIMATE: what the SKU counts times the average unit price of its workspace, day and SKU. The rest of the workspace''s cost is the row (none), or a row with null id where this dimension is not loaded: so the sum is that of fct_cost_workspace_daily. Costs add up over all of these within one currency; traces and quantity add up within one sku. Never add them to those of another dimension. Empty without prices.';

-- end
CREATE OR REPLACE VIEW reporting.fct_cost_deployment_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, dimension_id AS deployment_id, dimension_name AS deployment_name, sku,
       measure, currency, quantity, cost AS estimated_cost, is_closed, is_final, coverage_status
FROM usage.divided_cost_project
WHERE measure NOT IN ('longlived', 'shortlived') AND EXISTS (SELECT FROM usage.measured_sku);
COMMENT ON VIEW reporting.fct_cost_deployment_daily IS 'Grain: UTC day x workspace x deployment x SKU of deployment usage, days with usage on which a price is valid (key: source_id, usage_date, workspace_id, deployment_id, sku). An ESTIMATE: the quantity times the average unit price of its workspace, day and SKU. The rest of the workspace''s cost is the row (none), or a row with null id where deployments are not loaded: so the sum is that of fct_cost_workspace_daily for these SKUs. Costs add up over all of these within one currency; quantity adds up within one sku. Never add them to those of another dimension: those have them too.';
