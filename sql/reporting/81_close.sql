-- Closed periods: the totals that they were closed with, and those that are stored today.

CREATE OR REPLACE VIEW reporting_detail.fct_close AS
SELECT src.slug AS source_id, m.period_start, m.period_end, m.month_start IS NOT NULL AS is_calendar_month, t.group_by,
       w.dimension_id AS workspace_id, w.dimension_name AS workspace_name, e.dimension_id,
       CASE WHEN e.dimension <> 'user' THEN e.dimension_name END AS dimension_name, o.is_left_out,
       CASE WHEN NOT o.is_left_out THEN t.closed END AS closed_traces,
       CASE WHEN NOT o.is_left_out THEN t.current - t.closed END AS adjustment_traces,
       CASE WHEN NOT o.is_left_out THEN t.current END AS current_traces, m.closed_at, m.settle_after_seconds,
       m.accepted_disagreements
FROM usage.close m
JOIN usage.source src USING (source_id)
CROSS JOIN LATERAL (
  SELECT group_by, workspace_id, entity_id, sum(closed)::bigint AS closed, sum(current)::bigint AS current
  FROM (
    SELECT c.group_by, c.workspace_id, s.entity_id, t.traces AS closed, 0 AS current
    FROM usage.closed_total t
    JOIN usage.series s USING (series_id)
    JOIN usage.trace_scope c USING (scope_id)
    WHERE t.close_id = m.close_id
    UNION ALL
    SELECT c.group_by, c.workspace_id, s.entity_id, 0, r.traces
    FROM usage.trace_scope c
    JOIN usage.series s USING (scope_id)
    JOIN usage.dated_record r USING (series_id)
    WHERE c.source_id = m.source_id AND c.stride = 'day' AND r.bucket_start >= m.period_start
      AND r.bucket_start < m.period_end
      AND r.traces > 0
    UNION ALL
    -- A workspace of the close has a row even if it has no traces.
    SELECT 'workspace', x.workspace_id, x.workspace_id, 0, 0 FROM usage.closed_workspace x WHERE x.close_id = m.close_id
  ) part
  GROUP BY group_by, workspace_id, entity_id
) t
JOIN usage.labelled_entity w ON w.entity_id = t.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = t.entity_id
LEFT JOIN usage.closed_workspace x ON x.close_id = m.close_id AND x.workspace_id = t.workspace_id
CROSS JOIN LATERAL (SELECT coalesce(x.is_left_out, false) AS is_left_out) o
WHERE NOT o.is_left_out OR t.group_by = 'workspace';
COMMENT ON VIEW reporting_detail.fct_close IS
  'How many traces each closed period had when it was closed, and what changed since. Grain: closed calendar month or '
  'other billing period x dimension x workspace x id (key: source_id, period_start, period_end, group_by, '
  'workspace_id, dimension_id). closed_traces never change. Later changes are adjustment_traces, and the sum of both '
  'is current_traces. A workspace that was left out has one row, without traces. Costs are in fct_close_cost. Choose '
  'ONE group_by and ONE value of is_calendar_month: billing periods overlap months.';
CALL usage.comment_columns('{reporting_detail.fct_close}',
  'period_start', 'First UTC day of the closed period.',
  'period_end', 'UTC day on which the closed period ends, not included.',
  'is_calendar_month', 'Whether the period is a calendar month.',
  'is_left_out',
    'Whether the workspace was left out when the period was closed, so that the close has no totals of it.',
  'closed_traces',
    'Traces of the period when it was closed. Adds up over workspaces and ids of one dimension, and over months. Null: '
    'the workspace was left out.',
  'adjustment_traces',
    'Traces added or removed since the period was closed. Adds up as closed_traces do. Null: the workspace was left '
    'out.',
  'current_traces',
    'Traces of the period as stored today: closed_traces plus adjustment_traces. Adds up as closed_traces do. Null: '
    'the workspace was left out.',
  'settle_after_seconds', 'USAGE_SETTLE_AFTER when the period was closed.',
  'accepted_disagreements',
    'Number of days x dimensions x workspaces of the close on which the platform contradicts itself. The same in each '
    'row of a close: never add up.'
);

CREATE OR REPLACE VIEW reporting_detail.fct_close_cost AS
SELECT src.slug AS source_id, m.period_start, m.period_end, w.dimension_id AS workspace_id,
       w.dimension_name AS workspace_name, p.sku, p.measure, p.unit_price, p.currency,
       sum(p.closed_quantity)::numeric(26, 6) AS closed_quantity, sum(p.closed_cost)::numeric(38, 10) AS closed_cost,
       (sum(p.current_cost) - sum(p.closed_cost))::numeric(38, 10) AS adjustment_cost,
       sum(p.current_cost)::numeric(38, 10) AS current_cost,
       NOT usage.is_on_no_invoice(p.measure, m.month_start) AS is_invoiced, m.closed_at
FROM (
  SELECT k.close_id, k.workspace_id, k.sku, k.measure, k.unit_price, k.currency, k.quantity AS closed_quantity,
         k.cost AS closed_cost, 0 AS current_cost
  FROM usage.closed_charge k
  UNION ALL
  SELECT m.close_id, c.workspace_id, c.sku, c.measure, c.unit_price, c.currency, 0, 0, c.cost
  FROM usage.close m
  JOIN usage.later_charge c USING (source_id, month_start)
) p
JOIN usage.close m USING (close_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = p.workspace_id
GROUP BY src.slug, m.period_start, m.period_end, m.month_start, w.dimension_id, w.dimension_name, p.sku, p.measure,
         p.unit_price, p.currency, m.closed_at;
COMMENT ON VIEW reporting_detail.fct_close_cost IS
  'What each closed month cost when it was closed, and what changed since. Grain: closed calendar month x workspace x '
  'SKU x price (key: source_id, period_start, workspace_id, sku, unit_price, currency). An ESTIMATE from the imported '
  'prices. closed_cost never changes. Later prices and counts make adjustment_cost, and the sum of both is '
  'current_cost. Costs add up over all keys within one currency, closed_quantity within one sku.';
CALL usage.comment_columns('{reporting_detail.fct_close_cost}',
  'period_start', 'First UTC day of the closed month.',
  'period_end', 'First UTC day of the next month.',
  'closed_quantity',
    'Quantity that this price applied to when the month was closed, in units of measure. Adds up within one sku.',
  'closed_cost',
    'Estimate when the month was closed, in currency: unit price times quantity. Adds up within one currency.',
  'adjustment_cost', 'Cost that later prices and counts added or removed. Adds up within one currency.',
  'current_cost', 'Today''s estimate: closed_cost plus adjustment_cost. Adds up within one currency.'
);
