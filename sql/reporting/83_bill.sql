-- The bill's other side: totals of the billing provider, limits of usage, billing periods.

CREATE OR REPLACE VIEW reporting_detail.usage_provider_total AS
SELECT src.slug AS source_id, p.month_start, p.metric_id,
       CASE p.workspace WHEN '' THEN '(all)' ELSE usage.shown_id(p.workspace) END AS workspace_id, p.metric_name,
       p.meter, p.value::numeric(38, 6) AS provider_traces, p.stored_traces, p.outcome, p.read_at
FROM usage.provider_total p
JOIN usage.source src USING (source_id);
COMMENT ON VIEW reporting_detail.usage_provider_total IS
  'Whether the billing provider''s monthly totals equal the stored traces. Grain: source x calendar month x metric of '
  'the billing provider x workspace, as it was last read (key: source_id, month_start, metric_id, workspace_id). The '
  'billing provider is a second system, which proves no day. Each metric has a row (all) and a row for each of its '
  'workspaces: never add both, and never add metrics.';
CALL usage.comment_columns('{reporting_detail.usage_provider_total}',
  'metric_id',
    'The billing provider''s id of the metric. Where its response has no such metric: no traces, or no longlived.',
  'workspace_id',
    'The platform''s id of the workspace, which need not be loaded here; (all) for all workspaces of the metric.',
  'metric_name', 'The billing provider''s name of the metric. Null: the metric has no name.',
  'meter', 
    'Usage that is compared with the metric: traces (all tiers), longlived, or agent_runs or nodes_executed of '
    'deployments. Null: no loaded usage counts it.',
  'provider_traces',
    'Traces, runs or nodes that the billing provider counts. For a metric without a meter: its amount, in units of the metric. Null: '
    'not known, which is not zero.',
  'stored_traces', 'Traces, runs or nodes of the stored days of the month when the total was compared. Null: not compared.',
  'outcome',
    'Result of the comparison. equal or differs: compared. not_final, not_loaded, unknown_value, unknown_workspace, '
    'unknown_metric, no_metric, several_metrics, other_period, not_whole: not compared, for that reason. '
    'sum_of_workspaces or not_the_sum: the row (all).'
);

-- Usage of a limit counts from the first of the calendar month. A day is final if it is final in every workspace of the
-- limit. The pace is that of final days, so a month without a final day, or in which the data starts, has no pace.
CREATE OR REPLACE VIEW reporting_detail.usage_limit AS
SELECT l.source_id, l.workspace_id, l.workspace_name, l.limit_type, l.limit_value, l.is_rejecting, l.month_start,
       u.traces_loaded, u.is_complete AND coalesce(n.workspaces, 0) = 0 AS is_complete, u.days_final, u.final_traces,
       -- Rounded down: 99.999 percent have not reached the limit.
       (CASE WHEN u.traces_loaded IS NULL THEN NULL
             WHEN l.limit_value > 0 THEN least(trunc(u.traces_loaded * 100.0 / l.limit_value, 2), 9999999.99)
             WHEN l.limit_value = 0 THEN 100 END)::numeric(9, 2) AS used_percent,
       CASE WHEN l.data_start <= l.month_start AND u.traces_loaded < l.limit_value AND u.final_traces > 0
              AND p.days <= l.next_start - l.month_start
            -- Not before today: the remaining usage of the month cannot be in the past.
            THEN greatest(l.month_start + p.days::integer - 1, l.today)
       END AS reached_on,
       l.read_at, coalesce(n.workspaces, 0) AS workspaces_not_loaded,
       coalesce(n.traces, 0)::bigint AS traces_not_loaded
FROM (
  SELECT src.slug AS source_id, src.source_id AS source, src.data_start, l.workspace,
         CASE l.workspace WHEN '' THEN '(all)' ELSE usage.shown_id(l.workspace) END AS workspace_id,
         w.dimension_name AS workspace_name, l.limit_type, l.limit_value, l.is_rejecting, l.read_at, t.today,
         t.month_start,
         (t.month_start + interval '1 month')::date AS next_start,
         (t.month_start - interval '1 month')::date AS before_start,
         CASE l.limit_type WHEN 'monthly_traces' THEN 'all' WHEN 'monthly_longlived_traces' THEN 'longlived' END AS tier
  FROM usage.usage_limit l
  JOIN usage.source src USING (source_id)
  LEFT JOIN usage.labelled_entity w
    ON w.source_id = l.source_id AND w.dimension = 'workspace' AND w.dimension_id = usage.shown_id(l.workspace)
  CROSS JOIN (
    SELECT today, usage.month_of(today) AS month_start FROM (SELECT (now() AT TIME ZONE 'UTC')::date AS today) n
  ) t
) l
CROSS JOIN LATERAL (
  SELECT sum(d.traces)::bigint AS traces_loaded,
         coalesce(bool_and(d.is_loaded) FILTER (WHERE d.day < l.today), count(*) > 0) AS is_complete,
         count(*) FILTER (WHERE d.is_final)::integer AS days_final,
         sum(d.traces) FILTER (WHERE d.is_final)::bigint AS final_traces
  FROM (
    SELECT o.day::date AS day, sum(o.traces) AS traces, bool_and(o.is_loaded) AS is_loaded,
           bool_and(o.is_final) AS is_final
    FROM (
      SELECT day, coalesce(v.final, false) AS is_final, v.final IS NOT NULL AS is_loaded,
             CASE WHEN v.final IS NOT NULL THEN coalesce((
               SELECT sum(r.traces) FROM usage.series x JOIN usage.dated_record r USING (series_id)
               WHERE x.scope_id = c.scope_id AND r.bucket_start = day::date
             ), 0) END AS traces
      FROM usage.scope c
      JOIN usage.entity e ON e.entity_id = c.workspace_id
      CROSS JOIN LATERAL generate_series(
        greatest(l.month_start, l.data_start)::timestamp, l.today::timestamp, interval '1 day'
      ) day
      LEFT JOIN usage.coverage v
        ON v.scope_id = c.scope_id AND v.period_start <= day AT TIME ZONE 'UTC'
          AND v.period_end > day AT TIME ZONE 'UTC'
      WHERE c.source_id = l.source AND c.kind = 'traces' AND c.trace_tier = l.tier AND c.group_by = 'workspace'
        AND c.stride = 'day'
        AND (l.workspace = '' OR e.external_id = l.workspace)
    ) o
    GROUP BY o.day
  ) d
) u
LEFT JOIN LATERAL (
  -- A limit of the organization counts workspaces that this key cannot read.
  SELECT count(*)::integer AS workspaces, sum(traces) AS traces
  FROM (
    SELECT o.workspace, max(o.traces) AS traces
    FROM (
      SELECT source_id, month_start, workspace, traces FROM usage.unloaded_workspace WHERE l.tier = 'all'
      UNION ALL
      SELECT source_id, month_start, workspace, value FROM usage.provider_total
      WHERE outcome = 'unknown_workspace' AND workspace <> '' AND value > 0
        AND meter = CASE l.tier WHEN 'all' THEN 'traces' ELSE l.tier END
    ) o
    WHERE o.source_id = l.source AND o.month_start BETWEEN l.before_start AND l.month_start
      AND NOT EXISTS (
        SELECT FROM usage.entity e JOIN usage.required_workspace r ON r.workspace_id = e.entity_id
        WHERE e.source_id = l.source AND e.dimension = 'workspace' AND e.external_id = o.workspace
          AND r.days @> l.today
      )
    GROUP BY o.workspace
  ) o
) n ON l.workspace = '' AND l.tier IS NOT NULL
CROSS JOIN LATERAL (
  -- Days until the limit at the average of the final days, and of the days of the month before where nothing is loaded.
  SELECT ceil(l.limit_value::numeric * u.days_final * m.length
           / nullif(u.final_traces * m.length + coalesce(n.traces, 0) * u.days_final, 0)) AS days
  FROM (SELECT l.month_start - l.before_start AS length) m
) p;
COMMENT ON VIEW reporting_detail.usage_limit IS
  'Which limits the platform enforces, and how much of each is used this month. Grain: source x workspace x kind of '
  'limit, as it was last read, in the current UTC calendar month (key: source_id, workspace_id, limit_type). The '
  'workspace (all) is the organization. Never add up limits.';
CALL usage.comment_columns('{reporting_detail.usage_limit}',
  'workspace_id', 'The platform''s id of the workspace; (all) for the organization.',
  'limit_type',
    'The platform''s word for the limit: monthly_traces, monthly_longlived_traces, or another limit, whose usage is '
    'not known here.',
  'limit_value', 'Most traces that the limit allows in a month. Null: there is no limit.',
  'is_rejecting',
    'Whether the platform rejected traces of the workspace because of this limit when the limit was read.',
  'month_start', 'First day of the current calendar month (UTC). It is inferred that limits count by calendar month.',
  'traces_loaded',
    'Loaded traces of the limit''s kind in the month, those of provisional days too. Days that are not loaded are left '
    'out, so the true number may be larger. Null: the kind is not loaded.',
  'is_complete',
    'Whether every day of the month that has ended is loaded, and no workspace that the limit counts is left out.',
  'days_final', 'Days of the month that are final in every workspace of the limit.',
  'final_traces', 'Traces of these final days. Null: no day is final yet.',
  'used_percent',
    'traces_loaded in percent of limit_value, rounded down. Null: no limit, or its usage is not known. Does not add '
    'up.',
  'reached_on',
    'UTC day of this month on which the limit is reached at the average pace of the final days, whatever the weekday, '
    'and of traces_not_loaded. Null: it is already reached, it is not reached this month at this pace, or no pace is '
    'known.',
  'workspaces_not_loaded',
    'Workspaces that a limit of the organization counts and no sync loads, by the platform or the billing provider.',
  'traces_not_loaded',
    'Traces of these workspaces in a month: the larger of the last and the current month. They are in no other column.'
);

-- A period begins where the one before it ended. For the first period that was read, only its end is known.
CREATE OR REPLACE VIEW reporting_detail.dim_billing_period AS
SELECT source_id, period_start, period_end, is_start_known,
       extract(day FROM period_start) = 1
         AND period_end = (period_start + interval '1 month')::date AS is_calendar_month,
       today >= period_start AND today < period_end AS is_current, plan_tier, plan_started_on, plan_ends_on, ends_at,
       read_at
FROM (
  SELECT source_id, period_end, today, plan_tier, plan_started_on, plan_ends_on, ends_at, read_at,
         before IS NOT NULL AS is_start_known,
         coalesce(before, greatest((period_end - interval '1 month')::date, plan_started_on)) AS period_start
  FROM (
    SELECT src.slug AS source_id, b.ends_at, b.read_at, b.plan_tier,
           -- The last second of a day ends that day.
           ((b.ends_at + interval '1 second') AT TIME ZONE 'UTC')::date AS period_end,
           CASE WHEN lag(b.ends_at) OVER w > b.ends_at - interval '13 months'
                THEN ((lag(b.ends_at) OVER w + interval '1 second') AT TIME ZONE 'UTC')::date END AS before,
           CASE WHEN b.plan_started_at < b.ends_at THEN (b.plan_started_at AT TIME ZONE 'UTC')::date END
             AS plan_started_on,
           (b.plan_ends_at AT TIME ZONE 'UTC')::date AS plan_ends_on, (now() AT TIME ZONE 'UTC')::date AS today
    FROM usage.billing_period b
    JOIN usage.source src USING (source_id)
    WINDOW w AS (PARTITION BY b.source_id ORDER BY b.ends_at)
  ) p
) q;
COMMENT ON VIEW reporting_detail.dim_billing_period IS
  'When each billing period of the organization begins and ends. Grain: source x billing period, from the first one '
  'that was read (key: source_id, period_end). A billing period need not be a calendar month.';
CALL usage.comment_columns('{reporting_detail.dim_billing_period}',
  'period_start', 'First UTC day of the billing period.',
  'period_end', 'UTC day on which the billing period ends, not included.',
  'is_start_known',
    'Whether the period before was read, so that this one begins at its end. If not, period_start is inferred: a month '
    'before period_end, or the start of the plan.',
  'is_calendar_month', 'Whether the period is a calendar month.',
  'is_current', 'Whether the period is the current one.',
  'plan_tier', 'The platform''s word for the plan.',
  'plan_started_on', 'UTC day on which the plan began.',
  'plan_ends_on', 'UTC day on which the plan ends. Null: it does not end.',
  'ends_at', 'The instant at which the platform says that the period ends.'
);
