CREATE OR REPLACE VIEW reporting.dim_date AS
SELECT day::date AS usage_date, extract(isoyear FROM day)::integer AS iso_year, extract(week FROM day)::integer AS iso_week,
       extract(isodow FROM day)::integer AS iso_weekday, date_trunc('month', day)::date AS month_start,
       date_trunc('year', day)::date AS year_start
FROM (SELECT min(data_start) AS first FROM usage.source) s
CROSS JOIN LATERAL generate_series(
  s.first::timestamp, date_trunc('day', now() AT TIME ZONE 'UTC'), interval '1 day'
) day;
COMMENT ON VIEW reporting.dim_date IS 'Grain: UTC day (key: usage_date), from the earliest data start to today.';

CREATE OR REPLACE VIEW reporting.dim_workspace AS
SELECT src.slug AS source_id, e.dimension_id AS workspace_id, e.dimension_name AS workspace_name, e.first_seen_at, e.last_seen_at,
       w.is_deleted, w.unlisted_since
FROM usage.labelled_entity e
JOIN usage.source src USING (source_id)
JOIN usage.workspace w USING (entity_id);
COMMENT ON VIEW reporting.dim_workspace IS 'Grain: workspace (key: source_id, workspace_id).';

-- each dimension but workspace
CREATE OR REPLACE VIEW reporting.dim_{dimension} AS
SELECT src.slug AS source_id, {columns}, d.first_seen_at, d.last_seen_at
FROM usage.labelled_entity d
JOIN usage.source src USING (source_id)
WHERE d.dimension = '{dimension}';
COMMENT ON VIEW reporting.dim_{dimension} IS 'Grain: {title} (key: source_id, {id_column}). Names are not unique: join by the key.';

-- end
