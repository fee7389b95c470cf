-- The owner of each day of an id, by the rules of the owner file. Readers cannot see these views; the facts are in
-- 79_usage_by_owner.sql. An id here is one of the dimension that divides traces, a deployment or a sandbox. The rest of
-- a workspace is an id as well, (none): usage without an id, usage that is not loaded by this dimension, and changes
-- since a close.

-- The dimension that divides traces. Without an owner file it makes no difference.
CREATE OR REPLACE VIEW usage.owned_dimension AS
SELECT coalesce((SELECT f.divide_by FROM usage.owner_file f), 'project') AS dimension;

-- The owners' shares of the days of each id: days that a rule matches and no earlier rule has. The owner may be the
-- value of the tag that the rule matched.
CREATE OR REPLACE VIEW usage.owned_days AS
WITH rule AS (
  SELECT r.*, s.source_id, w.entity_id AS workspace_id,
         replace(regexp_replace(r.name_pattern, '([\\%_])', '\\\1', 'g'), '*', '%') AS name_like
  FROM usage.owner_rule r
  LEFT JOIN usage.source s ON s.slug = r.source
  LEFT JOIN usage.entity w ON w.dimension = 'workspace' AND w.external_id = r.workspace
    AND (r.source IS NULL OR w.source_id = s.source_id)
  -- A rule about an unknown source or workspace matches nothing.
  WHERE (r.source IS NULL OR s.source_id IS NOT NULL) AND (r.workspace IS NULL OR w.entity_id IS NOT NULL)
),
id AS (
  SELECT c.source_id, c.workspace_id, e.dimension, e.external_id, s.entity_id
  FROM usage.scope c
  JOIN usage.series s USING (scope_id)
  JOIN usage.entity e USING (entity_id)
  -- Ids of deployments and sandboxes are in scopes by project. Without this condition the series of all users are read.
  WHERE c.group_by IN ((SELECT d.dimension FROM usage.owned_dimension d), 'project')
    AND e.external_id <> ''
    AND e.dimension IN ((SELECT d.dimension FROM usage.owned_dimension d), 'deployment', 'sandbox')
  GROUP BY c.source_id, c.workspace_id, e.dimension, e.external_id, s.entity_id
  UNION ALL
  SELECT e.source_id, w.entity_id, NULL, '', NULL
  FROM usage.workspace w
  JOIN usage.entity e USING (entity_id)
),
-- Each name is tried with each pattern.
pattern AS (SELECT * FROM rule WHERE name_like IS NOT NULL),
named AS (
  SELECT i.*, n.name, n.days
  FROM id i
  JOIN usage.name_in_time n USING (entity_id)
  WHERE EXISTS (SELECT FROM pattern)
),
matched AS (
  SELECT i.*, r.rule_number, NULL::text AS tag_value, datemultirange(r.valid) AS days
  FROM rule r
  JOIN id i ON i.dimension = r.dimension AND i.external_id = r.external_id
  WHERE coalesce(r.source_id = i.source_id, true) AND coalesce(r.workspace_id = i.workspace_id, true)
  UNION ALL
  SELECT i.*, r.rule_number, t.tag_value, datemultirange(r.valid * daterange(t.valid_from, t.valid_to))
  FROM rule r
  JOIN usage.resource_tag t ON t.tag_key = r.tag_key AND coalesce(t.tag_value = r.tag_value, true)
  JOIN id i ON i.workspace_id = t.workspace_id AND i.dimension = t.dimension AND i.external_id = t.external_id
  WHERE coalesce(r.source_id = i.source_id, true) AND coalesce(r.workspace_id = i.workspace_id, true)
  UNION ALL
  SELECT i.source_id, i.workspace_id, i.dimension, i.external_id, i.entity_id, r.rule_number, NULL,
         datemultirange(r.valid * i.days)
  FROM pattern r
  JOIN named i ON i.name LIKE r.name_like
  WHERE coalesce(r.source_id = i.source_id, true) AND coalesce(r.workspace_id = i.workspace_id, true)
  UNION ALL
  SELECT i.*, r.rule_number, NULL, datemultirange(r.valid)
  FROM rule r
  JOIN id i ON i.workspace_id = r.workspace_id
  WHERE num_nonnulls(r.external_id, r.tag_key, r.name_pattern) = 0
  UNION ALL
  SELECT i.*, r.rule_number, NULL, datemultirange(r.valid)
  FROM rule r
  JOIN id i ON coalesce(r.source_id = i.source_id, true)
  WHERE num_nonnulls(r.external_id, r.tag_key, r.name_pattern, r.workspace) = 0
)
SELECT s.slug, usage.shown_id(w.external_id) AS workspace_id, coalesce(m.dimension, '') AS dimension,
       usage.shown_id(m.external_id) AS dimension_id, d.days, m.rule_number, coalesce(o.owner, m.tag_value) AS owner,
       o.cost_center, o.share, m.workspace_id AS workspace_entity_id, coalesce(m.entity_id, 0) AS entity_id
FROM (
  SELECT m.*, range_agg(days) OVER (
           PARTITION BY workspace_id, dimension, external_id ORDER BY rule_number, days
           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
         ) AS earlier
  FROM (
    SELECT m.*, min(rule_number) FILTER (WHERE days = '{(,)}') OVER (PARTITION BY workspace_id, dimension, external_id)
           AS last
    FROM matched m
  ) m
  -- After a rule that has all days, no day remains: there may be thousands of such rules.
  WHERE rule_number <= coalesce(last, rule_number)
) m
CROSS JOIN LATERAL (SELECT m.days - coalesce(m.earlier, '{}') AS days) d
JOIN usage.owner_share o USING (rule_number)
JOIN usage.source s USING (source_id)
JOIN usage.entity w ON w.entity_id = m.workspace_id
WHERE NOT isempty(d.days);

-- Grain and key are those of the rules; names are in dim_name.
CREATE OR REPLACE VIEW reporting_detail.owner_assignment AS
SELECT d.slug AS source_id, d.workspace_id, nullif(d.dimension, '') AS group_by, d.dimension_id,
       coalesce(lower(t.days), '1900-01-01') AS valid_from, coalesce(upper(t.days), '9999-12-31') AS valid_to, d.owner,
       coalesce(d.cost_center, '(none)') AS cost_center, d.share, d.rule_number, r.line
FROM usage.owned_days d
JOIN usage.owner_rule r USING (rule_number)
CROSS JOIN LATERAL unnest(d.days) t (days);
COMMENT ON VIEW reporting_detail.owner_assignment IS
  'Who owns which project, user, API key or workspace, and on which days. Grain: id x its days x owner who pays a '
  'share of them (key: source_id, workspace_id, group_by, dimension_id, valid_from, owner, cost_center). It shows the '
  'owner file that was applied last. The id (none), with null group_by, is the rest of a workspace: its usage without '
  'an id. An id or a day without a row has no owner.';
CALL usage.comment_columns('{reporting_detail.owner_assignment}',
  'group_by',
    'What the id names: project, user or api_key (the dimension that divides traces), deployment or sandbox. Null: the '
    'rest of the workspace.',
  'valid_from', 'First UTC day on which the owner has the id. 1900-01-01: from the beginning.',
  'valid_to', 'First UTC day on which the owner no longer has the id. 9999-12-31: no end is set.',
  'owner', 'Who pays: an owner of the owner file, or the value of the tag that the rule names.',
  'share', 'The owner''s share of the id''s usage, at most 1. The shares of one id and day add up to 1.',
  'rule_number', 'Place of the rule in the owner file. The first rule that matches a day decides.',
  'line', 'Line of the owner file on which the rule begins.'
);
