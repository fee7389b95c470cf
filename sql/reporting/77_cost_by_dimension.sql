-- Costs by workspace, project, user and key, from the stored charges (usage.charge, usage.charge_day): estimates from
-- imported prices. Building blocks first; readers cannot see them.

-- Workspaces as readers see them. OFFSET 0: each name is looked up once, not for each charge; without it a week of
-- FOCUS by resource would take 1.9 times as long. Behind it the planner takes a filter on the slug for one that leaves
-- a single workspace, so the views of costs take the slug from usage.source.
CREATE OR REPLACE VIEW usage.shown_workspace AS
SELECT w.entity_id, s.slug, usage.shown_id(e.external_id) AS workspace_id,
       (
         SELECT n.name FROM usage.entity_name n WHERE n.entity_id = w.entity_id
         ORDER BY n.fetch_number DESC LIMIT 1
       ) AS workspace_name, e.source_id
FROM usage.workspace w
JOIN usage.entity e USING (entity_id)
JOIN usage.source s USING (source_id)
OFFSET 0;

CREATE OR REPLACE VIEW reporting.fct_cost_workspace_daily AS
SELECT s.slug AS source_id, c.usage_date, w.workspace_id, w.workspace_name, c.sku, c.price_id, c.tier AS volume_tier,
       c.unit_price, c.currency, CASE WHEN c.measure IN ('traces', 'longlived', 'shortlived')
                                        THEN c.quantity::bigint END AS traces, c.cost AS estimated_cost,
       c.is_closed, c.is_final, c.coverage_status, c.measure, c.quantity::numeric(26, 6) AS quantity,
       NOT usage.is_on_no_invoice(c.measure, c.usage_date) AS is_invoiced
FROM usage.booked_charge c
-- LEFT, although each charge has a workspace: in a union the planner expects that few have one, and sorts all of them
-- for a LIMIT.
LEFT JOIN usage.shown_workspace w ON w.entity_id = c.workspace_id
LEFT JOIN usage.source s ON s.source_id = w.source_id;
COMMENT ON VIEW reporting.fct_cost_workspace_daily IS
  'What usage costs, by workspace and day. Grain: UTC day x workspace x SKU x volume tier, days with usage on which a '
  'price is valid (key: source_id, usage_date, workspace_id, sku, volume_tier). An ESTIMATE from the imported prices, '
  'not an invoice. A closed month keeps the costs that it was closed with. Costs add up over all keys within one '
  'currency, traces and quantity within one sku. Costs by project, user, API key, deployment and sandbox are in '
  'fct_cost_by_id_daily of reporting_detail: never add costs of two dimensions. Empty without prices.';
CALL usage.comment_columns('{reporting.fct_cost_workspace_daily}',
  'traces',
    'Traces that are charged at this price. Adds up over days, workspaces and volume tiers within one sku. Null: the '
    'SKU counts no traces.'
);

-- The usage of each id by day, for priced measures. These days are loaded, so the sets of their scope have their
-- status.
CREATE OR REPLACE VIEW usage.priced_usage AS
WITH own AS MATERIALIZED (
  SELECT c.group_by, c.workspace_id, usage.meter_of(c.kind, c.trace_tier) AS meter, c.scope_id, d.loaded, d.final,
         d.failed, d.unverified
  FROM usage.scope c
  JOIN usage.day_state d USING (scope_id)
  WHERE c.stride = 'day' AND c.trace_tier <> 'shortlived'
    AND usage.meter_of(c.kind, c.trace_tier) IN (SELECT p.meter FROM usage.priced_meter p)
),
of_hours AS MATERIALIZED (
  SELECT c.group_by, c.workspace_id, c.scope_id, day,
         usage.status_at(day, h.whole_final_days - coalesce(d.failed, '{}'), '{}', d.failed, '{}', '{}') AS status
  FROM usage.trace_scope c
  JOIN usage.hour_state h USING (scope_id)
  LEFT JOIN usage.trace_scope o
    ON o.source_id = c.source_id AND o.group_by = c.group_by AND o.workspace_id = c.workspace_id AND o.stride = 'day'
  LEFT JOIN usage.day_state d ON d.scope_id = o.scope_id
  CROSS JOIN LATERAL usage.days_of(usage.days_made_of_hours(h.whole_days, d.loaded, d.unverified)) day
  WHERE c.stride = 'hour'
),
-- Inlined, it would make the costs of a month by user take twice as long, and those by project 1.5 times.
two_tiers AS MATERIALIZED (
  SELECT a.group_by, a.workspace_id, a.scope_id, c.scope_id AS longlived_scope_id, d.loaded * o.loaded AS loaded,
         d.final * o.final AS final, d.failed + o.failed AS failed, d.unverified + o.unverified AS unverified
  FROM usage.trace_scope a
  JOIN usage.day_state d USING (scope_id)
  JOIN usage.scope c
    ON c.source_id = a.source_id AND c.group_by = a.group_by AND c.workspace_id = a.workspace_id AND c.kind = 'traces'
   AND c.trace_tier = 'longlived' AND c.stride = 'day'
  JOIN usage.day_state o ON o.scope_id = c.scope_id
  WHERE a.stride = 'day' AND 'shortlived' IN (SELECT p.meter FROM usage.priced_meter p)
)
-- Columns that a query may not read are computed in the outer list: a union computes all of its columns, and these take
-- longer than the records.
SELECT u.group_by, u.workspace_entity_id, u.meter, u.measure, u.usage_date, u.entity_id,
       usage.shown_id(u.external_id) AS dimension_id, u.quantity,
       CASE WHEN u.known_status IS NOT NULL THEN u.known_status
            WHEN u.loaded @> u.usage_date
              THEN usage.status_at(u.usage_date, u.final, '{}', u.failed, '{}', u.unverified)
            ELSE 'missing' END AS status
FROM (
  SELECT c.group_by, c.workspace_id AS workspace_entity_id, c.meter,
         CASE s.measure WHEN 'traces' THEN c.meter ELSE s.measure END AS measure, r.bucket_start AS usage_date,
         s.entity_id, e.external_id, usage.amount_of(s.measure, r.traces) AS quantity, NULL AS known_status, c.loaded,
         c.final, c.failed, c.unverified
  FROM own c
  JOIN usage.series s USING (scope_id)
  JOIN usage.dated_record r USING (series_id)
  JOIN usage.entity e ON e.entity_id = s.entity_id AND e.external_id <> ''
  WHERE r.traces > 0
  UNION ALL
  SELECT c.group_by, c.workspace_id, 'traces', 'traces', c.day, s.entity_id, e.external_id, r.traces, c.status, NULL,
         NULL, NULL, NULL
  FROM of_hours c
  JOIN usage.series s USING (scope_id)
  JOIN usage.entity e ON e.entity_id = s.entity_id AND e.external_id <> ''
  CROSS JOIN LATERAL usage.traces_of_hours(ARRAY[s.series_id], c.day) r (traces)
  WHERE r.traces > 0
  UNION ALL
  -- Short-lived traces are all traces less the long-lived ones. There is no figure if there are more long-lived ones.
  SELECT c.group_by, c.workspace_id, 'shortlived', 'shortlived', r.bucket_start, s.entity_id, e.external_id, l.traces,
         NULL, c.loaded, c.final, c.failed, c.unverified
  FROM two_tiers c
  JOIN usage.series s USING (scope_id)
  JOIN usage.dated_record r USING (series_id)
  JOIN usage.entity e ON e.entity_id = s.entity_id AND e.external_id <> ''
  -- Looked up, not joined: a filter on the day would reach one side of a join only. Without OFFSET 0 it would be looked
  -- up for each mention, and the costs of an owner in 90 days would take 2.5 times as long.
  CROSS JOIN LATERAL (
    SELECT r.traces - coalesce((
      SELECT l.traces
      FROM usage.series x
      JOIN usage.dated_record l USING (series_id)
      WHERE x.scope_id = c.longlived_scope_id AND x.entity_id = s.entity_id AND l.bucket_start = r.bucket_start
    ), 0) AS traces
    LIMIT ALL OFFSET 0
  ) l
  WHERE coalesce(c.loaded @> r.bucket_start, false) AND l.traces > 0
) u;

-- The days of each cell of a priced meter, loaded or not. As a function, it is planned and run once for a query, and
-- runs as its owner, since readers may not read the tables.
CREATE OR REPLACE FUNCTION usage.priced_days(dimension text)
RETURNS TABLE (
  meter text, workspace_entity_id integer, loaded datemultirange, final datemultirange, not_available datemultirange,
  failed datemultirange, missing datemultirange, unverified datemultirange
)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT 'traces', x.workspace_entity_id, x.loaded, x.final, x.not_available, x.failed, x.missing, x.unverified
  FROM usage.trace_cell x
  WHERE x.group_by = dimension
  UNION ALL
  SELECT x.meter, x.workspace_entity_id, x.loaded, x.final, x.not_available, x.failed, x.missing, x.unverified
  FROM usage.figure_days x
  WHERE x.group_by = dimension AND x.meter = ANY (ARRAY(SELECT p.meter FROM usage.priced_meter p))
$$;

-- The cost of a workspace, day and SKU, divided by each dimension. The usage is a line, and each part goes from
-- `starts` to `ends`: first the ids, one after the other, then usage without an id (null if this dimension is not
-- loaded), and in a closed month the change since, which is below zero if there is more now. A part costs the
-- difference between what the line costs up to its two ends. So all parts together cost the whole in every dimension,
-- to the last digit. Without a unit price, volume tiers begin within the day: then each id has the average price of the
-- whole.
CREATE OR REPLACE VIEW usage.divided_cost AS
SELECT s.slug, d.group_by, d.usage_date, d.workspace_entity_id, w.workspace_id, w.workspace_name, d.entity_id,
       d.dimension_id,
       -- Looked up here, so that a query that does not read it does not compute it.
       (SELECT e.dimension_name FROM usage.labelled_entity e WHERE e.entity_id = d.entity_id) AS dimension_name, d.sku,
       d.meter, d.measure, d.currency, d.ends - d.starts AS quantity,
       CASE
         WHEN d.unit_price IS NOT NULL THEN d.unit_price * (d.ends - d.starts)
         ELSE round(d.whole_cost * d.ends / d.whole, 10) - round(d.whole_cost * d.starts / d.whole, 10)
       END::numeric(38, 10) AS cost,
       d.is_closed, d.is_certain AND usage.is_final(d.status) AS is_final,
       CASE WHEN usage.is_final(d.status) THEN d.coverage_status ELSE d.status END AS coverage_status
FROM (
  SELECT l.group_by, l.workspace_entity_id, l.usage_date, l.entity_id, l.sku, l.meter, l.measure, l.currency,
         l.unit_price, l.whole, l.whole_cost, l.is_closed, l.is_certain, l.coverage_status,
         CASE l.part WHEN 'id' THEN l.dimension_id WHEN 'adjustment' THEN '(adjustment)'
              ELSE CASE WHEN x.loaded @> l.usage_date THEN '(none)' END END
           AS dimension_id,
         CASE l.part WHEN 'id' THEN l.counted - l.of_id WHEN 'rest' THEN l.counted ELSE l.now END AS starts,
         CASE l.part WHEN 'id' THEN l.counted WHEN 'rest' THEN l.now ELSE l.whole END AS ends,
         CASE WHEN l.part = 'id' THEN l.status
              WHEN x.meter IS NULL THEN 'missing'
              ELSE usage.status_at(l.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified)
         END AS status
  FROM (
    SELECT *, coalesce(sum(of_id) OVER (
             -- Text comes last: it takes longest to sort.
             PARTITION BY workspace_entity_id, usage_date, sku, measure, meter, group_by
             -- At one price the order of ids does not matter, and sorting them takes long. If volume tiers begin within
             -- the day, each id has its place. Usage without an id comes last.
             ORDER BY CASE WHEN unit_price IS NULL THEN dimension_id END COLLATE "C"
           ), 0) AS counted
    FROM (
      SELECT g.group_by, c.workspace_id AS workspace_entity_id, c.usage_date, p.part, 0 AS entity_id,
             NULL::text AS dimension_id, c.sku, usage.meter_of_measure(c.measure) AS meter, c.measure, c.currency,
             NULL::numeric AS of_id, c.quantity_now AS now, c.quantity AS whole, c.cost AS whole_cost, c.unit_price,
             c.is_closed, c.is_final AS is_certain, c.coverage_status,
             NULL::text AS status
      FROM usage.charge_day c
      JOIN usage.meter_dimension g ON g.meter = 'traces' AND g.group_by <> 'workspace'
      JOIN (VALUES ('rest'), ('adjustment')) p (part) ON p.part = 'rest' OR c.is_closed
      UNION ALL
      SELECT u.group_by, u.workspace_entity_id, u.usage_date, 'id', u.entity_id, u.dimension_id, c.sku, u.meter,
             u.measure, c.currency, u.quantity, NULL, c.quantity, c.cost, c.unit_price, c.is_closed,
             c.is_final, c.coverage_status, u.status
      FROM usage.priced_usage u
      JOIN usage.charge_day c ON c.workspace_id = u.workspace_entity_id AND c.usage_date = u.usage_date
        AND c.measure = u.measure
    ) listed
  ) l
  -- DISTINCT gives one row for each cell, so that the planner skips it if a query does not read its columns.
  LEFT JOIN (
    SELECT DISTINCT ON (g.group_by, x.workspace_entity_id, x.meter) g.group_by, x.*
    FROM usage.meter_dimension g
    CROSS JOIN LATERAL usage.priced_days(g.group_by) x
    WHERE g.meter = 'traces' AND g.group_by <> 'workspace'
  ) x ON x.group_by = l.group_by AND x.workspace_entity_id = l.workspace_entity_id AND x.meter = l.meter
    AND l.part <> 'id'
) d
JOIN usage.shown_workspace w ON w.entity_id = d.workspace_entity_id
JOIN usage.source s ON s.source_id = w.source_id
-- An empty part has no row.
WHERE d.ends <> d.starts;

-- A filter on group_by reaches each part, so a query that names one dimension reads no other.
CREATE OR REPLACE VIEW reporting_detail.fct_cost_by_id_daily AS
SELECT d.slug AS source_id, d.usage_date, d.group_by, d.workspace_id, d.workspace_name, d.dimension_id,
       d.dimension_name, d.sku, d.currency,
       CASE WHEN d.meter NOT IN ('deployments', 'sandboxes') THEN d.quantity::bigint END AS traces,
       d.cost AS estimated_cost, d.is_closed, d.is_final, d.coverage_status, d.measure,
       d.quantity::numeric(26, 6) AS quantity, NOT usage.is_on_no_invoice(d.measure, d.usage_date) AS is_invoiced
FROM (
  SELECT slug, 'deployment' AS group_by, usage_date, workspace_id, workspace_name, dimension_id, dimension_name, sku,
         meter, measure, currency, quantity, cost, is_closed, is_final, coverage_status
  FROM usage.divided_cost
  WHERE group_by = 'project' AND meter = 'deployments'
  UNION ALL
  SELECT slug, 'sandbox', usage_date, workspace_id, workspace_name, dimension_id, dimension_name, sku, meter, measure,
         currency, quantity, cost, is_closed, is_final, coverage_status
  FROM usage.divided_cost
  WHERE group_by = 'project' AND meter = 'sandboxes'
  UNION ALL
  SELECT slug, group_by, usage_date, workspace_id, workspace_name, dimension_id,
         CASE group_by WHEN 'project' THEN dimension_name END, sku, meter, measure, currency, quantity, cost, is_closed,
         is_final, coverage_status
  FROM usage.divided_cost
  WHERE group_by <> 'workspace'
    AND CASE meter WHEN 'sandboxes' THEN false WHEN 'deployments' THEN group_by <> 'project' ELSE true END
  UNION ALL
  -- A sandbox is no project, user or key, and belongs to none of them. A deployment is no project either.
  SELECT w.slug, g.group_by, c.usage_date, w.workspace_id, w.workspace_name, '(none)', NULL, c.sku,
         usage.meter_of_measure(c.measure), c.measure, c.currency, c.quantity, c.cost, c.is_closed, c.is_final,
         c.coverage_status
  FROM (VALUES ('project'), ('user'), ('api_key')) g (group_by)
  CROSS JOIN usage.charge_day c
  JOIN usage.shown_workspace w ON w.entity_id = c.workspace_id
  WHERE CASE usage.meter_of_measure(c.measure)
      WHEN 'sandboxes' THEN true WHEN 'deployments' THEN g.group_by = 'project' END
) d
WHERE EXISTS (SELECT FROM usage.priced_meter);
COMMENT ON VIEW reporting_detail.fct_cost_by_id_daily IS
  'What usage costs, by project, user, API key, deployment or sandbox and day. Grain: UTC day x dimension x workspace '
  'x id x SKU, days with usage on which a price is valid (key: source_id, usage_date, group_by, workspace_id, '
  'dimension_id, sku). An ESTIMATE: the quantity of the SKU times the average unit price of its workspace, day and '
  'SKU. Choose ONE group_by: costs add up over the other keys within one currency, traces and quantity within one sku, '
  'never over two dimensions. Cost of no id is in the row (none), or in a row with null id where this dimension is not '
  'loaded. In a closed month the row (adjustment) is the closed cost less what the ids are charged today. So the sum '
  'by project, user or API key equals fct_cost_workspace_daily, and the sum by deployment or sandbox equals their SKUs '
  'there. Empty without prices.';
CALL usage.comment_columns('{reporting_detail.fct_cost_by_id_daily}',
  'group_by', 'What dimension_id names: project, user, api_key, deployment or sandbox.',
  'traces',
    'Traces that are charged. Adds up over the view''s own key within one sku. Below zero in the row (none): the '
    'platform counts more traces by id than the workspace has. Below zero in the row (adjustment): the month was '
    'closed with other counts.',
  'is_closed',
    'Whether the month is closed. The sum of a closed month by workspace stays, and the row (adjustment) balances what '
    'the ids have more or less since.'
);
