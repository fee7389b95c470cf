-- The current calendar month. Its days and those of the month before are rows of the daily view, with the same status.
-- A sum of no days stays null.
CREATE OR REPLACE VIEW reporting_detail.usage_month_to_date AS
SELECT source_id, workspace_id, workspace_name, month_start, days_in_month, days_ended, days_final, days_provisional,
       CASE WHEN is_whole THEN loaded_traces END AS traces, final_traces, provisional_traces,
       CASE WHEN is_whole THEN ended_traces END AS ended_traces, days_compared,
       CASE WHEN compared_loaded = days_compared THEN compared_traces END AS previous_same_days_traces,
       CASE WHEN previous_loaded = month_start - previous_start THEN previous_traces END AS previous_month_traces,
       CASE WHEN is_whole AND days_final > 0 THEN round(final_traces::numeric * days_expected / days_final)::bigint END
         AS run_rate_traces
FROM (
  SELECT d.source_id, d.workspace_id, d.workspace_name, t.month_start, t.previous_start,
         t.next_start - t.month_start AS days_in_month, x.days_ended,
         t.next_start - greatest(t.month_start, src.data_start) AS days_expected,
         least(t.today - t.month_start, t.month_start - t.previous_start) AS days_compared,
         count(*) FILTER (WHERE c.is_current AND d.is_final)::integer AS days_final,
         count(d.traces) FILTER (WHERE c.is_current AND NOT d.is_final)::integer AS days_provisional,
         count(d.traces) FILTER (WHERE c.is_current AND d.usage_date < t.today) = x.days_ended AS is_whole,
         sum(d.traces) FILTER (WHERE c.is_current)::bigint AS loaded_traces,
         sum(d.traces) FILTER (WHERE c.is_current AND d.is_final)::bigint AS final_traces,
         sum(d.traces) FILTER (WHERE c.is_current AND NOT d.is_final)::bigint AS provisional_traces,
         sum(d.traces) FILTER (WHERE c.is_current AND d.usage_date < t.today)::bigint AS ended_traces,
         count(d.traces) FILTER (WHERE c.is_compared) AS compared_loaded,
         sum(d.traces) FILTER (WHERE c.is_compared)::bigint AS compared_traces,
         count(d.traces) FILTER (WHERE NOT c.is_current) AS previous_loaded,
         sum(d.traces) FILTER (WHERE NOT c.is_current)::bigint AS previous_traces
  FROM (
    SELECT today, month_start, (month_start + interval '1 month')::date AS next_start,
           (month_start - interval '1 month')::date AS previous_start
    FROM (
      SELECT (now() AT TIME ZONE 'UTC')::date AS today,
             usage.month_of((now() AT TIME ZONE 'UTC')::date) AS month_start
    ) n
  ) t
  JOIN reporting.fct_usage_workspace_daily d ON d.usage_date >= t.previous_start
  JOIN usage.source src ON src.slug = d.source_id
  CROSS JOIN LATERAL (SELECT greatest(t.today - greatest(t.month_start, src.data_start), 0) AS days_ended) x
  CROSS JOIN LATERAL (
    SELECT d.usage_date >= t.month_start AS is_current,
           -- The first days of the month before: as many as this month has had, or all days of a shorter month.
           d.usage_date < least(t.previous_start + (t.today - t.month_start), t.month_start) AS is_compared
  ) c
  GROUP BY d.source_id, d.workspace_id, d.workspace_name, t.today, t.month_start, t.next_start, t.previous_start,
           x.days_ended, src.data_start
  -- Leaves out a workspace that is no longer expected: it has days of the month before only.
  HAVING bool_or(c.is_current)
) m;
COMMENT ON VIEW reporting_detail.usage_month_to_date IS
  'How many traces this month has so far, compared with the same days of the last month, by workspace. Grain: source x '
  'workspace, in the current UTC calendar month (key: source_id, workspace_id). It also estimates the whole month, and '
  'has no costs. Traces add up over workspaces. A figure is null if a day that it needs is not loaded.';
CALL usage.comment_columns('{reporting_detail.usage_month_to_date}',
  'days_ended', 'Days of the month that have ended, from the data start on. Does not add up.',
  'days_final', 'Days of the month whose figures are final.',
  'days_provisional',
    'Days of the month that are loaded and not final, including today. Their figures may still grow.',
  'traces',
    'Month to date: every day that has ended, and today once it is loaded. It equals final_traces plus '
    'provisional_traces. Null: a day that has ended is not loaded.',
  'final_traces', 'Traces of the final days. Null: no day is final yet.',
  'provisional_traces',
    'Traces of the days that are loaded and not final: the part that may still grow. Null: there is no such day.',
  'ended_traces',
    'Month to date without today. Compare it with previous_same_days_traces. Null: one of these days is not loaded, or '
    'it is the first day of the month.',
  'days_compared',
    'Number of days of the month before in previous_same_days_traces: as many as have ended in this month, at most all '
    'of that month. Does not add up.',
  'previous_same_days_traces',
    'Traces of the first days_compared days of the month before. Null: one of them is not loaded or before the data '
    'start.',
  'previous_month_traces',
    'Traces of the whole month before. Null: one of its days is not loaded or before the data start.',
  'run_rate_traces',
    'Estimate for the whole month: final_traces divided by the final days, times the days of the month from the data '
    'start on, rounded. Weekdays make no difference. Null: no day is final yet, or a day that has ended is not loaded.'
);
