-- The bill of a month: charges by price, corrections of earlier closed months, and usage or costs that are not known.

-- Days of each meter by workspace that make up the bill. If the server does not count a meter at all, none of its days
-- is expected.
CREATE OR REPLACE VIEW usage.bill_cell AS
SELECT c.source_id, c.workspace_entity_id, c.meter, c.expected, c.loaded, c.final,
       coalesce(p.compared + p.totalled - p.differing, '{}') * c.final AS proved,
       coalesce(p.differing, '{}') AS differing
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

-- The meters that a measure needs: short-lived traces are all traces less the long-lived ones.
CREATE OR REPLACE FUNCTION usage.meters_of_measure(measure text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE measure WHEN 'shortlived' THEN ARRAY['traces', 'longlived'] ELSE ARRAY[usage.meter_of_measure(measure)] END;

-- Whether a month has a day without a charge for short-lived traces on which there are more long-lived traces than
-- traces. A function, because planning it takes longer than reading the bill of a month. It runs as its owner, since
-- readers may not read the tables.
CREATE OR REPLACE FUNCTION usage.has_inconsistent_day(source smallint, month date) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT EXISTS (
    SELECT FROM reporting.fct_usage_workspace_daily d
    WHERE d.source_id = (SELECT s.slug FROM usage.source s WHERE s.source_id = source)
      AND d.tiers_status = 'inconsistent' AND d.usage_date >= month
      AND d.usage_date < (month + interval '1 month')::date
      AND NOT EXISTS (
        SELECT FROM usage.charged_day h
        JOIN usage.entity w ON w.entity_id = h.workspace_id
        WHERE h.source_id = source AND h.usage_date = d.usage_date AND h.measure = 'shortlived'
          AND usage.shown_id(w.external_id) = d.workspace_id
      )
  )
$$;

CREATE OR REPLACE VIEW reporting.usage_bill_monthly AS
-- Inlined, the cells would be computed for each month, and the bill of one would take 1.4 times as long.
WITH cell AS MATERIALIZED (SELECT * FROM usage.bill_cell),
closed AS (SELECT source_id, month_start, corrected_in FROM usage.closed_period)
SELECT src.slug AS source_id, m.month_start, x.line_number, x.service, x.line, x.measure, x.sku, x.unit_price,
       x.currency, x.corrected_month, x.quantity, x.cost AS estimated_cost, x.days_expected, x.days_loaded, x.is_final,
       x.is_proved, c.month_start IS NOT NULL AS is_closed, x.from_quantity, x.to_quantity, x.counted_over,
       x.days_proved, x.days_differing, x.unproved_cost, x.added_text
FROM usage.source src
-- A filter on the month excludes everything below of other months.
JOIN usage.usage_month m USING (source_id)
LEFT JOIN closed c ON c.source_id = src.source_id AND c.month_start = m.month_start
CROSS JOIN LATERAL (
  WITH state AS (
    SELECT o.meter, sum(usage.count_days(t.days))::integer AS days_expected,
           sum(usage.count_days(t.days * o.loaded))::integer AS days_loaded,
           bool_and(o.final @> t.days AND n.next_start <= n.today) AS is_final,
           bool_and(o.proved @> t.days) AS is_proved,
           sum(usage.count_days(t.days * o.proved))::integer AS days_proved,
           sum(usage.count_days(t.days * o.differing))::integer AS days_differing
    FROM cell o
    CROSS JOIN LATERAL (
      SELECT (m.month_start + interval '1 month')::date AS next_start, (now() AT TIME ZONE 'UTC')::date AS today
    ) n
    CROSS JOIN LATERAL (
      -- In the current month, only the days that have ended.
      SELECT o.expected
               * datemultirange(daterange(m.month_start, greatest(m.month_start, least(n.next_start, n.today)))) AS days
    ) t
    WHERE o.source_id = src.source_id AND NOT isempty(t.days)
    GROUP BY o.meter
  ),
  -- Long-lived traces decide for short-lived ones.
  unknown AS (
    SELECT meter FROM usage.unknown_meter
    WHERE source_id = src.source_id AND unknown_from < (m.month_start + interval '1 month')::date
      AND meter <> 'shortlived'
  ),
  -- Measures that are charged in the month, by today's prices or by its close.
  priced AS (
    SELECT DISTINCT measure FROM usage.charged_day WHERE source_id = src.source_id AND month_start = m.month_start
  ),
  -- Whether the tiers are priced separately, in this month or any other.
  tiers AS (
    SELECT bool_or(measure IN ('longlived', 'shortlived')) AS are_priced,
           bool_or(measure = 'shortlived') AS is_short_priced
    FROM (SELECT measure FROM usage.sku UNION ALL SELECT measure FROM priced) p
  ),
  -- Standard units that a SKU prices, in this month or any other.
  standard AS (
    SELECT measure FROM usage.sku WHERE usage.is_standard_unit(measure)
    UNION
    SELECT measure FROM priced WHERE usage.is_standard_unit(measure)
  ),
  -- Usage that is counted apart from all traces, and how much of it has no price. A price on other days or in other
  -- workspaces does not count.
  used AS (
    SELECT u.measure, usage.meter_of_measure(u.measure) AS meter, usage.amount_of(u.measure, sum(u.traces)) AS quantity,
           usage.amount_of(u.measure, sum(u.traces) FILTER (WHERE NOT u.is_charged)) AS unpriced
    FROM (
      SELECT k.measure, r.traces,
             k.measure IN (SELECT p.measure FROM priced p) AND EXISTS (
               SELECT FROM usage.charged_day h
               WHERE h.usage_date = r.bucket_start AND h.workspace_id = o.workspace_id AND h.measure = k.measure
             ) AS is_charged
      FROM usage.scope o
      JOIN usage.series s USING (scope_id)
      JOIN usage.dated_record r USING (series_id)
      CROSS JOIN LATERAL (SELECT CASE o.kind WHEN 'traces' THEN 'longlived' ELSE s.measure END AS measure) k
      WHERE o.source_id = src.source_id AND o.group_by = 'workspace' AND o.stride = 'day'
        AND (o.kind <> 'traces' OR o.trace_tier = 'longlived')
        AND r.bucket_start >= m.month_start AND r.bucket_start < (m.month_start + interval '1 month')::date
          AND r.traces > 0
    ) u
    GROUP BY u.measure
  ),
  added AS (
    SELECT a.measure, a.currency, a.amount, a.line_text, a.added_line_id
    FROM usage.added_line a
    WHERE a.source_id = src.source_id AND a.month_start = m.month_start
  ),
  proved AS (
    SELECT o.workspace_entity_id, p.measure, range_intersect_agg(o.proved) AS days
    FROM priced p
    JOIN cell o ON o.source_id = src.source_id AND o.meter = ANY (usage.meters_of_measure(p.measure))
    GROUP BY 1, 2
  ),
  charged AS (
    SELECT b.measure, b.sku, b.unit_price, b.currency,
           CASE WHEN b.is_correction THEN usage.month_of(b.usage_date) END AS corrected_month,
           sum(b.quantity)::numeric(38, 10) AS quantity, sum(b.cost)::numeric(38, 10) AS cost,
           bool_and(b.is_final) AS is_final,
           -- Set for a price with volume tiers. A closed month may have a price that is no longer imported: then only
           -- this is kept of it.
           CASE WHEN b.tier > 0 THEN b.from_quantity END AS from_quantity, v.to_quantity,
           CASE WHEN p.workspace_id IS NULL THEN p.counted_over ELSE 'workspace' END AS counted_over,
           coalesce(sum(b.cost) FILTER (WHERE NOT coalesce(f.days, '{}') @> b.usage_date AND NOT b.is_correction), 0)
             AS unproved_cost
    FROM usage.billed_charge b
    -- A total without a number for an item proves nothing about standard units.
    LEFT JOIN proved f ON f.workspace_entity_id = b.workspace_entity_id AND f.measure = b.measure
      AND NOT usage.is_standard_unit(b.measure)
    LEFT JOIN usage.volume_tier v ON b.tier > 0 AND v.price_id = b.price_id AND v.tier = b.tier
      AND v.from_quantity = b.from_quantity
    LEFT JOIN usage.price p ON p.price_id = v.price_id
    WHERE b.source_id = src.source_id AND b.billing_month = m.month_start
    GROUP BY b.measure, b.sku, b.unit_price, b.currency, 5, 9, 10, 11
  ),
  line AS (
    SELECT CASE WHEN corrected_month IS NOT NULL THEN 'correction'
                WHEN usage.is_on_no_invoice(measure, m.month_start) THEN 'estimate' ELSE 'charge' END AS line,
           measure, sku, unit_price, currency, corrected_month, quantity, cost, is_final, from_quantity, to_quantity,
           counted_over, unproved_cost, NULL::text AS added_text
    FROM charged
    UNION ALL
    SELECT 'unpriced', 'traces', CASE WHEN u.has_other_price THEN u.unpriced_skus END, NULL, NULL, NULL, sum(u.traces),
           NULL, bool_and(u.is_final), NULL, NULL, NULL, NULL, NULL
    FROM usage.unpriced_day u
    WHERE u.source_id = src.slug AND u.usage_date >= m.month_start
      AND u.usage_date < (m.month_start + interval '1 month')::date
    GROUP BY 3
    UNION ALL
    SELECT CASE WHEN usage.is_on_no_invoice(u.measure, m.month_start) THEN 'not_charged' ELSE 'unpriced' END, u.measure,
           NULL, NULL, NULL, NULL, u.unpriced, NULL, true, NULL, NULL, NULL, NULL, NULL
    FROM used u
    -- Long-lived traces are priced separately or with all traces. One measure of deployments may be priced while the
    -- others are not. LCU and LSU of sandboxes are charged; whether standard units are, no document says.
    WHERE u.unpriced > 0 AND CASE u.meter WHEN 'longlived' THEN (SELECT are_priced FROM tiers)
                                  WHEN 'sandboxes' THEN NOT usage.is_standard_unit(u.measure)
                                    OR u.measure IN (SELECT s.measure FROM standard s)
      WHEN 'evaluators' THEN false
      ELSE u.measure IN (SELECT measure FROM priced)
        OR NOT EXISTS (SELECT FROM priced p WHERE usage.meter_of_measure(p.measure) = u.meter) END
    UNION ALL
    SELECT 'inconsistent', 'shortlived', NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL
    FROM tiers
    WHERE CASE WHEN is_short_priced THEN usage.has_inconsistent_day(src.source_id, m.month_start) END
    UNION ALL
    SELECT 'not_reported', u.measure, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL
    FROM (VALUES ('deployment_lcu'), ('deployment_lsu')) u (measure)
    WHERE usage.is_on_no_invoice(u.measure, m.month_start) AND EXISTS (SELECT FROM used WHERE meter = 'deployments')
      -- Lines that take each other back leave the amount unknown.
      AND u.measure NOT IN (
        SELECT a.measure FROM added a WHERE a.measure IS NOT NULL GROUP BY a.measure, a.currency HAVING sum(a.amount) <> 0
      )
    UNION ALL
    SELECT 'added', a.measure, NULL, NULL, a.currency, NULL, NULL, a.amount, true, NULL, NULL, NULL, a.amount, a.line_text
    FROM added a
    UNION ALL
    SELECT 'not_invoiced', u.measure, NULL, NULL, NULL, NULL, u.quantity, NULL, true, NULL, NULL, NULL, NULL, NULL
    FROM used u
    WHERE u.measure = 'spend_usd' AND u.quantity > 0
    UNION ALL
    SELECT 'counted_apart', u.measure, NULL, NULL, NULL, NULL, u.quantity, NULL, true, NULL, NULL, NULL, NULL, NULL
    FROM used u
    WHERE usage.is_standard_unit(u.measure) AND u.measure NOT IN (SELECT s.measure FROM standard s)
    UNION ALL
    SELECT 'not_available', s.measure, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL
    FROM standard s
    WHERE EXISTS (
      SELECT FROM usage.scope c
      JOIN usage.unknown_unit o USING (scope_id)
      WHERE c.source_id = src.source_id AND c.group_by = 'workspace' AND c.stride = 'day' AND o.measure = s.measure
        AND o.usage_date >= m.month_start AND o.usage_date < (m.month_start + interval '1 month')::date
    )
    UNION ALL
    -- All measures of deployments, sandboxes and evaluators are in one response.
    SELECT o.line, CASE o.meter WHEN 'deployments' THEN 'nodes_executed' WHEN 'sandboxes' THEN 'lcu'
                        WHEN 'evaluators' THEN 'spend_usd' ELSE o.meter END,
           NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL
    FROM (
      SELECT CASE WHEN u.meter IS NULL THEN 'not_loaded' ELSE 'not_known' END AS line, meter
      FROM state s FULL JOIN unknown u USING (meter)
      WHERE s.meter IS NULL OR s.days_loaded < s.days_expected
    ) o
    -- Long-lived traces without a separate price are on no bill.
    WHERE o.meter <> 'longlived' OR (SELECT are_priced FROM tiers)
    UNION ALL
    -- No day has ended yet, or no workspace is known. That is different from a month without usage.
    SELECT 'not_loaded', 'traces', NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL
    WHERE NOT EXISTS (SELECT FROM state WHERE meter = 'traces')
  )
  SELECT row_number() OVER (
           ORDER BY coalesce(k.service = 'evaluators', false), l.line = 'added', k.service DESC,
                    array_position(ARRAY['charge', 'estimate', 'correction', 'unpriced', 'inconsistent', 'not_loaded',
                          'not_known', 'not_available', 'not_reported'], l.line),
                    l.corrected_month, l.measure COLLATE "C", l.sku COLLATE "C", l.from_quantity,
                    l.unit_price DESC, l.currency COLLATE "C", l.added_text COLLATE "C", l.cost
         )::integer AS line_number,
         l.line, coalesce(k.service, 'other') AS service, l.measure, l.sku, l.unit_price::numeric(18, 10) AS unit_price,
         l.currency, l.corrected_month, l.quantity::numeric(38, 10) AS quantity, l.cost::numeric(38, 10) AS cost,
         t.days_expected, t.days_loaded, l.is_final AND (l.line = 'added' OR coalesce(t.is_final, false)) AS is_final,
         l.line NOT IN ('inconsistent', 'not_reported', 'added') AND usage.is_standard_unit(l.measure) IS NOT TRUE
           AND coalesce(t.is_proved, false) AS is_proved,
         l.from_quantity, l.to_quantity, l.counted_over,
         CASE WHEN usage.is_standard_unit(l.measure) THEN 0 ELSE t.days_proved END AS days_proved, t.days_differing,
         l.unproved_cost::numeric(38, 10) AS unproved_cost, l.added_text
  FROM line l
  LEFT JOIN usage.measure k ON k.measure = l.measure
  CROSS JOIN LATERAL (
    SELECT max(days_expected) AS days_expected, min(days_loaded) AS days_loaded, bool_and(is_final) AS is_final,
           bool_and(is_proved) AS is_proved, min(days_proved) AS days_proved, max(days_differing) AS days_differing
    FROM state
    WHERE meter = ANY (usage.meters_of_measure(l.measure))
  ) t
) x;
COMMENT ON VIEW reporting.usage_bill_monthly IS
  'The bill of a month, line by line. Grain: calendar month (UTC) x line of its bill (key: source_id, month_start, '
  'line_number). An ESTIMATE from the imported prices, for all workspaces together. The bill is the sum of the lines '
  'charge, correction and added within one currency. A correction is a change of an earlier month after its costs were '
  'closed. The cost of a line estimate is on no invoice. The bill is complete if the month has no line unpriced, '
  'inconsistent, not_loaded, not_known, not_available or not_reported: these lines name unknown usage, and have no '
  'cost. Lines not_loaded and not_known of the service evaluators do not count, since evaluators'' spend '
  '(not_invoiced) is on no bill and has no cost here.';
CALL usage.comment_columns('{reporting.usage_bill_monthly}',
  'line_number', 'Place of the line on the bill of its month, from 1. It may change while the month is open.',
  'service', 'Service of the platform that is billed: traces, deployments, sandboxes or evaluators; other for an added line.',
  'line',
    'What the line is. charge: usage of the month at a price. estimate: the same for nodes, runs or uptime of '
    'deployments from October 2026 on, which no invoice counts. correction: a change in corrected_month after it was '
    'closed. unpriced: usage without a price. inconsistent: short-lived traces of days with more long-lived traces '
    'than traces. not_loaded: days that are not loaded. not_known: it is not known whether the server counts this '
    'usage. not_available: days on which the platform gave no number of priced standard units. not_reported: usage '
    'that is charged, but that the platform''s API does not report. not_charged: usage that is charged by other units, '
    'so this line has no cost. counted_apart: standard units of sandboxes that no SKU prices; no document says that '
    'they are charged. not_invoiced: evaluators'' spend, computed by the platform from model prices. added: a line that '
    'no API reports, which somebody entered with usage-etl bill add. Only charge, estimate, correction and added have a '
    'cost.',
  'measure',
    'What the line counts: traces (all of them), longlived or shortlived traces, nodes_executed, agent_runs or '
    'agent_uptime_seconds; lcu and lsu, the compute and storage units of sandboxes; '
    'compute_standard_units and storage_standard_units, other units of the same usage; spend_usd, US dollars of '
    'evaluators; deployment_lcu and deployment_lsu, those of deployments, are not reported. Null: an added line that '
    'counts nothing.',
  'sku',
    'SKU of the imported price. On a line unpriced: the SKUs that have a price on other days only. Null: no SKU has a '
    'price.',
  'corrected_month', 'First day of the closed month that is corrected. Null: the line is no correction.',
  'quantity',
    'Quantity in units of measure. On a line unpriced: of the days that are loaded. Adds up over months within one '
    'sku. Null: not known.',
  'unit_price', 'Imported price of one unit of measure, in currency. Null: the line has no price.',
  'currency', 'ISO 4217 code of the price. Never add amounts of different currencies. Null: the line has no price.',
  'estimated_cost',
    'Estimate in currency, from imported prices, without taxes and discounts. Adds up within one currency. Null: not '
    'known, which is not zero.',
  'days_expected',
    'Days of the month x workspaces that have ended and are expected to have the line''s measure. The same on each '
    'line of a measure: never add up.',
  'days_loaded', 'Number of days_expected that are loaded. Never add up.',
  'is_final', 'Whether the month is over and every day of the line''s measure is final in every workspace.',
  'is_proved', 'Whether every day that has ended is final and proved in every workspace, by an export or by totals.',
  'days_proved', 'Number of days_expected that are final, and equal the export or the totals. Never add up.',
  'days_differing', 'Number of days_expected that differ from the export or the totals. Never add up.',
  'unproved_cost',
    'The part of estimated_cost of days that are not proved. Adds up within one currency. Null: the line has no cost. A '
    'correction has 0.',
  'added_text', 'Text of an added line. Null: the line was not added.',
  'is_closed', 'Whether the costs of the month are closed: then its charges and corrections never change.',
  'from_quantity',
    'Usage of a calendar month after which this volume tier begins, in units of measure. Null: the price has no volume '
    'tiers. Does not add up.',
  'to_quantity',
    'Usage of a calendar month at which this volume tier ends, in units of measure. Null: the tier has no end, the '
    'price has no volume tiers, or the price of a closed month is no longer imported. Does not add up.',
  'counted_over',
    'Whose usage fills the volume tiers: source (all workspaces together) or workspace (each one separately). Null: '
    'the price has no volume tiers, or is no longer imported.'
);
