-- Usage of deployments, sandboxes and evaluators. The measures of a meter are series of one scope. What the platform calls a project of
-- such usage is a deployment, a sandbox or snapshot, or a rule that runs an evaluator, with ids of its own: it never joins a project
-- that has traces.

CREATE OR REPLACE VIEW usage.other_measure AS
SELECT * FROM (
  VALUES (NULL, NULL)
  -- each measure
  , ('{meter}', '{measure}')
  -- end
) m (meter, measure)
WHERE meter IS NOT NULL;

-- A part for each meter and dimension: so a query that names them computes no cell of others.
CREATE OR REPLACE VIEW reporting_detail.fct_other_usage_daily AS
SELECT u.slug AS source_id, u.usage_date, u.meter, u.measure, u.dimension AS group_by, u.workspace_id, u.workspace_name,
       u.dimension_id, u.quantity::numeric(26, 9) AS quantity, usage.is_final(u.status) AS is_final,
       CASE WHEN u.status = 'ok' AND u.quantity = 0 THEN 'empty' ELSE u.status END AS coverage_status,
       u.fetched_at, u.reconciled_at IS NOT NULL AS is_reconciled, u.reconciled_at, u.matched_at AS totals_matched_at, u.proved_at
FROM (
  SELECT NULL::text AS slug, NULL::date AS usage_date, NULL::text AS meter, NULL::text AS measure, NULL::text AS dimension,
         NULL::text AS workspace_id, NULL::text AS workspace_name, NULL::text AS dimension_id, NULL::numeric AS quantity, NULL::text AS status,
         NULL::timestamptz AS fetched_at, NULL::timestamptz AS reconciled_at, NULL::timestamptz AS matched_at, NULL::timestamptz AS proved_at
  WHERE false
  -- each other meter
  -- By workspace each expected day. A scope has one id there, but for an answer that spells it in two ways.
  UNION ALL
  SELECT x.slug, d.usage_date, '{meter}', m.measure, 'workspace', x.workspace_id, x.workspace_name, x.workspace_id,
         CASE WHEN t.loaded THEN coalesce(f.quantity, 0) END, t.status,
         CASE WHEN t.loaded THEN x.fetched_at[width_bucket(d.usage_date, x.starts)] END,
         nullif(p.reconciled_at[width_bucket(d.usage_date, p.starts)], '-infinity'),
         nullif(p.matched_at[width_bucket(d.usage_date, p.starts)], '-infinity'),
         nullif(p.proved_at[width_bucket(d.usage_date, p.starts)], '-infinity')
  FROM (
    SELECT usage_date
    FROM usage.days_between(
      -- least passes over a null: no usage of other meters is known.
      least((SELECT min(data_start) FROM usage.source), (SELECT min(starts_on) FROM usage.source_meter)),
      (now() AT TIME ZONE 'UTC')::date
    ) usage_date
    ORDER BY usage_date DESC
  ) d
  -- coalesce: of a bare @> the planner expects one day in a thousand.
  JOIN (SELECT * FROM usage.figure_days t WHERE t.group_by = 'workspace' AND t.meter = '{meter}' OFFSET 0) x
    ON coalesce(x.expected @> d.usage_date, false)
  CROSS JOIN LATERAL (
    SELECT x.loaded @> d.usage_date AS loaded,
           usage.day_status(d.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status
    OFFSET 0
  ) t
  JOIN usage.other_measure m ON m.meter = '{meter}'
  LEFT JOIN LATERAL (
    SELECT usage.amount_of(m.measure, sum(r.traces)) AS quantity
    FROM usage.series s
    JOIN usage.dated_record r USING (series_id)
    WHERE s.scope_id = x.scope_id AND s.measure = m.measure AND r.bucket_start = d.usage_date
  ) f ON t.loaded
  LEFT JOIN usage.day_proof p ON p.scope_id = x.scope_id
  -- end
  -- each other meter and dimension
  -- By another dimension each stored figure, and a row where a day is not loaded.
  UNION ALL
  SELECT x.slug, u.day, '{meter}', u.measure, '{dimension}', x.workspace_id, x.workspace_name, u.dimension_id, u.quantity,
         usage.day_status(u.day, x.final, x.not_available, x.failed, x.missing, x.unverified),
         CASE WHEN u.is_loaded THEN x.fetched_at[width_bucket(u.day, x.starts)] END,
         CASE WHEN u.is_loaded THEN nullif(p.reconciled_at[width_bucket(u.day, p.starts)], '-infinity') END,
         CASE WHEN u.is_loaded THEN nullif(p.matched_at[width_bucket(u.day, p.starts)], '-infinity') END,
         CASE WHEN u.is_loaded THEN nullif(p.proved_at[width_bucket(u.day, p.starts)], '-infinity') END
  FROM (SELECT * FROM usage.figure_days t WHERE t.group_by = '{group_by}' AND t.meter = '{meter}' OFFSET 0) x
  LEFT JOIN usage.day_proof p ON p.scope_id = x.scope_id
  CROSS JOIN LATERAL (
    SELECT r.bucket_start AS day, s.measure, usage.shown_id(e.external_id) AS dimension_id,
           usage.amount_of(s.measure, r.traces) AS quantity, true AS is_loaded
    FROM usage.series s
    JOIN usage.dated_record r USING (series_id)
    JOIN usage.entity e USING (entity_id)
    WHERE s.scope_id = x.scope_id
    UNION ALL
    SELECT day, m.measure, NULL, NULL, false
    FROM usage.days_of(x.expected - x.loaded) day
    JOIN usage.other_measure m ON m.meter = '{meter}'
  ) u
  -- end
) u;
COMMENT ON VIEW reporting_detail.fct_other_usage_daily IS 'Usage of deployments, sandboxes and evaluators by day. Grain: UTC day x measure x dimension x workspace x id (key: source_id, usage_date, measure, group_by, workspace_id, dimension_id). Choose ONE measure and ONE group_by: quantities add up over the rest, and never over two measures or dimensions. By workspace every day from the data start or the beginning of the usage, the earlier of both, to today; by another dimension days with usage, and one row with null id and null quantity for a day x workspace that is not loaded. Null quantity: not loaded, or before the beginning, which is not zero. No part of it is a part of traces. What evaluators spent is the platform''s estimate from model prices and NO INVOICE. Filter on usage_date: without it every record is read.';

CREATE OR REPLACE VIEW reporting_detail.dim_resource AS
SELECT src.slug AS source_id, d.dimension AS group_by, d.dimension_id, d.dimension_name, r.evaluator_id, r.evaluator_name, r.project_id,
       r.project_name, r.dataset_id, r.dataset_name, r.weekly_limit_usd, d.first_seen_at, d.last_seen_at
FROM usage.labelled_entity d
JOIN usage.source src USING (source_id)
LEFT JOIN usage.run_rule r USING (entity_id)
WHERE d.dimension IN ('deployment', 'sandbox', 'run_rule');
COMMENT ON VIEW reporting_detail.dim_resource IS 'Each deployment, sandbox or snapshot, and rule that runs an evaluator, with its current name. Grain: resource (key: source_id, group_by, dimension_id). Names are not unique: join by the key. The platform tells no names of sandboxes. Of a rule, as the newest answer tells it: which evaluator it runs, on which project or dataset, and what it may spend a week. Never join it to projects of traces: their ids are others.';
