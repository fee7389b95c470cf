-- The use of each budget on each day. The program reads its budgets from here, so that a BI tool shows the same
-- figures. Amounts are a union and grouped, not joined, so that a filter on the day reaches the records. A kind of
-- budget that the file does not have reads nothing.
CREATE OR REPLACE VIEW reporting_detail.fct_budget_daily AS
WITH budget AS (SELECT * FROM usage.budget),
-- Workspaces that should have costs: they have a price on some day.
priced AS (
  SELECT DISTINCT slug, workspace_id FROM usage.measured_price
  WHERE EXISTS (SELECT FROM budget WHERE currency IS NOT NULL)
),
cell AS (
  SELECT slug, workspace_id, group_by, NULL AS meter, data_start, expected - loaded AS missing, expected - final AS open
  FROM usage.trace_cell
  WHERE group_by IN ('workspace', 'project', 'user', 'api_key')
  UNION ALL
  SELECT w.slug, w.workspace_id, 'workspace', c.meter, NULL, c.expected - c.loaded, c.expected - c.final
  FROM usage.bill_cell c
  JOIN usage.shown_workspace w ON w.entity_id = c.workspace_entity_id
  WHERE c.meter IN (SELECT unnest(usage.meters_of_measure(meter)) FROM usage.priced_meter)
),
-- Projects of budgets. Cost without a project is in the costs by project alone.
project AS (
  SELECT b.budget_number, array_agg(e.entity_id) AS ids
  FROM budget b
  JOIN usage.entity e ON e.dimension = 'project' AND e.external_id = usage.platform_id(b.project)
    AND e.external_id <> ''
  WHERE (SELECT o.dimension FROM usage.owned_dimension o) = 'project'
  GROUP BY b.budget_number
),
-- Scopes of a source that must be loaded: by workspace, by the dimension that divides traces between owners, and all
-- priced meters.
state AS (
  SELECT b.budget_number, c.slug, range_agg(c.missing) AS missing, range_agg(c.open) AS open, min(c.data_start) AS since
  FROM budget b
  JOIN cell c ON coalesce(c.slug = b.source, true) AND coalesce(c.workspace_id = b.workspace, true) AND (
    c.group_by = 'workspace' AND (c.meter IS NULL OR b.currency IS NOT NULL)
    OR c.group_by = CASE WHEN b.owner IS NOT NULL THEN (SELECT o.dimension FROM usage.owned_dimension o)
                         WHEN b.project IS NOT NULL THEN 'project' END
  )
  GROUP BY b.budget_number, c.slug
),
period AS (
  SELECT source_id AS slug, period_start, period_end FROM reporting_detail.dim_billing_period
  WHERE EXISTS (SELECT FROM budget WHERE per = 'billing_period')
)
SELECT b.budget_number, b.line, d.source_id, b.owner, b.workspace AS workspace_id, b.project AS project_id, b.currency,
       b.per AS budget_per, b.amount AS budget_amount, p.starts AS budget_starts_on, p.ends AS budget_ends_on,
       d.usage_date,
       (CASE WHEN d.spent <> 0 OR x.is_complete THEN d.spent END)::numeric(38, 14) AS spent,
       (b.amount * (d.usage_date + 1 - p.starts) / (p.ends - p.starts))::numeric(38, 10) AS even_pace, x.is_complete,
       d.is_unpriced, x.is_complete AND NOT coalesce(s.open @> d.usage_date, false) AS is_final
FROM (
  SELECT budget_number, source_id, usage_date, sum(spent) AS spent, bool_or(is_unpriced) AS is_unpriced
  FROM (
    -- Added up first: there are few owners and days, and many ids.
    SELECT b.budget_number, u.slug AS source_id, u.usage_date, u.amount AS spent, false AS is_unpriced
    FROM budget b
    JOIN (
      SELECT slug, usage_date, owner, sum(traces) AS amount FROM usage.owned_usage GROUP BY usage_date, owner, slug
    ) u
      ON u.owner = b.owner AND coalesce(u.slug = b.source, true)
    WHERE b.currency IS NULL AND EXISTS (SELECT FROM budget WHERE owner IS NOT NULL AND currency IS NULL)
    UNION ALL
    -- The shares of an id add up to all of it. So if traces are divided by project, one read has the costs of owners
    -- and of projects.
    SELECT b.budget_number, u.slug, u.usage_date, u.amount, false
    FROM (SELECT b.*, p.ids FROM budget b LEFT JOIN project p USING (budget_number)) b
    JOIN (
      SELECT slug, usage_date, owner, currency, project, sum(cost) AS amount
      FROM (SELECT *, CASE WHEN entity_id = ANY (ARRAY(SELECT unnest(ids) FROM project)) THEN entity_id END AS project
            FROM usage.owned_cost) c
      GROUP BY usage_date, project, owner, currency, slug
    ) u ON (u.owner = b.owner OR u.project = ANY (b.ids)) AND u.currency = b.currency
      AND coalesce(u.slug = b.source, true)
    WHERE EXISTS (SELECT FROM budget WHERE currency IS NOT NULL AND (owner IS NOT NULL OR project IS NOT NULL))
    UNION ALL
    SELECT b.budget_number, u.source_id, u.usage_date, u.traces, false
    FROM budget b
    JOIN reporting.fct_usage_workspace_daily u ON coalesce(u.workspace_id = b.workspace, true)
      AND coalesce(u.source_id = b.source, true)
    WHERE b.owner IS NULL AND b.project IS NULL AND b.currency IS NULL
      AND EXISTS (SELECT FROM budget WHERE owner IS NULL AND project IS NULL AND currency IS NULL)
    UNION ALL
    SELECT b.budget_number, u.source_id, u.usage_date, u.estimated_cost, false
    FROM budget b
    JOIN reporting.fct_cost_workspace_daily u
      ON coalesce(u.workspace_id = b.workspace, true) AND u.currency = b.currency
        AND coalesce(u.source_id = b.source, true)
    WHERE b.owner IS NULL AND b.project IS NULL
      AND EXISTS (SELECT FROM budget WHERE owner IS NULL AND project IS NULL AND currency IS NOT NULL)
    UNION ALL
    SELECT b.budget_number, u.source_id, u.usage_date, u.traces, false
    FROM budget b
    JOIN reporting.fct_usage_project_daily u ON u.project_id = b.project AND coalesce(u.source_id = b.source, true)
    WHERE u.project_id = ANY (ARRAY(SELECT project FROM budget)) AND b.currency IS NULL
      AND EXISTS (SELECT FROM budget WHERE project IS NOT NULL AND currency IS NULL)
    UNION ALL
    SELECT b.budget_number, u.source_id, u.usage_date, u.estimated_cost, false
    FROM budget b
    JOIN reporting_detail.fct_cost_by_id_daily u
      ON u.group_by = 'project' AND u.dimension_id = b.project AND u.currency = b.currency
        AND coalesce(u.source_id = b.source, true)
    WHERE b.budget_number NOT IN (SELECT budget_number FROM project)
      AND EXISTS (SELECT FROM budget WHERE project IS NOT NULL AND currency IS NOT NULL
                    AND budget_number NOT IN (SELECT budget_number FROM project))
    UNION ALL
    SELECT b.budget_number, u.source_id, u.usage_date, 0, true
    FROM budget b
    JOIN reporting_detail.usage_unpriced_daily u
      ON coalesce(u.workspace_id = b.workspace, true) AND coalesce(u.source_id = b.source, true)
        AND NOT u.has_other_price
    JOIN priced p ON p.slug = u.source_id AND p.workspace_id = u.workspace_id
    WHERE b.currency IS NOT NULL AND EXISTS (SELECT FROM budget WHERE currency IS NOT NULL)
    UNION ALL
    -- Each day, including days without usage.
    SELECT s.budget_number, s.slug, day, 0, false
    FROM state s
    CROSS JOIN LATERAL usage.days_of(datemultirange(daterange(s.since, (now() AT TIME ZONE 'UTC')::date, '[]'))) day
  ) part
  GROUP BY budget_number, source_id, usage_date
) d
JOIN budget b USING (budget_number)
JOIN state s ON s.budget_number = d.budget_number AND s.slug = d.source_id AND d.usage_date >= s.since
CROSS JOIN LATERAL (SELECT NOT coalesce(s.missing @> d.usage_date, false) AND NOT d.is_unpriced AS is_complete) x
LEFT JOIN LATERAL (
  SELECT usage.month_of(d.usage_date) AS starts, (usage.month_of(d.usage_date) + interval '1 month')::date AS ends
  WHERE b.per = 'month'
  UNION ALL
  (SELECT period_start, period_end FROM period i
   WHERE b.per = 'billing_period' AND i.slug = d.source_id AND i.period_start <= d.usage_date
     AND i.period_end > d.usage_date
   ORDER BY period_end LIMIT 1)
) p ON true;
COMMENT ON VIEW reporting_detail.fct_budget_daily IS
  'How much of each budget is used, by day. Grain: budget of the owner file x source that it counts x UTC day, from '
  'the data start to today (key: budget_number, source_id, usage_date). Add spent over sources and over the days with '
  'the same budget_starts_on: usage-etl owners budgets shows the same sum. The used part is that sum divided by '
  'budget_amount, which is the same in each row: never add it up. Budgets overlap: never add up over budgets. Filter '
  'on usage_date.';
CALL usage.comment_columns('{reporting_detail.fct_budget_daily}',
  'budget_number', 'Place of the budget in the owner file.',
  'line', 'Line of the owner file on which the budget begins.',
  'owner',
    'Owner whose budget it is. Null: the budget is for a project, a workspace or, if both are null too, everything.',
  'workspace_id',
    'The platform''s id of the workspace that the budget is for. Null: the budget is not for a workspace.',
  'project_id', 'The platform''s id of the project that the budget is for. Null: the budget is not for a project.',
  'currency', 'ISO 4217 code of the amounts. Null: the budget is in traces.',
  'budget_per', 'month: the budget is for a calendar month. billing_period: for a billing period of its source.',
  'budget_amount',
    'Amount that may be used in a month or billing period, in traces or in currency, in all sources of the budget '
    'together. The same in each row: never add up.',
  'budget_starts_on',
    'First UTC day of the month or billing period of the day. Null: no such period is known.',
  'budget_ends_on', 'First UTC day after the month or billing period. Null: no such period is known.',
  'spent',
    'Traces, or estimated cost in currency, of the day in the source. If is_complete is false, the true amount may be '
    'larger. Adds up over days and sources. Null: nothing is known.',
  'even_pace',
    'Amount used by the end of the day if every day used the same. Compare it with the sum of spent since '
    'budget_starts_on over all sources. Never add up. Null: no such period is known.',
  'is_complete',
    'Whether all usage that the budget counts is loaded on the day and, for a budget in money, has a price.',
  'is_unpriced', 'Whether a price is missing: a workspace has usage and has prices on other days, but not on this one.',
  'is_final', 'Whether spent is complete and final.'
);
