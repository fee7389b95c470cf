-- What coverage is kept for. Kind and tier filter stand in the key from the start, with one value each for now.
CREATE TABLE usage.scope (
  scope_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT scope_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT scope_source_id_fkey REFERENCES usage.source,
  kind text NOT NULL DEFAULT 'traces',
  trace_tier text NOT NULL DEFAULT 'all',
  group_by text NOT NULL,
  workspace_id integer NOT NULL CONSTRAINT scope_workspace_id_fkey REFERENCES usage.workspace,
  stride text NOT NULL,
  CONSTRAINT scope_identity UNIQUE (source_id, kind, trace_tier, group_by, workspace_id, stride),
  CONSTRAINT scope_kind_known CHECK (kind = 'traces'),
  CONSTRAINT scope_trace_tier_known CHECK (trace_tier = 'all'),
  CONSTRAINT scope_group_by_known CHECK (group_by IN ('workspace', 'project', 'user', 'api_key')),
  CONSTRAINT scope_stride_known CHECK (stride IN ('hour', 'day', 'week', 'month', 'year'))
);

-- One entity within one scope: the integer that stands for both in the record tables.
CREATE TABLE usage.series (
  series_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT series_pkey PRIMARY KEY,
  scope_id integer NOT NULL CONSTRAINT series_scope_id_fkey REFERENCES usage.scope,
  entity_id integer NOT NULL CONSTRAINT series_entity_id_fkey REFERENCES usage.entity,
  CONSTRAINT series_identity UNIQUE (scope_id, entity_id)
);
