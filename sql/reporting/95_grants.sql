-- Grants readers their views. `migrate` may not be allowed to create a role: then it prints the statements to run, and
-- its next run grants the views.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA reporting, reporting_detail FROM public;

DO $$
DECLARE
  one record;
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'usage_reader') THEN
    GRANT USAGE ON SCHEMA reporting, reporting_detail TO usage_reader;
    GRANT SELECT ON ALL TABLES IN SCHEMA reporting, reporting_detail TO usage_reader;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA reporting, reporting_detail TO usage_reader;
  END IF;

  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'usage_reader_masked') THEN
    GRANT USAGE ON SCHEMA reporting, reporting_detail TO usage_reader_masked;
    -- A view that had no addresses when it was granted may have some now.
    REVOKE ALL ON ALL TABLES IN SCHEMA reporting, reporting_detail FROM usage_reader_masked;
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA reporting, reporting_detail FROM usage_reader_masked;
    FOR one IN
      SELECT format('TABLE %s', c.oid::regclass) AS thing, 'SELECT' AS right
      FROM pg_class c
      WHERE c.relnamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace) AND c.relkind = 'v'
        AND NOT EXISTS (
        SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attname = 'user_email'
      )
      UNION ALL
      SELECT format('FUNCTION %s', p.oid::regprocedure), 'EXECUTE'
      FROM pg_proc p
      WHERE p.pronamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace)
        AND NOT coalesce(p.proargnames && ARRAY['user_email'], false)
    LOOP
      EXECUTE format('GRANT %s ON %s TO usage_reader_masked', one.right, one.thing);
    END LOOP;
  END IF;
END
$$;
