-- Twins of the views that hold e-mail addresses of users, for readers who may not see addresses. A twin has the same columns
-- in the same order, with the user's id instead of the address: a part of it could be that of two users. Twins are made from the catalogue of Postgres,
-- so that no view with such a column is forgotten.
DO $$
DECLARE
  one record;
BEGIN
  FOR one IN
    SELECT c.relname || '_masked' AS twin, c.oid::regclass AS view, obj_description(c.oid) AS comment,
           string_agg(
             CASE a.attname
               WHEN 'user_email' THEN
                 'CASE WHEN user_email IS NOT NULL THEN ''user '' || user_id END AS user_email'
               WHEN 'dimension_name' THEN
                 'CASE WHEN group_by <> ''user'' THEN dimension_name
                       WHEN dimension_name IS NOT NULL THEN ''user '' || dimension_id END AS dimension_name'
               ELSE quote_ident(a.attname)
             END,
             ', ' ORDER BY a.attnum
           ) AS columns
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace) AND c.relkind = 'v' AND c.relname NOT LIKE '%\_masked'
    GROUP BY c.oid
    HAVING bool_or(a.attname IN ('user_email', 'dimension_name'))
    ORDER BY c.relname
  LOOP
    EXECUTE format('CREATE OR REPLACE VIEW reporting_detail.%I AS SELECT %s FROM %s', one.twin, one.columns, one.view);
    EXECUTE format(
      'COMMENT ON VIEW reporting_detail.%I IS %L', one.twin,
      one.comment || ' Without e-mail addresses: the id names a user.'
    );
  END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION reporting_detail.usage_user_daily_as_of_masked(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, user_id text, user_email text,
  traces bigint, final_at timestamptz
)
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT f.source_id, f.usage_date, f.workspace_id, f.workspace_name, f.user_id,
         CASE WHEN f.user_email IS NOT NULL THEN 'user ' || f.user_id END, f.traces, f.final_at
  FROM reporting_detail.usage_user_daily_as_of(as_of) f
$$;
COMMENT ON FUNCTION reporting_detail.usage_user_daily_as_of_masked (timestamptz) IS 'As usage_user_daily_as_of (key: source_id, usage_date, workspace_id, user_id), with the user''s id instead of the address.';
