-- What a BI tool shows beside each view and column. The view's begins with its grain.
DO $$
DECLARE
  view_comments CONSTANT jsonb := jsonb_build_object(
    'fct_usage_workspace_daily', 'Grain: UTC day x workspace, every day from the data start to today. Traces add up over days and workspaces. Null traces: not loaded, which is not zero.',
    'fct_usage_project_daily', 'Grain: UTC day x workspace x project, days with usage; a day x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_user_daily', 'Grain: UTC day x workspace x user, days with usage; a day x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_api_key_daily', 'Grain: UTC day x workspace x API key, days with usage; a day x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_workspace_hourly', 'Grain: UTC hour x workspace, every hour that is kept up to date or was loaded. Traces add up over hours and workspaces. Null traces: not loaded, which is not zero.',
    'fct_usage_project_hourly', 'Grain: UTC hour x workspace x project, hours with usage; an hour x workspace that is not loaded is one row with null id and null traces.',
    'fct_usage_user_hourly', 'Grain: UTC hour x workspace x user, hours with usage; an hour x workspace that is not loaded is one row with null id and null traces.',
    'fct_usage_api_key_hourly', 'Grain: UTC hour x workspace x API key, hours with usage; an hour x workspace that is not loaded is one row with null id and null traces.',
    'usage_record', 'NEVER SUM without one group_by and one stride: each is another view of the same traces. Grain: one stored record, at its own stride (key: source_id, group_by, stride, period_start, workspace_id, dimension_id).',
    'usage_restatement', 'Grain: one change of a settled count (key: source_id, group_by, stride, period_start, workspace_id, dimension_id, restated_at).',
    'usage_reconciliation', 'Grain: one difference between what is stored and the platform''s CSV export (key: source_id, group_by, stride, period_start, workspace_id, dimension_id).',
    'usage_coverage_daily', 'Grain: UTC day x workspace x grouping x stride: whether its figures can be used. Expected are days from the data start on, and hours for as long as they are kept up to date.',
    'data_freshness', 'Grain: source x grouping x stride: how far usage is loaded and settled.',
    'backfill_status', 'Grain: backfill. Its counts are of slices, one request each; once they are pruned (USAGE_KEEP_HISTORY) they are 0.',
    'dim_date', 'Grain: UTC day, from the earliest data start to today.',
    'dim_workspace', 'Grain: workspace.',
    'dim_project', 'Grain: project. Two projects may share a name: join by id.',
    'dim_user', 'Grain: user.',
    'dim_api_key', 'Grain: API key, by its short key.'
  );
  column_comments CONSTANT jsonb := jsonb_build_object(
    'source_id', 'Slug of the platform organisation that usage is read from; default with one source.',
    'usage_date', 'UTC day.',
    'usage_hour', 'Start of the UTC hour.',
    'workspace_id', 'The platform''s id of the workspace.',
    'workspace_name', 'Current name of the workspace.',
    'project_id', 'The platform''s id of the project; (none) where it gave none; null where the period is not loaded.',
    'project_name', 'Current name of the project; not unique.',
    'user_id', 'The platform''s id of the user; (none) where it gave none; null where the period is not loaded.',
    'user_email', 'Current e-mail address of the user, as USAGE_USER_EMAIL lets it in.',
    'api_key_short_key', 'Short form of the API key, which is its identity; (none) where there was none; null where the period is not loaded.',
    'traces', 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.',
    'is_final', 'Whether the figure is settled and its status good: later changes are kept as restatements.',
    'coverage_status', 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.',
    'status', 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.',
    'fetched_at', 'When the platform was asked for it, by the clock of this database.',
    'group_by', 'Grouping: workspace, project, user or api_key.',
    'stride', 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).',
    'period_start', 'Start of the time bucket.',
    'period_end', 'End of the time bucket, not included.',
    'dimension_id', 'The platform''s id in this grouping; (none) where it gave none.',
    'dimension_name', 'Current name in this grouping.',
    'is_settled', 'Whether it was fetched at least USAGE_SETTLE_AFTER after its bucket ended.',
    'old_traces', 'Count before; null: not there.',
    'new_traces', 'Count after; null: not there.',
    'restated_at', 'When the change was stored.',
    'stored_traces', 'Count that is stored; null: not there.',
    'export_traces', 'Count in the CSV export; null: not there.',
    'kind', 'missing_in_store, missing_in_export or traces_differ.',
    'state', 'open, or closed once a later reconciliation did not find it.',
    'found_at', 'When it was first found.',
    'backfill_id', 'Number of the backfill, as the command line shows it.',
    'done', 'Slices loaded.',
    'failed', 'Slices that failed; backfill show names them.',
    'total', 'Slices in all, those that wait or were cancelled among them.',
    'created_at', 'When it was asked for.',
    'finished_at', 'When it was done or cancelled; null before.',
    'loaded_until', 'End of the latest loaded bucket.',
    'settled_until', 'End of the latest settled bucket.',
    'lag_seconds', 'Seconds since the platform was last asked.',
    'first_seen_at', 'Start of the earliest bucket that named it.',
    'last_seen_at', 'Start of the latest bucket that named it.',
    'is_deleted', 'Whether the platform lists it as deleted; its past usage stays.',
    'unlisted_since', 'Since when it is gone from the platform''s listing without being deleted: look into it.',
    'iso_year', 'ISO 8601 year of the week.',
    'iso_week', 'ISO 8601 week of the year.',
    'iso_weekday', '1 is Monday, 7 is Sunday.',
    'month_start', 'First day of the month.',
    'year_start', 'First day of the year.'
  );
  -- Where a column's name means something else in one view.
  exceptions CONSTANT jsonb := jsonb_build_object(
    'backfill_status.state', 'running, paused, cancelled or done.',
    'backfill_status.period_start', 'Start of the range asked for.',
    'backfill_status.period_end', 'End of the range asked for, not included.'
  );
  one record;
BEGIN
  FOR one IN
    SELECT c.relname AS view, a.attname AS "column"
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = 'reporting'::regnamespace AND c.relkind = 'v'
  LOOP
    IF view_comments ? one.view THEN
      EXECUTE format('COMMENT ON VIEW reporting.%I IS %L', one.view, view_comments ->> one.view);
      EXECUTE format(
        'COMMENT ON COLUMN reporting.%I.%I IS %L', one.view, one.column,
        coalesce(exceptions ->> (one.view || '.' || one.column), column_comments ->> one.column)
      );
    END IF;
  END LOOP;
END
$$;
