-- The calendar month under way. Its days and those of the month before are the rows of the daily view, as loaded and as
-- final as there. Sums of no day at all stay null.
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
           -- As many days as this month has had; all of a shorter month before.
           d.usage_date < least(t.previous_start + (t.today - t.month_start), t.month_start) AS is_compared
  ) c
  GROUP BY d.source_id, d.workspace_id, d.workspace_name, t.today, t.month_start, t.next_start, t.previous_start,
           x.days_ended, src.data_start
  -- Without a workspace that is not expected any more, which has days of the month before only.
  HAVING bool_or(c.is_current)
) m;
COMMENT ON VIEW reporting_detail.usage_month_to_date IS
  'Traces of this month so far, beside the same days of the last one, by workspace; no costs. Grain: source x '
  'workspace, the UTC calendar month under way beside the same days of the month before, with an estimate of the '
  'whole month (key: source_id, workspace_id). Traces add up over workspaces. A figure is null where a day that it '
  'needs is not loaded.';
CALL usage.comment_columns('{reporting_detail.usage_month_to_date}',
  'days_ended', 'Days of the month that have ended, from the data start on. Does not add up.',
  'days_final', 'Days of the month whose figures are final.',
  'days_provisional',
    'Days of the month that are loaded and not final, today among them: their figures may still grow.',
  'traces',
    'Month to date: every day that has ended, and today once it is loaded. final_traces plus provisional_traces. '
    'Null: a day that has ended is not loaded.',
  'final_traces', 'Traces of the final days; null: there is none yet.',
  'provisional_traces',
    'Traces of the days that are loaded and not final: the part that may still grow; null: there is no such day.',
  'ended_traces',
    'Month to date without today: to compare with previous_same_days_traces. Null: one of these days is not loaded, '
    'or it is the first day of the month.',
  'days_compared',
    'Days of the month before in previous_same_days_traces: as many as have ended in this month, at most all of that '
    'month. Does not add up.',
  'previous_same_days_traces',
    'Traces of the first days_compared days of the month before. Null: one of them is not loaded or before the data '
    'start.',
  'previous_month_traces',
    'Traces of all of the month before. Null: one of its days is not loaded or before the data start.',
  'run_rate_traces',
    'Estimate for the whole month: final_traces by final day, times the days of the month from the data start on, '
    'rounded. Weekdays are not told apart. Null: no day is final yet, or a day that has ended is not loaded.'
);
