-- Limits of usage that the platform enforces, as they were read last. A whole answer replaces them.
CREATE TABLE usage.usage_limit (
  source_id smallint NOT NULL CONSTRAINT usage_limit_source_id_fkey REFERENCES usage.source,
  -- The platform's id of a workspace, which need not be known here. Empty: of the organization.
  workspace text NOT NULL,
  -- The platform's word, such as monthly_traces.
  limit_type text NOT NULL,
  -- Null: there is no limit.
  limit_value bigint,
  -- Whether the platform rejects traces of the workspace because of it.
  is_rejecting boolean NOT NULL,
  read_at timestamptz NOT NULL,
  CONSTRAINT usage_limit_pkey PRIMARY KEY (source_id, workspace, limit_type),
  CONSTRAINT usage_limit_value_range CHECK (limit_value >= 0)
);
