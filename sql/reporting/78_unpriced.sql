-- Usage that costs leave out, since no price is valid for it, or its month was closed without its cost.
CREATE OR REPLACE VIEW usage.unpriced_day AS
WITH sku AS (
  SELECT slug, workspace_id, sku, range_agg(days) AS days
  FROM usage.measured_price
  -- A price for short-lived traces counts as a price for all traces. Prices of long-lived ones come on top.
  WHERE measure IN ('traces', 'shortlived')
  GROUP BY slug, workspace_id, sku
),
workspace AS (
  SELECT slug, workspace_id, range_intersect_agg(days) AS every_sku, range_agg(days) AS any_sku
  FROM sku
  GROUP BY slug, workspace_id
),
-- Days of closed costs, by workspace. Charged: they were closed with a cost, and later prices change nothing.
-- Uncharged: the workspace had traces in the month and no price for any of them, so the closed costs leave it out for
-- good. Inlined, this may be computed again for each workspace: the bill of a month would take 4 times as long.
closed AS MATERIALIZED (
  SELECT s.slug, usage.shown_id(e.external_id) AS workspace_id, coalesce(range_agg(t.charged), '{}') AS charged,
         coalesce(range_agg(m.days) FILTER (WHERE t.charged IS NULL AND t.has_traces), '{}') AS uncharged
  FROM usage.charged_month m
  JOIN usage.source s USING (source_id)
  JOIN usage.entity e ON e.entity_id = m.workspace_entity_id
  CROSS JOIN LATERAL (
    SELECT (
             SELECT range_agg(daterange(c.usage_date, c.usage_date + 1)) FROM usage.closed_charge c
             WHERE c.close_id = m.close_id AND c.workspace_id = m.workspace_entity_id
               AND c.measure IN ('traces', 'shortlived')
           ) AS charged,
           EXISTS (
             SELECT FROM usage.trace_scope c
             JOIN usage.series x USING (scope_id)
             JOIN usage.closed_total k ON k.close_id = m.close_id AND k.series_id = x.series_id
             WHERE c.workspace_id = m.workspace_entity_id AND c.group_by = 'workspace' AND c.stride = 'day'
           ) AS has_traces
  ) t
  GROUP BY s.slug, e.external_id
)
SELECT u.slug AS source_id, u.usage_date, u.workspace_id, u.workspace_name, u.traces,
       coalesce(w.any_sku @> u.usage_date, false)
         AND NOT coalesce(x.uncharged @> u.usage_date, false) AS has_other_price,
       (SELECT string_agg(k.sku, ', ' ORDER BY k.sku COLLATE "C")
        FROM sku k
        WHERE k.slug = u.slug AND k.workspace_id = u.workspace_id AND NOT k.days @> u.usage_date) AS unpriced_skus,
       usage.is_final(u.status) AS is_final, u.status AS coverage_status
FROM (
  -- Days with usage. A sum, so that a response that spells a workspace in two ways makes one day.
  SELECT x.slug, u.usage_date, x.workspace_id, x.workspace_name, u.traces,
         usage.status_at(u.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status
  FROM usage.trace_cell x
  CROSS JOIN LATERAL (
    SELECT r.usage_date, sum(r.traces)::bigint AS traces
    FROM (
      SELECT r.bucket_start AS usage_date, r.traces
      FROM usage.series s
      JOIN usage.dated_record r USING (series_id)
      WHERE s.scope_id = x.day_scope_id
      UNION ALL
      SELECT day, usage.traces_of_hours(
               ARRAY(SELECT s.series_id FROM usage.series s WHERE s.scope_id = x.hour_scope_id), day
             )
      FROM usage.days_of(x.days_of_hours) day
    ) r
    WHERE r.traces > 0
    GROUP BY r.usage_date
  ) u
  WHERE x.group_by = 'workspace'
) u
LEFT JOIN workspace w USING (slug, workspace_id)
LEFT JOIN closed x USING (slug, workspace_id)
WHERE (w.every_sku @> u.usage_date) IS NOT TRUE AND NOT coalesce(x.charged @> u.usage_date, false)
  OR x.uncharged @> u.usage_date;

-- Without prices there is nothing to leave out.
CREATE OR REPLACE VIEW reporting_detail.usage_unpriced_daily AS
SELECT * FROM usage.unpriced_day WHERE EXISTS (SELECT FROM usage.price);
COMMENT ON VIEW reporting_detail.usage_unpriced_daily IS
  'On which days of a workspace a price is missing. Grain: UTC day x workspace (key: source_id, usage_date, '
  'workspace_id), loaded days with usage on which a SKU has no valid price, or whose month was closed without their '
  'cost. The lines unpriced of usage_bill_monthly show which usage lacks a price, and how much. If has_other_price is '
  'false, the traces cost nothing in the estimates. Traces add up over days and workspaces within one value of '
  'has_other_price. Empty without prices, since nothing is estimated then.';
CALL usage.comment_columns('{reporting_detail.usage_unpriced_daily}',
  'traces',
    'All traces of the workspace on the day, priced or not. Adds up over days and workspaces within one value of '
    'has_other_price.',
  'has_other_price', 'Whether another SKU has a price on that day. False: the traces of the day have no price at all.',
  'unpriced_skus',
    'SKUs with a price for the workspace on other days only, separated by commas. Null: no SKU has a price for it on '
    'any day.'
);
