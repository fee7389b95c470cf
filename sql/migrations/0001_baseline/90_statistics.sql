-- Tables of few rows that the views join. By default autovacuum analyzes a table after 50 changes, which these may
-- never see. Then Postgres plans the views as if the tables were empty.
DO $$
DECLARE
  small text;
BEGIN
  FOREACH small IN ARRAY ARRAY[
    'source', 'source_fact', 'entity', 'entity_name', 'workspace', 'scope', 'series', 'coverage', 'failure',
    'became_final',
    'withdrawal', 'close', 'closed_workspace', 'sku', 'price', 'backfill'
  ] LOOP
    EXECUTE format(
      'ALTER TABLE usage.%I SET (autovacuum_analyze_threshold = 2, autovacuum_analyze_scale_factor = 0.1)', small
    );
  END LOOP;
END
$$;
