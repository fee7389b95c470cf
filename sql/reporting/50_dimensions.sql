-- is_final is the last column, a subquery that runs only if a query reads it. A day is not expected if the data of the
-- source starts later, or if a close of its month does not cover the workspace. to_char without TM gives English names
-- in every locale.
CREATE OR REPLACE VIEW reporting.dim_date AS
SELECT day::date AS usage_date, extract(isoyear FROM day)::integer AS iso_year,
       extract(week FROM day)::integer AS iso_week, extract(isodow FROM day)::integer AS iso_weekday,
       date_trunc('month', day)::date AS month_start, date_trunc('year', day)::date AS year_start,
       to_char(day, 'FMDay') AS day_name, extract(day FROM day)::integer AS day_of_month,
       to_char(day, 'FMMonth') AS month_name, extract(month FROM day)::integer AS month_number,
       extract(day FROM date_trunc('month', day) + interval '1 month' - interval '1 day')::integer AS days_in_month,
       day < s.today AS is_past, day < s.today AND coalesce((
         SELECT range_intersect_agg(
                  c.final + datemultirange(daterange(NULL, c.data_start)) + ('{(,)}' - w.days)
                )
         FROM usage.trace_cell c
         JOIN usage.required_workspace w ON w.workspace_id = c.workspace_entity_id
       ) @> day::date, false) AS is_final
FROM (SELECT min(data_start) AS first, date_trunc('day', now() AT TIME ZONE 'UTC') AS today FROM usage.source) s
CROSS JOIN LATERAL generate_series(
  s.first::timestamp, date_trunc('year', s.today) + interval '2 years' - interval '1 day', interval '1 day'
) day;
COMMENT ON VIEW reporting.dim_date IS
  'Each day with its week, month and year. Grain: UTC day (key: usage_date), from the earliest data start to the end '
  'of next year.';
CALL usage.comment_columns('{reporting.dim_date}',
  'iso_year', 'ISO 8601 year of the week.',
  'iso_week', 'ISO 8601 week of the year.',
  'iso_weekday', '1 is Monday, 7 is Sunday.',
  'year_start', 'First day of the year.',
  'day_name', 'Monday to Sunday. Sort by iso_weekday.',
  'day_of_month', '1 to 31.',
  'month_name', 'January to December. Sort by month_number.',
  'month_number', '1 is January, 12 is December.',
  'is_past', 'Whether the UTC day has ended.',
  'is_final',
    'Whether the day has ended and every figure that is expected on it is final, in all dimensions, workspaces and '
    'sources whose data has started. A workspace that is no longer configured counts only in months in which it was '
    'loaded.'
);

CREATE OR REPLACE VIEW reporting.dim_workspace AS
SELECT src.slug AS source_id, e.dimension_id AS workspace_id, e.dimension_name AS workspace_name, e.first_seen_at,
       e.last_seen_at, w.is_deleted, w.unlisted_since
FROM usage.labelled_entity e
JOIN usage.source src USING (source_id)
JOIN usage.workspace w USING (entity_id);
COMMENT ON VIEW reporting.dim_workspace IS
  'Each workspace with its current name. Grain: workspace (key: source_id, workspace_id). Earlier names are in '
  'dim_name.';
CALL usage.comment_columns('{reporting.dim_workspace}',
  'is_deleted', 'Whether the platform lists the workspace as deleted. Its past usage stays.',
  'unlisted_since',
    'Since when the platform no longer lists the workspace. Unless is_deleted, check the access of the API key. Null: '
    'it is listed.'
);

-- A pair has one series of days and one of hours. Their ends are looked up only by a query that reads them.
CREATE OR REPLACE VIEW reporting_detail.bridge_workspace AS
SELECT src.slug AS source_id, p.group_by, d.dimension_id, w.dimension_id AS workspace_id,
       w.dimension_name AS workspace_name, least(
         (SELECT min(r.bucket_start) FROM usage.dated_record r
          WHERE r.series_id = p.day_series)::timestamp AT TIME ZONE 'UTC',
         (SELECT min(r.bucket_start) FROM usage.hourly_record r WHERE r.series_id = p.hour_series)
       ) AS first_seen_at,
       greatest(
         (SELECT max(r.bucket_start) FROM usage.dated_record r
          WHERE r.series_id = p.day_series)::timestamp AT TIME ZONE 'UTC',
         (SELECT max(r.bucket_start) FROM usage.hourly_record r WHERE r.series_id = p.hour_series)
       ) AS last_seen_at
FROM (
  SELECT c.group_by, s.entity_id, c.workspace_id, max(s.series_id) FILTER (WHERE c.stride = 'day') AS day_series,
         max(s.series_id) FILTER (WHERE c.stride = 'hour') AS hour_series
  FROM usage.trace_scope c
  JOIN usage.series s USING (scope_id)
  WHERE c.group_by <> 'workspace' AND c.stride IN ('day', 'hour')
  GROUP BY c.group_by, s.entity_id, c.workspace_id
) p
JOIN usage.labelled_entity d ON d.entity_id = p.entity_id
JOIN usage.labelled_entity w ON w.entity_id = p.workspace_id
JOIN usage.source src ON src.source_id = d.source_id
WHERE EXISTS (SELECT FROM usage.dated_record r WHERE r.series_id = p.day_series)
   OR EXISTS (SELECT FROM usage.hourly_record r WHERE r.series_id = p.hour_series);
COMMENT ON VIEW reporting_detail.bridge_workspace IS
  'In which workspaces each project, user and API key has usage. Grain: id of a dimension x workspace in which it has '
  'stored usage (key: source_id, group_by, dimension_id, workspace_id). Use it for filters that depend on each other. '
  'Join facts by both ids, or their counts double.';
CALL usage.comment_columns('{reporting_detail.bridge_workspace}',
  'first_seen_at', 'Start of its earliest stored day or hour in this workspace.',
  'last_seen_at', 'Start of its latest stored day or hour in this workspace.'
);

-- Each id of a dimension, with the workspace if there is only one.
CREATE OR REPLACE VIEW usage.entity_with_usage AS
SELECT d.dimension, src.slug, d.dimension_id, d.dimension_name, d.first_seen_at, d.last_seen_at,
       coalesce(b.workspaces, 0) AS workspace_count, b.workspace_id AS sole_workspace_id,
       b.workspace_name AS sole_workspace_name, d.entity_id
FROM usage.labelled_entity d
JOIN usage.source src USING (source_id)
LEFT JOIN (
  SELECT source_id, group_by, dimension_id, count(*)::integer AS workspaces,
         CASE WHEN count(*) = 1 THEN min(workspace_id) END AS workspace_id,
         CASE WHEN count(*) = 1 THEN min(workspace_name) END AS workspace_name
  FROM reporting_detail.bridge_workspace
  GROUP BY source_id, group_by, dimension_id
) b ON b.source_id = src.slug AND b.group_by = d.dimension AND b.dimension_id = d.dimension_id;

CREATE OR REPLACE VIEW reporting.dim_project AS
SELECT slug AS source_id, dimension_id AS project_id, dimension_name AS project_name, first_seen_at, last_seen_at,
       workspace_count, sole_workspace_id, sole_workspace_name
FROM usage.entity_with_usage
WHERE dimension = 'project';
COMMENT ON VIEW reporting.dim_project IS
  'Each project with usage. Grain: project (key: source_id, project_id). Names are current and not unique: join by the '
  'key. Earlier names are in dim_name.';

CREATE OR REPLACE VIEW reporting_detail.dim_user AS
SELECT slug AS source_id, dimension_id AS user_id, dimension_name AS user_email, first_seen_at, last_seen_at,
       workspace_count, sole_workspace_id, sole_workspace_name
FROM usage.entity_with_usage
WHERE dimension = 'user';
COMMENT ON VIEW reporting_detail.dim_user IS
  'Each user with usage. Grain: user (key: source_id, user_id). Names are current and not unique: join by the key. '
  'Earlier names are in dim_name.';

CREATE OR REPLACE VIEW reporting_detail.dim_api_key AS
SELECT slug AS source_id, dimension_id AS api_key_short_key, dimension_name AS api_key_name, first_seen_at,
       last_seen_at, workspace_count, sole_workspace_id, sole_workspace_name, k.last_used_at, k.expires_at, k.created_by
FROM usage.entity_with_usage u
LEFT JOIN usage.listed_key k USING (entity_id)
WHERE dimension = 'api_key';
COMMENT ON VIEW reporting_detail.dim_api_key IS
  'Each API key with usage. Grain: API key (key: source_id, api_key_short_key). Names are current and not unique: join '
  'by the key. Earlier names are in dim_name.';
CALL usage.comment_columns('{reporting.dim_project, reporting_detail.dim_user, reporting_detail.dim_api_key}',
  'workspace_count',
    'Number of workspaces in which it has stored usage by day or hour; bridge_workspace lists them. Does not add up.',
  'sole_workspace_id', 'The platform''s id of its workspace. Null: workspace_count is not 1.',
  'sole_workspace_name', 'Current name of its workspace. Null: workspace_count is not 1.',
  'last_used_at', 'When the key was last used, by the platform''s lists of keys. Null: no list says it.',
  'expires_at', 'When the key expires, by the platform''s lists of keys. Null: no list says it, or it does not expire.',
  'created_by',
    'Who created the key, as the platform''s lists of keys name it. Null: no list says it, or it is an e-mail address.',
  'user_email',
    'Current e-mail address of the user, or its hash, as USAGE_USER_EMAIL says. Null: the platform gave no address, or '
    'it is not stored.'
);

CREATE OR REPLACE VIEW reporting_detail.dim_tag AS
SELECT src.slug AS source_id, t.dimension AS group_by, usage.shown_id(w.external_id) AS workspace_id,
       usage.shown_id(t.external_id) AS dimension_id, t.tag_key, t.tag_value, t.valid_from,
       coalesce(t.valid_to, '9999-12-31') AS valid_to, t.valid_to IS NULL AS is_current
FROM usage.resource_tag t
JOIN usage.entity w ON w.entity_id = t.workspace_id
JOIN usage.source src USING (source_id);
COMMENT ON VIEW reporting_detail.dim_tag IS
  'Tags of each project, deployment and sandbox, with the days on which they were set. Grain: resource x key of a tag '
  'x value in time (key: source_id, group_by, workspace_id, dimension_id, tag_key, valid_from). Choose ONE group_by '
  'and ONE tag_key, then join facts by source_id, workspace_id and the id, with usage_date >= valid_from AND '
  'usage_date < valid_to: there is at most one row for each. Use a LEFT JOIN, which keeps usage without the tag.';
CALL usage.comment_columns('{reporting_detail.dim_tag}',
  'group_by', 'What has the tag: project, deployment or sandbox.',
  'tag_key', 'Key of a tag, such as Application. Choose one: a resource has a row for each of its keys.',
  'tag_value', 'Value of the tag. Several values of one key are one text, separated by commas.',
  'valid_from',
    'First UTC day of this value, by the nightly readings. 1900-01-01: the first day of readings found it.',
  'valid_to', 'UTC day on which the value was found changed or gone, not included. 9999-12-31: a current value.',
  'is_current', 'Whether the value was set when the tags were last read.'
);

-- Names in time: the only place that says which name a UTC day has, for dim_name, the rules of owners and FOCUS. A day
-- has the name that was valid at its end, and today has the current one. So a rename changes its own day and later
-- ones, never a day that has ended. The day is that of the fetch, by Postgres's clock. If that clock was set back, days
-- follow the numbers of the fetches.
CREATE OR REPLACE VIEW usage.name_in_time AS
SELECT entity_id, name, fetched_at,
       daterange(nullif(day, '-infinity'), lead(day) OVER (PARTITION BY entity_id ORDER BY day)) AS days
FROM (
  SELECT entity_id, name, fetched_at, day, lag(name) OVER (PARTITION BY entity_id ORDER BY day) AS name_before
  FROM (
    SELECT DISTINCT ON (entity_id, day) entity_id, name, fetched_at, day
    FROM (
      SELECT entity_id, fetch_number, fetched_at, name,
             CASE WHEN row_number() OVER fetches = 1 THEN '-infinity'
                  ELSE max((fetched_at AT TIME ZONE 'UTC')::date) OVER fetches END AS day
      FROM usage.entity_name
      WINDOW fetches AS (PARTITION BY entity_id ORDER BY fetch_number)
    ) f
    ORDER BY entity_id, day, fetch_number DESC
  ) d
) n
-- A name that was restored on the same day does not count as another name.
WHERE name IS DISTINCT FROM name_before;

CREATE OR REPLACE VIEW reporting_detail.dim_name AS
SELECT src.slug AS source_id, e.dimension AS group_by, usage.shown_id(e.external_id) AS dimension_id,
       n.name AS dimension_name, coalesce(lower(n.days), '1900-01-01') AS valid_from,
       coalesce(upper(n.days), '9999-12-31') AS valid_to, upper_inf(n.days) AS is_current, n.fetched_at AS first_seen_at
FROM usage.name_in_time n
JOIN usage.entity e USING (entity_id)
JOIN usage.source src USING (source_id)
WHERE e.dimension <> 'user';
COMMENT ON VIEW reporting_detail.dim_name IS
  'Names over time: what was renamed, and when. Grain: id of a dimension other than user x name in time (key: '
  'source_id, group_by, dimension_id, valid_from). A UTC day has the name that was valid at its end. Facts have the '
  'current name. To name a fact as on its day, join by the id and usage_date >= valid_from AND usage_date < valid_to: '
  'one name for each day. An id with more than one row was renamed.';
CALL usage.comment_columns('{reporting_detail.dim_name}',
  'group_by', 'What was named: a dimension, deployment, sandbox or run_rule.',
  'dimension_name', 'A name that the id had. Several ids may have the same name.',
  'valid_from', 'First UTC day of this name. 1900-01-01: the first name that is known.',
  'valid_to', 'UTC day on which the next name begins, not included. 9999-12-31: the current name.',
  'is_current', 'Whether it is the current name.',
  'first_seen_at', 'When a fetch first carried this name, after the name before it.'
);
