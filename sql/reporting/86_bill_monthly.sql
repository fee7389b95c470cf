-- The bill of a month: what is charged by price, what changed in months that were closed before, and what is not known of it.

-- Days of each meter by workspace, which the bill is made of. Where the server counts a meter not at all, nothing is expected of it.
CREATE OR REPLACE VIEW usage.bill_cell AS
SELECT c.source_id, c.workspace_entity_id, c.meter, c.expected, c.loaded, c.final, coalesce(p.compared + p.totalled - p.differing, '{}') * c.final AS proved
FROM (
  SELECT source_id, workspace_entity_id, 'traces' AS meter, day_scope_id, expected, loaded, final
  FROM usage.trace_cell
  WHERE group_by = 'workspace'
  UNION ALL
  SELECT source_id, workspace_entity_id, meter, day_scope_id, expected - not_available, loaded, final
  FROM usage.day_cell
  WHERE group_by = 'workspace' AND meter NOT IN ('traces', 'shortlived')
) c
LEFT JOIN usage.day_proof p ON p.scope_id = c.day_scope_id;

-- Which meters a measure needs: short-lived traces are all less the long-lived ones.
CREATE OR REPLACE FUNCTION usage.meters_of_measure(measure text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE measure WHEN 'shortlived' THEN ARRAY['traces', 'longlived'] ELSE ARRAY[usage.meter_of_measure(measure)] END;

-- What few months need, as functions: the bill is read for one month at a time, and planning these parts takes longer than reading a
-- month. A function is planned where it is called. Readers may not read the tables, so it runs as its owner.

-- Corrections of closed months that no close has kept yet, which a month is to bill.
CREATE OR REPLACE FUNCTION usage.unbilled_corrections(source smallint, month date)
RETURNS TABLE (usage_date date, measure text, sku text, price_id integer, tier integer, from_quantity bigint, unit_price numeric, currency text,
               traces numeric, cost numeric, is_final boolean)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT c.usage_date, c.measure, c.sku, c.price_id, c.tier, c.from_quantity, c.unit_price, c.currency, c.traces, c.cost, c.is_final
  FROM usage.open_correction c
  WHERE c.source_id = source AND c.billing_month = month
$$;

-- Whether a month has a day without a charge for short-lived traces on which there are more long-lived traces than all traces.
CREATE OR REPLACE FUNCTION usage.has_inconsistent_day(source smallint, month date) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT EXISTS (
    SELECT FROM reporting_detail.fct_usage_workspace_by_tier_daily d
    WHERE d.source_id = (SELECT s.slug FROM usage.source s WHERE s.source_id = source) AND d.trace_tier = 'shortlived'
      AND d.coverage_status = 'inconsistent' AND d.usage_date >= month AND d.usage_date < (month + interval '1 month')::date
      AND NOT EXISTS (
        SELECT FROM usage.charge h
        JOIN usage.entity w ON w.entity_id = h.workspace_id
        WHERE h.source_id = source AND h.usage_date = d.usage_date AND h.measure = 'shortlived'
          AND usage.shown_id(w.external_id) = d.workspace_id
      )
  )
$$;

CREATE OR REPLACE VIEW reporting.usage_bill_monthly AS
WITH cell AS MATERIALIZED (SELECT * FROM usage.bill_cell),
closed AS MATERIALIZED (SELECT source_id, month_start, corrected_in FROM usage.closed_period)
SELECT src.slug AS source_id, m.month_start, x.line_number, x.service, x.line, x.measure, x.sku, x.unit_price, x.currency,
       x.corrected_month, x.quantity, x.cost AS estimated_cost, x.days_expected, x.days_loaded, x.is_final, x.is_proved,
       c.month_start IS NOT NULL AS is_closed, x.from_quantity, x.to_quantity, x.counted_over
FROM usage.source src
-- A filter on the month leaves out all that follows of other months.
JOIN usage.usage_month m USING (source_id)
LEFT JOIN closed c ON c.source_id = src.source_id AND c.month_start = m.month_start
CROSS JOIN LATERAL (
  WITH state AS MATERIALIZED (
    SELECT o.meter, sum(usage.count_days(t.days))::integer AS days_expected,
           sum(usage.count_days(t.days * o.loaded))::integer AS days_loaded,
           usage.is_month_over(m.month_start) AND bool_and(o.final @> t.days) AS is_final, bool_and(o.proved @> t.days) AS is_proved
    FROM cell o
    CROSS JOIN LATERAL (SELECT (m.month_start + interval '1 month')::date AS next_start, (now() AT TIME ZONE 'UTC')::date AS today) n
    CROSS JOIN LATERAL (
      -- Of the month under way the days that have ended.
      SELECT o.expected * datemultirange(daterange(m.month_start, greatest(m.month_start, least(n.next_start, n.today)))) AS days
      OFFSET 0
    ) t
    WHERE o.source_id = src.source_id AND NOT isempty(t.days)
    GROUP BY o.meter
  ),
  -- Of short-lived traces the long-lived ones tell.
  unknown AS MATERIALIZED (
    SELECT meter FROM usage.unknown_meter
    WHERE source_id = src.source_id AND unknown_from < (m.month_start + interval '1 month')::date AND meter <> 'shortlived'
  ),
  -- Measures that something is charged for in the month, by the prices of now or by its close.
  priced AS MATERIALIZED (
    SELECT DISTINCT measure FROM usage.charge WHERE source_id = src.source_id AND month_start = m.month_start
  ),
  -- Whether the tiers are priced apart, in this month or any other.
  tiers AS MATERIALIZED (
    SELECT bool_or(measure IN ('longlived', 'shortlived')) AS are_priced, bool_or(measure = 'shortlived') AS is_short_priced
    FROM (SELECT measure FROM usage.sku UNION ALL SELECT measure FROM priced) p
  ),
  -- What is counted beside all traces, and how much of it no price covers, whatever it covers on other days or in other workspaces.
  used AS MATERIALIZED (
    SELECT u.measure, usage.meter_of_measure(u.measure) AS meter, usage.amount_of(u.measure, sum(u.traces)) AS quantity,
           usage.amount_of(u.measure, sum(u.traces) FILTER (WHERE NOT u.is_charged)) AS unpriced
    FROM (
      SELECT k.measure, r.traces,
             EXISTS (
               SELECT FROM usage.charge h
               WHERE h.usage_date = r.bucket_start AND h.workspace_id = o.workspace_id AND h.measure = k.measure
             ) AS is_charged
      FROM usage.scope o
      JOIN usage.series s USING (scope_id)
      JOIN usage.dated_record r USING (series_id)
      CROSS JOIN LATERAL (SELECT CASE o.kind WHEN 'traces' THEN 'longlived' ELSE s.measure END AS measure) k
      WHERE o.source_id = src.source_id AND o.group_by = 'workspace' AND o.stride = 'day'
        AND (o.kind <> 'traces' OR o.trace_tier = 'longlived')
        AND r.bucket_start >= m.month_start AND r.bucket_start < (m.month_start + interval '1 month')::date AND r.traces > 0
    ) u
    GROUP BY u.measure
  ),
  charged AS MATERIALIZED (
    SELECT b.measure, b.sku, b.unit_price, b.currency,
           CASE WHEN b.is_correction THEN usage.month_of(b.usage_date) END AS corrected_month, sum(b.traces)::numeric(38, 10) AS quantity,
           sum(b.cost)::numeric(38, 10) AS cost, bool_and(b.is_final) AS is_final,
           -- Of a price by volume. A month that was closed may have one that is imported no more, of which only this is kept.
           CASE WHEN b.tier > 0 THEN b.from_quantity END AS from_quantity, v.to_quantity,
           CASE WHEN p.workspace_id IS NULL THEN p.counted_over ELSE 'workspace' END AS counted_over
    FROM (
      SELECT usage_date, measure, sku, price_id, tier, from_quantity, unit_price, currency, traces, cost, is_final, is_correction
      FROM usage.kept_charge
      WHERE source_id = src.source_id AND billing_month = m.month_start
      UNION ALL
      SELECT o.usage_date, o.measure, o.sku, o.price_id, o.tier, o.from_quantity, o.unit_price, o.currency, o.traces, o.cost, o.is_final, true
      FROM (SELECT WHERE EXISTS (SELECT FROM closed x WHERE x.source_id = src.source_id AND x.corrected_in = m.month_start)) x
      CROSS JOIN LATERAL usage.unbilled_corrections(src.source_id, m.month_start) o
    ) b
    LEFT JOIN usage.volume_tier v ON b.tier > 0 AND v.price_id = b.price_id AND v.tier = b.tier AND v.from_quantity = b.from_quantity
    LEFT JOIN usage.price p ON p.price_id = v.price_id
    GROUP BY b.measure, b.sku, b.unit_price, b.currency, 5, 9, 10, 11
  ),
  line AS (
    SELECT CASE WHEN corrected_month IS NOT NULL THEN 'correction'
                WHEN usage.is_on_no_invoice(measure, m.month_start) THEN 'estimate' ELSE 'charge' END AS line,
           measure, sku, unit_price, currency, corrected_month, quantity, cost, is_final, from_quantity, to_quantity, counted_over
    FROM charged
    UNION ALL
    SELECT 'unpriced', 'traces', CASE WHEN u.has_other_price THEN u.unpriced_skus END, NULL, NULL, NULL, sum(u.traces), NULL,
           bool_and(u.is_final), NULL, NULL, NULL
    FROM usage.unpriced_day u
    WHERE u.source_id = src.slug AND u.usage_date >= m.month_start AND u.usage_date < (m.month_start + interval '1 month')::date
    GROUP BY 3
    UNION ALL
    SELECT CASE WHEN usage.is_on_no_invoice(u.measure, m.month_start) THEN 'not_charged' ELSE 'unpriced' END, u.measure, NULL, NULL, NULL,
           NULL, u.unpriced, NULL, true, NULL, NULL, NULL
    FROM used u
    -- Long-lived traces are priced apart or with all traces; of deployments one measure may be priced, and the others are not; of
    -- sandboxes both are charged.
    WHERE u.unpriced > 0 AND CASE u.meter WHEN 'longlived' THEN (SELECT are_priced FROM tiers) WHEN 'sandboxes' THEN true
      WHEN 'evaluators' THEN false
      ELSE u.measure IN (SELECT measure FROM priced)
        OR NOT EXISTS (SELECT FROM priced p WHERE usage.meter_of_measure(p.measure) = u.meter) END
    UNION ALL
    SELECT 'inconsistent', 'shortlived', NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL
    FROM tiers
    WHERE CASE WHEN is_short_priced THEN usage.has_inconsistent_day(src.source_id, m.month_start) END
    UNION ALL
    SELECT 'not_reported', u.measure, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL
    FROM (VALUES ('deployment_lcu'), ('deployment_lsu')) u (measure)
    WHERE m.month_start >= usage.deployment_units_since() AND EXISTS (SELECT FROM used WHERE meter = 'deployments')
    UNION ALL
    SELECT 'not_invoiced', u.measure, NULL, NULL, NULL, NULL, u.quantity, NULL, true, NULL, NULL, NULL
    FROM used u
    WHERE u.measure = 'spend_usd' AND u.quantity > 0
    UNION ALL
    -- Of deployments, sandboxes and evaluators all measures are in one answer.
    SELECT o.line, CASE o.meter WHEN 'deployments' THEN 'nodes_executed' WHEN 'sandboxes' THEN 'lcu' WHEN 'evaluators' THEN 'spend_usd' ELSE o.meter END,
           NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL
    FROM (
      SELECT CASE WHEN u.meter IS NULL THEN 'not_loaded' ELSE 'not_known' END AS line, meter
      FROM state s FULL JOIN unknown u USING (meter)
      WHERE s.meter IS NULL OR s.days_loaded < s.days_expected
    ) o
    -- Long-lived traces that are not priced apart are on no bill.
    WHERE o.meter <> 'longlived' OR (SELECT are_priced FROM tiers)
    UNION ALL
    -- No day has ended yet, or no workspace is known. That is not a month without usage.
    SELECT 'not_loaded', 'traces', NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL
    WHERE NOT EXISTS (SELECT FROM state WHERE meter = 'traces')
  )
  SELECT row_number() OVER (
           ORDER BY usage.service_of(l.measure) = 'evaluators', usage.service_of(l.measure) DESC,
                    array_position(ARRAY['charge', 'estimate', 'correction', 'unpriced', 'inconsistent', 'not_loaded', 'not_known', 'not_reported'], l.line),
                    l.corrected_month, l.measure COLLATE "C", l.sku COLLATE "C", l.from_quantity,
                    l.unit_price DESC, l.currency COLLATE "C"
         )::integer AS line_number,
         l.line, usage.service_of(l.measure) AS service, l.measure, l.sku, l.unit_price::numeric(18, 10) AS unit_price, l.currency,
         l.corrected_month, l.quantity::numeric(38, 10) AS quantity, l.cost::numeric(38, 10) AS cost, t.days_expected, t.days_loaded,
         l.is_final AND coalesce(t.is_final, false) AS is_final, l.line NOT IN ('inconsistent', 'not_reported') AND coalesce(t.is_proved, false) AS is_proved,
         l.from_quantity, l.to_quantity, l.counted_over
  FROM line l
  CROSS JOIN LATERAL (
    SELECT max(days_expected) AS days_expected, min(days_loaded) AS days_loaded, bool_and(is_final) AS is_final,
           bool_and(is_proved) AS is_proved
    FROM state
    WHERE meter = ANY (usage.meters_of_measure(l.measure))
  ) t
) x;
COMMENT ON VIEW reporting.usage_bill_monthly IS 'The bill of a month, line by line. Grain: calendar month (UTC) x line of its bill (key: source_id, month_start, line_number). An ESTIMATE from the imported prices, all workspaces together. The bill is the sum of its lines charge and correction within one currency: a correction is what changed of an earlier month after its costs were closed. A line estimate has a cost that is on no invoice. It is the whole bill where the month has no line unpriced, inconsistent, not_loaded, not_known (both but of service evaluators) or not_reported: these say what is not known, and have no cost. What evaluators spent (not_invoiced) is on no bill and has no cost here.';
