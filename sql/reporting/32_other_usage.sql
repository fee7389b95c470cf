-- Usage of deployments, sandboxes and evaluators. The measures of a meter are series of one scope. The platform's
-- "project" of such usage is a deployment, a sandbox, a snapshot or a run rule, with its own ids: it never joins a
-- project that has traces.

CREATE OR REPLACE VIEW reporting_detail.fct_other_usage_daily AS
SELECT u.slug AS source_id, u.usage_date, u.meter, u.measure, u.dimension AS group_by, u.workspace_id, u.workspace_name,
       u.dimension_id, u.quantity::numeric(26, 9) AS quantity, usage.is_final(u.status) AS is_final,
       CASE WHEN u.status = 'ok' AND u.quantity = 0 THEN 'empty' ELSE u.status END AS coverage_status,
       u.fetched_at, u.reconciled_at IS NOT NULL AS is_reconciled, u.reconciled_at, u.matched_at AS totals_matched_at,
       u.proved_at
FROM (
  SELECT slug, usage_date, meter, measure, 'workspace' AS dimension, workspace_id, workspace_name,
         workspace_id AS dimension_id, quantity, status, fetched_at, reconciled_at, matched_at, proved_at
  FROM usage.measured_day
  WHERE meter NOT IN ('longlived', 'shortlived')
  UNION ALL
  -- Each stored figure by another dimension, and a row for each day that is not loaded.
  SELECT x.slug, u.day, g.meter, u.measure, g.dimension, x.workspace_id, x.workspace_name, u.dimension_id, u.quantity,
         CASE WHEN u.is_loaded AND u.quantity IS NULL THEN 'not_available'
              ELSE usage.status_at(u.day, x.final, x.not_available, x.failed, x.missing, x.unverified) END,
         CASE WHEN u.is_loaded THEN x.fetched_at[width_bucket(u.day, x.starts)] END,
         nullif(p.reconciled_at[width_bucket(u.day, p.starts)], '-infinity'),
         nullif(p.matched_at[width_bucket(u.day, p.starts)], '-infinity'),
         nullif(p.proved_at[width_bucket(u.day, p.starts)], '-infinity')
  FROM usage.meter_dimension g
  JOIN usage.figure_days x USING (group_by, meter)
  CROSS JOIN LATERAL (
    SELECT r.bucket_start AS day, s.measure, usage.shown_id(e.external_id) AS dimension_id,
           usage.amount_of(s.measure, r.traces) AS quantity, true AS is_loaded
    FROM usage.series s
    JOIN usage.dated_record r USING (series_id)
    JOIN usage.entity e USING (entity_id)
    WHERE s.scope_id = x.scope_id
    UNION ALL
    SELECT o.usage_date, o.measure, usage.shown_id(e.external_id), NULL, true
    FROM usage.unknown_unit o
    JOIN usage.entity e USING (entity_id)
    WHERE o.scope_id = x.scope_id
    UNION ALL
    SELECT day, m.measure, NULL, NULL, false
    FROM usage.days_of(x.expected - x.loaded) day
    JOIN usage.measure m ON m.meter = g.meter AND m.is_reported
  ) u
  LEFT JOIN usage.day_proof p
    ON p.scope_id = x.scope_id AND u.is_loaded AND NOT usage.is_standard_unit(u.measure)
  WHERE g.group_by <> 'workspace' AND g.kind <> 'traces'
) u;
COMMENT ON VIEW reporting_detail.fct_other_usage_daily IS
  'Usage of deployments, sandboxes and evaluators by day. Grain: UTC day x measure x dimension x workspace x id (key: '
  'source_id, usage_date, measure, group_by, workspace_id, dimension_id). Choose ONE measure and ONE group_by: '
  'quantities add up over the other keys, never over two measures or dimensions. By workspace there is a row for every '
  'day to today, from the data start or the beginning of the usage, whichever is earlier. By another dimension there '
  'are days with usage, and one row with null id and null quantity for a day of a workspace that is not loaded. Null '
  'quantity: not loaded, before the beginning, or not given by the platform, which is not zero. None of this usage is '
  'part of traces. '
  'Evaluators'' spend is the platform''s estimate from model prices and NO INVOICE. Filter on usage_date: without it '
  'every record is read.';
CALL usage.comment_columns('{reporting_detail.fct_other_usage_daily}',
  'meter', 'Kind of usage: deployments, sandboxes or evaluators.',
  'measure',
    'What the quantity counts. nodes_executed: nodes of graphs that were executed. agent_runs: runs of agents. '
    'agent_uptime_seconds: a RAW SUM OVER ALL REPLICAS; the invoice counts deduplicated standby minutes instead, so '
    'never multiply it by an invoice price. lcu, lsu: compute and storage units of sandboxes and snapshots. '
    'compute_standard_units, storage_standard_units: OTHER units of the same usage, NEVER to be added to lcu and lsu. '
    'spend_usd: '
    'US dollars that evaluators spent on models, computed by the platform from the configured model prices, NO '
    'INVOICE. evaluated_traces: traces that were evaluated, once for each rule.',
  'group_by', 'What dimension_id names: workspace, deployment, sandbox, run_rule, user or api_key.',
  'dimension_id',
    'The platform''s id of the workspace, deployment, sandbox or snapshot, rule, user or API key. (none): the platform '
    'gave no id. \(none): an id that is spelled (none). Null: the day is not loaded.',
  'quantity',
    'Quantity in units of measure. Adds up over days, workspaces and ids, within one measure and one group_by. Null: '
    'not loaded, before the beginning, or standard units of a day on which the platform gave no number for an item.',
  'coverage_status',
    'Whether the figure can be used: the first that applies of not_available, failed, missing, unverified, '
    'provisional, empty, ok. not_available: the server does not count this usage, or not yet on that day, or '
    'gave no number of standard units for an item of that day.'
);

CREATE OR REPLACE VIEW reporting_detail.dim_resource AS
SELECT src.slug AS source_id, d.dimension AS group_by, d.dimension_id, d.dimension_name, r.evaluator_id,
       r.evaluator_name, r.project_id, r.project_name, r.dataset_id, r.dataset_name, r.weekly_limit_usd,
       d.first_seen_at, d.last_seen_at
FROM usage.labelled_entity d
JOIN usage.source src USING (source_id)
LEFT JOIN usage.run_rule r USING (entity_id)
WHERE d.dimension IN ('deployment', 'sandbox', 'run_rule');
COMMENT ON VIEW reporting_detail.dim_resource IS
  'Each deployment, sandbox, snapshot and run rule, with its current name. Grain: resource (key: source_id, group_by, '
  'dimension_id). Names are not unique: join by the key. Names of sandboxes are null until their lists are read. A run '
  'rule also has its evaluator, its project or dataset, and its weekly limit, from the newest response. Never join '
  'dimension_id to projects of traces: these are other ids.';
CALL usage.comment_columns('{reporting_detail.dim_resource}',
  'group_by', 'Kind of resource: deployment, sandbox (or snapshot), or run_rule (a rule that runs an evaluator).',
  'dimension_id',
    'The platform''s id of the resource. (none): the platform gave no id. \(none): an id that is spelled (none).',
  'dimension_name', 'Current name of the resource; not unique. Null: no name is known.',
  'evaluator_id',
    'The platform''s id of the evaluator that the rule runs. Several rules may run the same one. Null: the resource is '
    'no rule.',
  'evaluator_name', 'Name of the evaluator in the newest response.',
  'project_id',
    'The platform''s id of the project whose traces the rule evaluates. Null: it evaluates a dataset, or is no rule.',
  'project_name', 'Name of the project in the newest response.',
  'dataset_id',
    'The platform''s id of the dataset that the rule evaluates. Null: it evaluates a project, or is no rule.',
  'dataset_name', 'Name of the dataset in the newest response.',
  'weekly_limit_usd',
    'US dollars that the rule may spend in a week that begins on Monday (UTC). Null: the platform reports no limit, or '
    'the resource is no rule. Does not add up.'
);
