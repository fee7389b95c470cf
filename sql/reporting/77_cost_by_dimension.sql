-- Costs by workspace, project, user and key, from the stored charges (usage.charge): estimates from imported prices. Building blocks
-- first; readers cannot see them.

-- Workspaces as readers see them. OFFSET 0: each name is looked up once, not for each charge.
CREATE OR REPLACE VIEW usage.shown_workspace AS
SELECT w.entity_id, s.slug, usage.shown_id(e.external_id) AS workspace_id,
       (
         SELECT n.name FROM usage.entity_name n WHERE n.entity_id = w.entity_id
         ORDER BY n.last_bucket DESC, n.fetch_number DESC, n.name LIMIT 1
       ) AS workspace_name
FROM usage.workspace w
JOIN usage.entity e USING (entity_id)
JOIN usage.source s USING (source_id)
OFFSET 0;

-- The usage of a workspace, day and SKU is a line: first the ids, one after the other, then what has no id, and in a closed month what
-- changed since, which is below zero where there is more now. This is the cost of the line up to a quantity; a part of it costs the
-- difference of its ends, so all parts together cost the whole, to the last digit. Without a unit price, volume tiers begin
-- within the day: then each id has the average price of the whole.
CREATE OR REPLACE FUNCTION usage.cost_up_to(quantity numeric, unit_price numeric, whole numeric, whole_cost numeric) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN unit_price IS NOT NULL THEN unit_price * quantity ELSE round(whole_cost * quantity / whole, 10) END;

-- Traces of each workspace and dimension by day whose records carry an id.
CREATE OR REPLACE VIEW usage.attributed_day AS
SELECT group_by, workspace_entity_id, usage_date, sum(traces)::bigint AS traces
FROM (
  SELECT c.group_by, c.workspace_entity_id, r.bucket_start AS usage_date, r.traces
  FROM usage.cell c
  JOIN usage.series s ON s.scope_id = c.day_scope_id
  JOIN usage.dated_record r USING (series_id)
  JOIN usage.entity e ON e.entity_id = s.entity_id AND e.external_id <> ''
  WHERE c.meter = 'traces'
  UNION ALL
  SELECT f.group_by, f.workspace_entity_id, f.usage_date, f.traces
  FROM usage.figure_of_hours f
  JOIN usage.entity e ON e.entity_id = f.entity_id AND e.external_id <> ''
) part
GROUP BY group_by, workspace_entity_id, usage_date;

CREATE OR REPLACE VIEW reporting.fct_cost_workspace_daily AS
SELECT w.slug AS source_id, c.usage_date, w.workspace_id, w.workspace_name, c.sku, c.price_id, c.tier AS volume_tier, c.unit_price,
       c.currency, CASE WHEN c.measure IN ('traces', 'longlived', 'shortlived') THEN c.traces END AS traces, c.cost AS estimated_cost,
       c.is_closed, c.is_final, c.coverage_status, c.measure, c.traces AS quantity
FROM usage.charge c
JOIN usage.shown_workspace w ON w.entity_id = c.workspace_id
WHERE c.is_booked;
COMMENT ON VIEW reporting.fct_cost_workspace_daily IS 'Grain: UTC day x workspace x SKU x volume tier, days with usage on which a price is valid (key: source_id, usage_date, workspace_id, sku, volume_tier). An ESTIMATE from the imported prices, not an invoice. A closed month keeps the costs that it was closed with. Costs add up over all of these within one currency; traces and quantity add up within one sku. Never add them to those of another dimension. Empty without prices.';

-- What a workspace, day and SKU of a retention tier or of deployments cost.
CREATE OR REPLACE VIEW usage.measured_cost AS
SELECT w.slug, c.usage_date, w.workspace_id, w.workspace_name, c.sku, c.measure, c.currency, c.day_traces AS quantity, c.day_cost AS cost,
       c.day_unit_price AS unit_price, c.is_closed, c.is_final, c.coverage_status, c.day_traces_now AS quantity_now
FROM usage.charge c
JOIN usage.shown_workspace w ON w.entity_id = c.workspace_id
WHERE c.is_booked AND c.day_traces IS NOT NULL AND c.measure <> 'traces';

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
WITH x AS MATERIALIZED (
  SELECT slug, workspace_id, meter, loaded, final, not_available, failed, missing, unverified
  FROM usage.figure_days WHERE group_by = '{dimension}'
),
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
         max(quantity) FILTER (WHERE kind = 'whole') OVER v AS whole, max(quantity_now) OVER v AS now,
         coalesce(sum(quantity) FILTER (WHERE kind = 'id') OVER v, 0) AS of_ids,
         sum(quantity) FILTER (WHERE kind = 'id') OVER (v ORDER BY dimension_id COLLATE "C") AS counted
  FROM (
    SELECT c.slug, c.usage_date, c.workspace_id, c.workspace_name, CASE WHEN x.loaded @> c.usage_date THEN '(none)' END AS dimension_id,
           NULL::text AS dimension_name, c.sku, c.measure, 'whole' AS kind, c.quantity, c.quantity_now, c.cost, c.unit_price, c.currency,
           c.is_closed, c.is_final, c.coverage_status,
           CASE WHEN x.slug IS NULL THEN 'missing'
                ELSE usage.day_status(c.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) END AS status
    FROM usage.measured_cost c
    LEFT JOIN x
      ON x.slug = c.slug AND x.workspace_id = c.workspace_id
     AND x.meter = CASE WHEN c.measure IN ('longlived', 'shortlived') THEN c.measure ELSE 'deployments' END
    UNION ALL
    SELECT t.source_id, t.usage_date, t.workspace_id, t.workspace_name, t.id, t.name, k.sku, k.measure, 'id', t.quantity, NULL, NULL, NULL,
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
) d
CROSS JOIN LATERAL (
  SELECT false AS is_adjustment, d.counted - d.quantity AS starts, d.counted AS ends WHERE d.kind = 'id'
  UNION ALL
  SELECT false, d.of_ids, d.now WHERE d.kind = 'whole'
  UNION ALL
  SELECT true, d.now, d.whole WHERE d.kind = 'whole'
) part
CROSS JOIN LATERAL (
  SELECT usage.cost_up_to(part.ends, d.unit_price, d.whole, d.whole_cost)
           - usage.cost_up_to(part.starts, d.unit_price, d.whole, d.whole_cost) AS cost
) q
-- Without a cost of its workspace nothing is divided. A part of nothing is no row.
WHERE q.cost IS NOT NULL AND part.ends <> part.starts;

-- each dimension but workspace
-- The parts of the line of traces (usage.cost_up_to): ids, what has no id (null where this dimension is not loaded), and what changed
-- since a close. So every dimension has the same sum, to the last digit. What is left of a whole is a union and grouped, not joined:
-- then a filter on the day reaches the records.
CREATE OR REPLACE VIEW reporting.fct_cost_{dimension}_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.workspace_name, {columns}, d.sku, d.currency, d.traces,
       d.cost::numeric(38, 10) AS estimated_cost, d.is_closed, d.is_certain AND usage.is_final(d.status) AS is_final,
       CASE WHEN usage.is_final(d.status) THEN d.coverage_status ELSE d.status END AS coverage_status, 'traces'::text AS measure,
       d.traces AS quantity
FROM (
  SELECT d.slug, d.usage_date, d.workspace_id, d.workspace_name, d.dimension_id, d.dimension_name, r.sku, r.currency, d.traces,
         r.day_unit_price * d.traces AS cost, r.is_closed, r.is_final AS is_certain, r.coverage_status, d.status
  FROM usage.daily_row d
  JOIN usage.charge r ON r.workspace_id = d.workspace_entity_id AND r.usage_date = d.usage_date
  WHERE d.group_by = '{dimension}' AND d.dimension_id <> '(none)' AND d.traces > 0
    AND r.is_booked AND r.measure = 'traces' AND r.day_unit_price IS NOT NULL
  UNION ALL
  SELECT slug, usage_date, workspace_id, workspace_name, dimension_id, dimension_name, sku, currency, traces,
         usage.cost_up_to(counted, NULL, whole, whole_cost) - usage.cost_up_to(counted - traces, NULL, whole, whole_cost), is_closed,
         is_certain, coverage_status, status
  FROM (
    SELECT d.slug, d.usage_date, d.workspace_id, d.workspace_name, d.dimension_id, d.dimension_name, r.sku, r.currency, d.traces,
           sum(d.traces) OVER (PARTITION BY d.slug, d.usage_date, d.workspace_id, r.sku ORDER BY d.dimension_id COLLATE "C") AS counted,
           r.day_traces AS whole, r.day_cost AS whole_cost, r.is_closed, r.is_final AS is_certain, r.coverage_status, d.status
    FROM usage.daily_row d
    JOIN usage.charge r ON r.workspace_id = d.workspace_entity_id AND r.usage_date = d.usage_date
    WHERE d.group_by = '{dimension}' AND d.dimension_id <> '(none)' AND d.traces > 0
      AND r.is_booked AND r.measure = 'traces' AND r.day_traces IS NOT NULL AND r.day_unit_price IS NULL
  ) average
  UNION ALL
  SELECT x.slug, c.usage_date, x.workspace_id, x.workspace_name,
         CASE WHEN c.is_adjustment THEN '(adjustment)' WHEN x.loaded @> c.usage_date THEN '(none)' END, NULL, c.sku, c.currency, c.traces,
         c.cost, c.is_closed, c.is_final, c.coverage_status,
         usage.day_status(c.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified)
  FROM (
    SELECT workspace_entity_id, usage_date, sku, is_adjustment, min(currency) AS currency, sum(traces)::bigint AS traces,
           sum(cost)::numeric(38, 10) AS cost, bool_or(is_closed) AS is_closed, coalesce(bool_and(is_final), false) AS is_final,
           coalesce(min(coverage_status), 'provisional') AS coverage_status
    FROM (
      -- What is divided is what the workspace has now: in a closed month that is not what was charged.
      SELECT r.workspace_id AS workspace_entity_id, r.usage_date, r.sku, r.currency, part.is_adjustment,
             CASE WHEN part.is_adjustment THEN r.day_traces - r.day_traces_now ELSE r.day_traces_now END AS traces,
             CASE WHEN part.is_adjustment THEN r.day_cost ELSE 0 END
               + CASE WHEN part.is_adjustment THEN -1 ELSE 1 END
                 * usage.cost_up_to(r.day_traces_now, r.day_unit_price, r.day_traces, r.day_cost) AS cost,
             r.is_closed, r.is_final, r.coverage_status
      FROM usage.charge r
      JOIN (VALUES (false), (true)) part (is_adjustment) ON r.is_closed OR NOT part.is_adjustment
      WHERE r.is_booked AND r.measure = 'traces' AND r.day_traces IS NOT NULL
      UNION ALL
      SELECT a.workspace_entity_id, a.usage_date, r.sku, r.currency, false, -a.traces,
             -usage.cost_up_to(a.traces, r.day_unit_price, r.day_traces, r.day_cost), NULL, NULL, NULL
      FROM usage.attributed_day a
      JOIN usage.charge r ON r.workspace_id = a.workspace_entity_id AND r.usage_date = a.usage_date
      WHERE a.group_by = '{dimension}' AND r.is_booked AND r.measure = 'traces' AND r.day_traces IS NOT NULL
    ) part
    GROUP BY workspace_entity_id, usage_date, sku, is_adjustment
    HAVING sum(traces) <> 0
  ) c
  JOIN usage.cell_days x ON x.workspace_entity_id = c.workspace_entity_id AND x.group_by = '{dimension}'
) d
WHERE EXISTS (SELECT FROM usage.charge)
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
