-- Usage and costs by owner. Each count goes to its id, and is subtracted from the rest of its workspace, which begins
-- with the count of the workspace. So all owners together have what the workspaces have, whatever the dividing
-- dimension has loaded.

-- Traces as each dimension divides them: of its ids, and of the rest of each workspace (entity 0).
CREATE OR REPLACE VIEW usage.divided_traces AS
WITH workspace AS (SELECT workspace_entity_id, loaded FROM usage.trace_cell WHERE group_by = 'workspace')
-- Names are looked up here, only if a query reads them: a union computes all of its columns.
SELECT u.*, (SELECT e.dimension_name FROM usage.labelled_entity e WHERE e.entity_id = u.entity_id) AS dimension_name
FROM (
  SELECT g.group_by, d.slug, d.usage_date, d.workspace_entity_id, d.workspace_id, d.workspace_name, 0 AS entity_id,
         '' AS dimension, '(none)' AS dimension_id, d.traces, d.is_final, d.coverage_status
  FROM usage.workspace_day d
  CROSS JOIN (VALUES ('project'), ('user'), ('api_key')) g (group_by)
  UNION ALL
  SELECT d.group_by, d.slug, d.usage_date, d.workspace_entity_id, d.workspace_id, d.workspace_name, part.entity_id,
         part.dimension, part.id, part.traces, usage.is_final(d.status), d.status
  FROM usage.daily_row d
  -- If the workspace itself is not loaded, nothing is divided.
  JOIN workspace w ON w.workspace_entity_id = d.workspace_entity_id AND coalesce(w.loaded @> d.usage_date, false)
  CROSS JOIN LATERAL (
    SELECT d.entity_id, d.group_by AS dimension, d.dimension_id AS id, d.traces WHERE d.dimension_id <> '(none)'
    UNION ALL
    SELECT 0, '', '(none)', CASE WHEN d.dimension_id <> '(none)' THEN -d.traces ELSE 0 END
  ) part
  WHERE d.group_by <> 'workspace'
) u;

-- Owners are joined as a whole, whatever a query filters on. They are a materialized CTE, as in the costs below, so
-- that a test finds them in the plan by this name. Inlined, the owners of a month by 2,000 rules take as long.
CREATE OR REPLACE VIEW usage.owned_usage AS
WITH owned AS MATERIALIZED (
  SELECT workspace_entity_id, entity_id, days, rule_number, owner, cost_center, share FROM usage.owned_days
)
SELECT p.slug, p.usage_date, p.workspace_id, p.workspace_name, p.dimension, p.dimension_id, p.dimension_name,
       coalesce(o.owner, '(unallocated)') AS owner, coalesce(o.cost_center, '(none)') AS cost_center, o.rule_number,
       p.traces * coalesce(o.share, 1) AS traces, p.is_final, p.coverage_status
FROM usage.divided_traces p
-- The planner expects a few of the many ids' records, and would search all owners for each of them.
CROSS JOIN usage.expect_many() many
LEFT JOIN owned o ON o.workspace_entity_id = p.workspace_entity_id AND o.entity_id = p.entity_id
  AND o.days @> p.usage_date AND many
WHERE p.group_by = (SELECT d.dimension FROM usage.owned_dimension d);

CREATE OR REPLACE VIEW reporting.fct_usage_owner_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, owner, cost_center,
       sum(traces)::numeric(26, 4) AS traces, bool_and(is_final) AS is_final,
       usage.worst_status(array_agg(coverage_status)) AS coverage_status
FROM usage.owned_usage
GROUP BY slug, usage_date, workspace_id, workspace_name, owner, cost_center
-- Leaves out an empty rest, whose traces all have ids.
HAVING sum(traces) IS DISTINCT FROM 0;
COMMENT ON VIEW reporting.fct_usage_owner_daily IS
  'Traces by owner (team) and day, and traces without an owner. Grain: UTC day x workspace x owner x cost centre, days '
  'with usage (key: source_id, usage_date, workspace_id, owner, cost_center). Owners come from the owner file '
  '(usage-etl owners apply). Traces that no rule gives to an owner are (unallocated), and an owner without a cost '
  'centre has (none). Traces add up over all keys to fct_usage_workspace_daily. Where owners share an id, traces have '
  'digits after the point. A day of a workspace that is not loaded is one row with null traces. Never add these traces '
  'to those of a dimension. Filter on usage_date.';
CALL usage.comment_columns('{reporting.fct_usage_owner_daily}',
  'traces',
    'Traces of the owner. They add up over days, workspaces and owners to the traces of the workspaces. Digits after '
    'the point: owners share an id. Below zero: the platform counts more traces by id than the workspace has. Null: '
    'the workspace is not loaded.'
);

-- Costs by owner, from their division by id. Each id of deployments and sandboxes is known, whatever dimension divides
-- traces.
CREATE OR REPLACE VIEW usage.owned_cost AS
WITH owned AS MATERIALIZED (
  SELECT workspace_entity_id, entity_id, days, rule_number, owner, cost_center, share FROM usage.owned_days
)
SELECT c.slug, c.usage_date, c.workspace_id, c.workspace_name,
       CASE WHEN c.entity_id = 0 THEN '' WHEN c.meter = 'deployments' THEN 'deployment'
            WHEN c.meter = 'sandboxes' THEN 'sandbox'
            ELSE c.group_by END AS dimension,
       CASE WHEN c.entity_id = 0 THEN '(none)' ELSE c.dimension_id END AS dimension_id, c.dimension_name,
       coalesce(o.owner, '(unallocated)') AS owner, coalesce(o.cost_center, '(none)') AS cost_center, o.rule_number,
       c.sku, c.measure, c.currency, coalesce(o.share, 1) AS share, c.quantity * coalesce(o.share, 1) AS quantity,
       c.cost * coalesce(o.share, 1) AS cost, c.is_closed, c.is_final, c.coverage_status, c.entity_id
FROM usage.divided_cost c
CROSS JOIN usage.expect_many() many
-- One join key: with two, the planner merges by the workspace alone and tries each of its owners.
LEFT JOIN owned o
  ON ARRAY[o.workspace_entity_id, o.entity_id] = ARRAY[c.workspace_entity_id, c.entity_id] AND o.days @> c.usage_date
    AND many
WHERE c.group_by = CASE WHEN c.meter IN ('deployments', 'sandboxes') THEN 'project'
                        ELSE (SELECT d.dimension FROM usage.owned_dimension d) END
  AND EXISTS (SELECT FROM usage.priced_meter);

CREATE OR REPLACE VIEW reporting.fct_cost_owner_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, owner, cost_center, sku, measure, currency,
       sum(quantity)::numeric(30, 10) AS quantity, sum(cost)::numeric(38, 14) AS estimated_cost,
       bool_or(is_closed) AS is_closed, bool_and(is_final) AS is_final,
       usage.worst_status(array_agg(coverage_status)) AS coverage_status,
       NOT usage.is_on_no_invoice(measure, usage_date) AS is_invoiced
FROM usage.owned_cost
GROUP BY slug, usage_date, workspace_id, workspace_name, owner, cost_center, sku, measure, currency;
COMMENT ON VIEW reporting.fct_cost_owner_daily IS
  'What each owner (team) pays by day, and which cost has no owner. Grain: UTC day x workspace x owner x cost centre x '
  'SKU, days with usage on which a price is valid (key: source_id, usage_date, workspace_id, owner, cost_center, sku). '
  'Owners come from the owner file (usage-etl owners apply). Cost that no rule gives to an owner is (unallocated), and '
  'an owner without a cost centre has (none). An ESTIMATE from the imported prices. All costs are divided, those of '
  'deployments and sandboxes too: the sum equals fct_cost_workspace_daily, to the last digit. Costs add up over all '
  'keys within one currency, quantity within one sku. A closed month keeps its costs, and is divided by today''s '
  'owners. Never add these costs to those of a dimension. Empty without prices.';
CALL usage.comment_columns('{reporting.fct_cost_owner_daily}',
  'quantity',
    'Quantity that is charged to the owner, in units of measure. Adds up over days, workspaces and owners within one '
    'sku.'
);
