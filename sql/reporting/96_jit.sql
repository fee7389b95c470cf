-- Postgres overrates the views and would compile each query for seconds. For every login of this database, unless
-- somebody has set it already; without the right to, `doctor` says what to run.
DO $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
    CROSS JOIN LATERAL unnest(s.setconfig) c (setting)
    WHERE d.datname = current_database() AND s.setrole = 0 AND c.setting LIKE 'jit=%'
  ) THEN
    EXECUTE format('ALTER DATABASE %I SET jit = off', current_database());
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  NULL;
END
$$;
