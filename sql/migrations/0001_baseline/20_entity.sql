-- Values of dimensions, and what coverage is kept for.

-- A workspace, project, user or key. Its identity is the platform's id, never its name. A "project" of deployment usage
-- is a deployment: it is no dimension of traces and never joins a project with traces. The same is true of a sandbox, a
-- snapshot and a run rule.
CREATE TABLE usage.entity (
  entity_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT entity_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT entity_source_id_fkey REFERENCES usage.source,
  dimension text NOT NULL,
  -- The empty string is the one value of null, absent and empty ids. Views show it as (none).
  external_id text NOT NULL,
  -- Starts of the earliest and latest bucket in which a whole response named it.
  first_seen_at timestamptz,
  last_seen_at timestamptz,
  CONSTRAINT entity_identity UNIQUE (source_id, dimension, external_id),
  CONSTRAINT entity_dimension_known CHECK (usage.dimension_position(dimension) IS NOT NULL
    OR dimension IN ('deployment', 'sandbox', 'run_rule')),
  CONSTRAINT entity_external_id_length CHECK (octet_length(external_id) <= 1000)
);

-- Names of entities, by the fetches that first carried them. A response names an id as it is called when it is fetched,
-- whatever buckets it is about: that the platform does so is our guess. A row holds from its fetch to the next one's,
-- and the first row for all time before. No row repeats the name of the row before it.
CREATE TABLE usage.entity_name (
  entity_id integer NOT NULL CONSTRAINT entity_name_entity_id_fkey REFERENCES usage.entity,
  fetch_number bigint NOT NULL,
  fetched_at timestamptz NOT NULL,
  name text NOT NULL,
  CONSTRAINT entity_name_pkey PRIMARY KEY (entity_id, fetch_number)
);

-- The entities that the responses of the last hour named. If an older response arrives later and has another name, it
-- is known to be superseded: so responses may arrive in any order.
CREATE TABLE usage.recent_naming (
  source_id smallint NOT NULL CONSTRAINT recent_naming_source_id_fkey REFERENCES usage.source,
  fetch_number bigint NOT NULL,
  -- A large response is noted in parts.
  part integer NOT NULL,
  fetched_at timestamptz NOT NULL,
  entity_ids integer[] NOT NULL,
  noted_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT recent_naming_pkey PRIMARY KEY (source_id, fetch_number, part)
);
CREATE INDEX recent_naming_noted_at ON usage.recent_naming (noted_at);

-- Places the names of a response among those of all others, by the numbers of their fetches. Responses may arrive in
-- any order and repeatedly. One call at a time for each source: of two at once, neither would see that the other's name
-- supersedes its own. A function, called in a statement of its own, so that its lock ends with it: a client that pauses
-- blocks nobody.
CREATE FUNCTION usage.learn_names(
  source smallint, number bigint, part integer, at timestamptz, ids integer[], names text[]
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('usage-etl names'), source);
  WITH changed AS MATERIALIZED (
    SELECT g.id, g.name, before.name AS before, after.fetch_number AS next, after.name AS after
    FROM unnest(ids, names) g (id, name)
    LEFT JOIN LATERAL (
      SELECT n.fetch_number, n.name FROM usage.entity_name n
      WHERE n.entity_id = g.id AND n.fetch_number <= number ORDER BY n.fetch_number DESC LIMIT 1
    ) before ON true
    LEFT JOIN LATERAL (
      SELECT n.fetch_number, n.name FROM usage.entity_name n
      WHERE n.entity_id = g.id AND n.fetch_number > number ORDER BY n.fetch_number LIMIT 1
    ) after ON true
    -- If parts of one response have several names, the first counts.
    WHERE before.name IS DISTINCT FROM g.name AND before.fetch_number IS DISTINCT FROM number
  ),
  -- Newer responses had the name from before this one: it came back with the first of them. Their ids are read once,
  -- since searching each of a thousand responses for each of 2,000 names takes a minute, and others wait for the lock.
  back AS (
    SELECT DISTINCT ON (c.id) c.id, c.before, r.fetch_number, r.fetched_at
    FROM usage.recent_naming r
    CROSS JOIN LATERAL unnest(r.entity_ids) later (id)
    JOIN changed c USING (id)
    WHERE r.source_id = source AND r.fetch_number > number AND (c.next IS NULL OR r.fetch_number < c.next)
      AND c.before IS NOT NULL
    ORDER BY c.id, r.fetch_number
  ),
  -- The next name is the same, so it begins with this response.
  earlier AS (
    DELETE FROM usage.entity_name n USING changed c
    WHERE n.entity_id = c.id AND n.fetch_number = c.next AND c.after = c.name AND c.id NOT IN (SELECT b.id FROM back b)
  ),
  -- Longer than a response can take.
  forgotten AS (DELETE FROM usage.recent_naming r WHERE r.source_id = source AND r.noted_at < now() - interval '1 hour')
  INSERT INTO usage.entity_name (entity_id, fetch_number, fetched_at, name)
  SELECT c.id, number, at, c.name FROM changed c
  UNION ALL
  SELECT b.id, b.fetch_number, b.fetched_at, b.before FROM back b;
  INSERT INTO usage.recent_naming (source_id, fetch_number, part, fetched_at, entity_ids)
  VALUES (source, number, part, at, ids)
  ON CONFLICT DO NOTHING;
END
$$;

-- Workspaces, with the proof of access that only they have.
CREATE TABLE usage.workspace (
  entity_id integer NOT NULL CONSTRAINT workspace_pkey PRIMARY KEY
    CONSTRAINT workspace_entity_id_fkey REFERENCES usage.entity,
  -- When it was last proven that the key can read the workspace: usage named it or, before it ever had usage, its own
  -- statistics did. Only then is an absent record a zero.
  readable_at timestamptz,
  -- Responses before this instant prove no access: it is the first proof after access was lost, or the loss. A response
  -- that was requested before it may be empty because of that loss. Null: no such bound is known.
  readable_since timestamptz,
  -- A response over all of time until then named the workspace, so each later one names it if the key can read it.
  -- Infinity: only shorter responses named it. Null: no response did. The workspace may never have had traces, so only
  -- its own statistics and other usage can prove access.
  used_before timestamptz,
  is_deleted boolean NOT NULL DEFAULT false,
  -- Since when it is gone from the listing without being deleted: an alarm, not a deletion.
  unlisted_since timestamptz,
  -- UTC day on which the tags of its resources were read first; null: never.
  tags_since date
);

-- Tags of resources, by the platform's ids: a resource need not have usage. Tags of the first day on which a workspace
-- was read count for all time before it. A resource has one value of a key at a time: several values are one text.
CREATE TABLE usage.resource_tag (
  workspace_id integer NOT NULL CONSTRAINT resource_tag_workspace_id_fkey REFERENCES usage.workspace ON DELETE CASCADE,
  dimension text NOT NULL,
  external_id text NOT NULL,
  tag_key text NOT NULL,
  tag_value text NOT NULL,
  valid_from date NOT NULL,
  -- Not included. Null: the value was set when the tags were last read.
  valid_to date,
  CONSTRAINT resource_tag_pkey PRIMARY KEY (workspace_id, dimension, external_id, tag_key, valid_from),
  CONSTRAINT resource_tag_dimension_known CHECK (dimension IN ('project', 'deployment', 'sandbox')),
  CONSTRAINT resource_tag_order CHECK (valid_to > valid_from)
);
CREATE UNIQUE INDEX resource_tag_current ON usage.resource_tag (workspace_id, dimension, external_id, tag_key)
  WHERE valid_to IS NULL;

-- Run rules, from the newest response: the evaluator, and the project or dataset that the rule evaluates.
CREATE TABLE usage.run_rule (
  entity_id integer NOT NULL CONSTRAINT run_rule_pkey PRIMARY KEY
    CONSTRAINT run_rule_entity_id_fkey REFERENCES usage.entity ON DELETE CASCADE,
  evaluator_id text,
  evaluator_name text,
  project_id text,
  project_name text,
  dataset_id text,
  dataset_name text,
  -- US dollars that the rule may spend in a week. Null: the platform reports no limit.
  weekly_limit_usd numeric(26, 9),
  fetch_number bigint NOT NULL
);

-- What the platform's lists say of an API key, as they were last read. No figure needs it.
CREATE TABLE usage.listed_key (
  entity_id integer NOT NULL CONSTRAINT listed_key_pkey PRIMARY KEY
    CONSTRAINT listed_key_entity_id_fkey REFERENCES usage.entity ON DELETE CASCADE,
  -- Null: the list does not say, or the key was never used.
  last_used_at timestamptz,
  -- Null: the list does not say, or the key does not expire.
  expires_at timestamptz,
  -- Who created the key, as the list names it. Null: it does not, or it names an address.
  created_by text
);

-- The units that coverage is kept for, of every kind and tier.
CREATE TABLE usage.scope (
  scope_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT scope_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT scope_source_id_fkey REFERENCES usage.source,
  kind text NOT NULL DEFAULT 'traces',
  trace_tier text NOT NULL DEFAULT 'all',
  group_by text NOT NULL,
  workspace_id integer NOT NULL CONSTRAINT scope_workspace_id_fkey REFERENCES usage.workspace,
  stride text NOT NULL,
  CONSTRAINT scope_identity UNIQUE (source_id, kind, trace_tier, group_by, workspace_id, stride),
  CONSTRAINT scope_kind_known CHECK (kind IN ('traces', 'langsmith_deployments', 'sandboxes', 'evaluators')),
  CONSTRAINT scope_trace_tier_known CHECK (
    trace_tier = 'all' OR (kind = 'traces' AND trace_tier IN ('longlived', 'shortlived'))
  ),
  CONSTRAINT scope_group_by_known CHECK (usage.dimension_position(group_by) IS NOT NULL),
  CONSTRAINT scope_stride_known CHECK (stride IN ('hour', 'day', 'week', 'month', 'year'))
);

-- The scopes of traces of all tiers. A query of these alone reads this view, so that it cannot add traces to deployment
-- usage, or long-lived traces to all traces, by leaving out a condition.
CREATE VIEW usage.trace_scope AS
SELECT scope_id, source_id, kind, trace_tier, group_by, workspace_id, stride
FROM usage.scope
WHERE kind = 'traces' AND trace_tier = 'all'
WITH CHECK OPTION;

-- One entity and measure within one scope: the integer that replaces all three in the record tables. A response about
-- deployments has three measures a record, one about sandboxes four, one about evaluators two. Each measure is its own
-- series in the scope of the response. Measures with digits after the point are kept as whole numbers
-- (usage.amount_of).
CREATE TABLE usage.series (
  series_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT series_pkey PRIMARY KEY,
  scope_id integer NOT NULL CONSTRAINT series_scope_id_fkey REFERENCES usage.scope,
  entity_id integer NOT NULL CONSTRAINT series_entity_id_fkey REFERENCES usage.entity,
  measure text NOT NULL DEFAULT 'traces',
  CONSTRAINT series_identity UNIQUE (scope_id, entity_id, measure),
  CONSTRAINT series_measure_known CHECK (
    measure IN ('traces', 'nodes_executed', 'agent_runs', 'agent_uptime_seconds', 'lcu', 'lsu',
      'compute_standard_units', 'storage_standard_units', 'spend_usd', 'evaluated_traces')
  )
);
