-- A value of a dimension: a workspace, project, user or key. Its identity is the platform's id, never its name.
CREATE TABLE usage.entity (
  entity_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT entity_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT entity_source_id_fkey REFERENCES usage.source,
  dimension text NOT NULL,
  -- The empty string is the one value of null, absent and empty ids; views show it as (none).
  external_id text NOT NULL,
  -- Starts of the earliest and latest bucket in which a whole answer named it.
  first_seen_at timestamptz,
  last_seen_at timestamptz,
  CONSTRAINT entity_identity UNIQUE (source_id, dimension, external_id),
  CONSTRAINT entity_dimension_known CHECK (dimension IN ('workspace', 'project', 'user', 'api_key')),
  CONSTRAINT entity_external_id_length CHECK (octet_length(external_id) <= 1000)
);

-- Every name an entity had. The current one is that of the latest bucket, ties by the newest fetch: both are maxima,
-- so answers may arrive in any order.
CREATE TABLE usage.entity_name (
  entity_id integer NOT NULL CONSTRAINT entity_name_entity_id_fkey REFERENCES usage.entity,
  name text NOT NULL,
  first_bucket timestamptz NOT NULL,
  last_bucket timestamptz NOT NULL,
  -- Number of the newest fetch that gave this name in last_bucket.
  fetch_number bigint NOT NULL
);
-- Names may be longer than an index row.
CREATE UNIQUE INDEX entity_name_identity ON usage.entity_name (entity_id, md5(name));

-- What only workspaces have: whether the key was seen to read them.
CREATE TABLE usage.workspace (
  entity_id integer NOT NULL CONSTRAINT workspace_pkey PRIMARY KEY
    CONSTRAINT workspace_entity_id_fkey REFERENCES usage.entity,
  -- When a listing or an answer last named it: only then is an absent record a zero.
  readable_at timestamptz,
  is_deleted boolean NOT NULL DEFAULT false,
  -- Since when it is gone from the listing without being deleted: an alarm, not a deletion.
  unlisted_since timestamptz
);
