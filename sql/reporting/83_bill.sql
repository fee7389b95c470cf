-- The bill's other side: totals of the billing provider, limits of usage, billing periods.

CREATE OR REPLACE VIEW reporting_detail.usage_provider_total AS
SELECT src.slug AS source_id, p.month_start, p.metric_id,
       CASE p.workspace WHEN '' THEN '(all)' ELSE usage.shown_id(p.workspace) END AS workspace_id, p.metric_name, p.meter,
       p.value::numeric(38, 6) AS provider_traces, p.stored_traces, p.outcome, p.read_at
FROM usage.provider_total p
JOIN usage.source src USING (source_id);
COMMENT ON VIEW reporting_detail.usage_provider_total IS 'Monthly totals of the billing provider, beside what is stored. Grain: source x calendar month x metric of the billing provider x workspace, as it was read last (key: source_id, month_start, metric_id, workspace_id). A second system, which proves no day. Each metric has a row (all) beside those of its workspaces: never add both, nor metrics.';

-- Usage of a limit counts from the first of the calendar month. Each day is final where it is in every workspace of the limit. The pace
-- is that of final days, so a month without one, or in which the data starts, has none.
CREATE OR REPLACE VIEW reporting_detail.usage_limit AS
SELECT l.source_id, l.workspace_id, l.workspace_name, l.limit_type, l.limit_value, l.is_rejecting, l.month_start, u.traces_loaded,
       u.is_complete, u.days_final, u.final_traces,
       -- Rounded down: 99.999 percent have not reached the limit.
       (CASE WHEN u.traces_loaded IS NULL THEN NULL
             WHEN l.limit_value > 0 THEN least(trunc(u.traces_loaded * 100.0 / l.limit_value, 2), 9999999.99)
             WHEN l.limit_value = 0 THEN 100 END)::numeric(9, 2) AS used_percent,
       CASE WHEN l.data_start <= l.month_start AND u.traces_loaded < l.limit_value AND u.final_traces > 0
              AND ceil(l.limit_value::numeric * u.days_final / u.final_traces) <= l.next_start - l.month_start
            -- Not before today: what is left of the month cannot be in the past.
            THEN greatest(l.month_start + ceil(l.limit_value::numeric * u.days_final / u.final_traces)::integer - 1, l.today)
       END AS reached_on,
       l.read_at
FROM (
  SELECT src.slug AS source_id, src.source_id AS source, src.data_start, l.workspace,
         CASE l.workspace WHEN '' THEN '(all)' ELSE usage.shown_id(l.workspace) END AS workspace_id,
         w.dimension_name AS workspace_name, l.limit_type, l.limit_value, l.is_rejecting, l.read_at, t.today, t.month_start,
         (t.month_start + interval '1 month')::date AS next_start,
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
    SELECT o.day::date AS day, sum(o.traces) AS traces, bool_and(o.is_loaded) AS is_loaded, bool_and(o.is_final) AS is_final
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
        ON v.scope_id = c.scope_id AND v.period_start <= day AT TIME ZONE 'UTC' AND v.period_end > day AT TIME ZONE 'UTC'
      WHERE c.source_id = l.source AND c.kind = 'traces' AND c.trace_tier = l.tier AND c.group_by = 'workspace' AND c.stride = 'day'
        AND (l.workspace = '' OR e.external_id = l.workspace)
    ) o
    GROUP BY o.day
  ) d
) u;
COMMENT ON VIEW reporting_detail.usage_limit IS 'Limits that the platform enforces, and what is used of them this month. Grain: source x workspace x kind of limit that the platform enforces, as it was read last, in the UTC calendar month under way (key: source_id, workspace_id, limit_type). The workspace (all) is the organization. Never add up limits.';

-- A period begins where the one before it ended. Of the first one that was read, only its end is known.
CREATE OR REPLACE VIEW reporting_detail.dim_billing_period AS
SELECT source_id, period_start, period_end, is_start_known,
       extract(day FROM period_start) = 1 AND period_end = (period_start + interval '1 month')::date AS is_calendar_month,
       today >= period_start AND today < period_end AS is_current, plan_tier, plan_started_on, plan_ends_on, ends_at, read_at
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
           CASE WHEN b.plan_started_at < b.ends_at THEN (b.plan_started_at AT TIME ZONE 'UTC')::date END AS plan_started_on,
           (b.plan_ends_at AT TIME ZONE 'UTC')::date AS plan_ends_on, (now() AT TIME ZONE 'UTC')::date AS today
    FROM usage.billing_period b
    JOIN usage.source src USING (source_id)
    WINDOW w AS (PARTITION BY b.source_id ORDER BY b.ends_at)
  ) p
) q;
COMMENT ON VIEW reporting_detail.dim_billing_period IS 'Billing periods of the organization. Grain: source x billing period of the organization, from the first one that was read (key: source_id, period_end). It need not be a calendar month.';
