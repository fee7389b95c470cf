CREATE OR REPLACE VIEW reporting.dim_date AS
SELECT day::date AS usage_date, extract(isoyear FROM day)::integer AS iso_year, extract(week FROM day)::integer AS iso_week,
       extract(isodow FROM day)::integer AS iso_weekday, date_trunc('month', day)::date AS month_start,
       date_trunc('year', day)::date AS year_start
FROM (SELECT min(data_start) AS first FROM usage.source) s
CROSS JOIN LATERAL generate_series(
  s.first::timestamp, date_trunc('day', now() AT TIME ZONE 'UTC'), interval '1 day'
) day;

CREATE OR REPLACE VIEW reporting.dim_workspace AS
SELECT src.slug AS source_id, e.label AS workspace_id, e.name AS workspace_name, e.first_seen_at, e.last_seen_at,
       w.is_deleted, w.unlisted_since
FROM usage.labelled_entity e
JOIN usage.source src USING (source_id)
JOIN usage.workspace w USING (entity_id);

CREATE OR REPLACE VIEW reporting.dim_project AS
SELECT src.slug AS source_id, e.label AS project_id, e.name AS project_name, e.first_seen_at, e.last_seen_at
FROM usage.labelled_entity e
JOIN usage.source src USING (source_id)
WHERE e.dimension = 'project';

CREATE OR REPLACE VIEW reporting.dim_user AS
SELECT src.slug AS source_id, e.label AS user_id, e.name AS user_email, e.first_seen_at, e.last_seen_at
FROM usage.labelled_entity e
JOIN usage.source src USING (source_id)
WHERE e.dimension = 'user';

CREATE OR REPLACE VIEW reporting.dim_api_key AS
SELECT src.slug AS source_id, e.label AS api_key_short_key, e.first_seen_at, e.last_seen_at
FROM usage.labelled_entity e
JOIN usage.source src USING (source_id)
WHERE e.dimension = 'api_key';
