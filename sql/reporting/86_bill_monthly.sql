-- The bill of a month: what is charged by price, what changed in months that were closed before, and what is not known of it.

-- Days of each meter by workspace, which the bill is made of. Where the server counts a meter not at all, or not yet, nothing is
-- expected of it.
CREATE OR REPLACE VIEW usage.bill_cell AS
SELECT c.source_id, c.meter, c.expected, c.loaded, c.final, coalesce(p.compared + p.totalled - p.differing, '{}') * c.final AS proved
FROM (
  SELECT source_id, 'traces' AS meter, day_scope_id, expected, loaded, final
  FROM usage.trace_cell
  WHERE group_by = 'workspace'
  UNION ALL
  SELECT source_id, meter, day_scope_id, expected - not_available, loaded, final
  FROM usage.day_cell
  WHERE group_by = 'workspace' AND meter NOT IN ('traces', 'shortlived')
) c
LEFT JOIN usage.day_proof p ON p.scope_id = c.day_scope_id;

-- Which meters a measure needs: short-lived traces are all less the long-lived ones.
CREATE OR REPLACE FUNCTION usage.meters_of_measure(measure text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE measure WHEN 'shortlived' THEN ARRAY['traces', 'longlived'] ELSE ARRAY[usage.meter_of_measure(measure)] END;

CREATE OR REPLACE VIEW reporting.usage_bill_monthly AS
WITH cell AS MATERIALIZED (SELECT * FROM usage.bill_cell),
closed AS MATERIALIZED (SELECT source_id, month_start FROM usage.closed_period)
SELECT s.slug AS source_id, m.month_start, x.line_number, x.service, x.line, x.measure, x.sku, x.unit_price, x.currency, x.corrected_month, x.quantity,
       x.cost AS estimated_cost, x.days_expected, x.days_loaded, x.is_final, x.is_proved, c.month_start IS NOT NULL AS is_closed
FROM usage.source s
-- A filter on the month leaves out all that follows of other months.
JOIN usage.usage_month m USING (source_id)
LEFT JOIN closed c ON c.source_id = s.source_id AND c.month_start = m.month_start
CROSS JOIN LATERAL (
  WITH state AS MATERIALIZED (
    SELECT o.meter, sum(usage.count_days(t.days))::integer AS days_expected,
           sum(usage.count_days(t.days * o.loaded))::integer AS days_loaded,
           usage.is_month_over(m.month_start) AND bool_and(o.final @> t.days) AS is_final, bool_and(o.proved @> t.days) AS is_proved
    FROM cell o
    CROSS JOIN LATERAL (
      SELECT o.expected * datemultirange(daterange(
               m.month_start, greatest(m.month_start, least((m.month_start + interval '1 month')::date, (now() AT TIME ZONE 'UTC')::date))
             )) AS days
      OFFSET 0
    ) t
    WHERE o.source_id = s.source_id AND NOT isempty(t.days)
    GROUP BY o.meter
  ),
  used AS MATERIALIZED (
    SELECT d.measure, d.quantity
    FROM (
      SELECT sum(t.nodes_executed)::bigint AS nodes_executed, sum(t.agent_runs)::bigint AS agent_runs,
             sum(t.agent_uptime_seconds)::bigint AS agent_uptime_seconds
      FROM usage.scope o
      JOIN usage.deployment_month t USING (scope_id)
      WHERE o.source_id = s.source_id AND t.month_start = m.month_start AND t.group_by = 'workspace'
    ) t
    CROSS JOIN LATERAL (
      VALUES ('nodes_executed', t.nodes_executed), ('agent_runs', t.agent_runs), ('agent_uptime_seconds', t.agent_uptime_seconds)
    ) d (measure, quantity)
  ),
  charged AS MATERIALIZED (
    SELECT b.measure, b.sku, b.unit_price, b.currency,
           CASE WHEN b.is_correction THEN usage.month_of(b.usage_date) END AS corrected_month, sum(b.traces)::numeric(38, 10) AS quantity,
           sum(b.cost)::numeric(38, 10) AS cost, bool_and(b.is_final) AS is_final
    FROM usage.billed_charge b
    WHERE b.source_id = s.source_id AND b.billing_month = m.month_start
    GROUP BY b.measure, b.sku, b.unit_price, b.currency, 5
  ),
  line AS (
    SELECT CASE WHEN corrected_month IS NOT NULL THEN 'correction'
                WHEN usage.is_on_no_invoice(measure, m.month_start) THEN 'estimate' ELSE 'charge' END AS line, measure, sku, unit_price, currency,
           corrected_month, quantity, cost, is_final
    FROM charged
    UNION ALL
    SELECT 'unpriced', 'traces', CASE WHEN u.has_other_price THEN u.unpriced_skus END, NULL, NULL, NULL, sum(u.traces), NULL,
           bool_and(u.is_final)
    FROM usage.unpriced_day u
    WHERE u.source_id = s.slug AND u.usage_date >= m.month_start AND u.usage_date < (m.month_start + interval '1 month')::date
    GROUP BY 3
    UNION ALL
    SELECT CASE WHEN usage.is_on_no_invoice(u.measure, m.month_start) THEN 'not_charged' ELSE 'unpriced' END, u.measure, NULL, NULL, NULL, NULL, u.quantity,
           NULL, true
    FROM used u
    WHERE u.quantity > 0 AND NOT EXISTS (
      SELECT FROM charged b WHERE usage.meter_of_measure(b.measure) = usage.meter_of_measure(u.measure)
    )
    UNION ALL
    SELECT 'not_reported', u.measure, NULL, NULL, NULL, NULL, NULL, NULL, false
    FROM (VALUES ('deployment_lcu'), ('deployment_lsu')) u (measure)
    WHERE m.month_start >= usage.deployment_units_since() AND EXISTS (SELECT FROM used WHERE quantity > 0)
    UNION ALL
    -- Of deployments all measures are in one answer.
    SELECT 'not_loaded', CASE WHEN meter = 'deployments' THEN 'nodes_executed' ELSE meter END, NULL, NULL, NULL, NULL, NULL, NULL, false
    FROM state
    -- Long-lived traces that are not priced are on no bill.
    WHERE days_loaded < days_expected AND (meter <> 'longlived' OR EXISTS (SELECT FROM usage.priced_meter p WHERE p.meter LIKE '%lived'))
  )
  SELECT row_number() OVER (
           ORDER BY usage.service_of(l.measure) DESC,
                    array_position(ARRAY['charge', 'estimate', 'correction', 'unpriced', 'not_loaded', 'not_reported', 'not_charged'], l.line), l.corrected_month,
                    l.measure COLLATE "C", l.sku COLLATE "C", l.unit_price DESC, l.currency COLLATE "C"
         )::integer AS line_number,
         l.line, usage.service_of(l.measure) AS service, l.measure, l.sku, l.unit_price::numeric(18, 10) AS unit_price, l.currency,
         l.corrected_month, l.quantity::numeric(38, 10) AS quantity, l.cost::numeric(38, 10) AS cost, t.days_expected, t.days_loaded,
         l.is_final AND coalesce(t.is_final, false) AS is_final, l.line <> 'not_reported' AND coalesce(t.is_proved, false) AS is_proved
  FROM line l
  CROSS JOIN LATERAL (
    SELECT max(days_expected) AS days_expected, min(days_loaded) AS days_loaded, bool_and(is_final) AS is_final,
           bool_and(is_proved) AS is_proved
    FROM state
    WHERE meter = ANY (usage.meters_of_measure(l.measure))
  ) t
) x;
COMMENT ON VIEW reporting.usage_bill_monthly IS 'Grain: calendar month (UTC) x line of its bill (key: source_id, month_start, line_number). An ESTIMATE from the imported prices, all workspaces together. Costs add up over all of these within one currency. They are the whole bill where the month has no line unpriced, not_loaded or not_reported: these say what is not known, and have no cost.';
