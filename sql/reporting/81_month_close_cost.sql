-- The cost of closed months: at the prices of the close, and at the prices and counts of now.
CREATE OR REPLACE VIEW reporting_detail.fct_month_close_cost AS
SELECT src.slug AS source_id, m.month_start, w.dimension_id AS workspace_id, w.dimension_name AS workspace_name, p.sku,
       p.unit_price, p.currency, sum(p.closed_traces)::numeric(26, 6) AS closed_traces, sum(p.closed_cost)::numeric(38, 10) AS closed_cost,
       (sum(p.current_cost) - sum(p.closed_cost))::numeric(38, 10) AS adjustment_cost,
       sum(p.current_cost)::numeric(38, 10) AS current_cost, m.closed_at, p.measure,
       NOT usage.is_on_no_invoice(p.measure, m.month_start) AS is_invoiced
FROM (
  SELECT k.close_id, k.workspace_id, k.sku, k.unit_price, k.currency, k.traces AS closed_traces, k.cost AS closed_cost,
         0 AS current_cost, k.measure
  FROM usage.closed_cost k
  UNION ALL
  SELECT m.close_id, c.workspace_id, c.sku, c.unit_price, c.currency, 0, 0, c.cost, c.measure
  FROM usage.month_close m
  JOIN usage.charge c USING (source_id, month_start)
  WHERE NOT c.is_closed
) p
JOIN usage.month_close m USING (close_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = p.workspace_id
LEFT JOIN usage.closed_workspace x ON x.close_id = m.close_id AND x.workspace_id = p.workspace_id
WHERE x.is_left_out IS NOT TRUE
GROUP BY src.slug, m.month_start, w.dimension_id, w.dimension_name, p.sku, p.unit_price, p.currency, m.closed_at, p.measure;
COMMENT ON VIEW reporting_detail.fct_month_close_cost IS 'Closed months: what they cost when closed, and what changed since. Grain: closed calendar month x workspace x SKU x price (key: source_id, month_start, workspace_id, sku, unit_price, currency). An ESTIMATE from the imported prices. closed_cost never changes. Later prices and counts make adjustment_cost, and the sum of both is current_cost. Costs add up over all of these within one currency; closed_traces add up within one sku.';
