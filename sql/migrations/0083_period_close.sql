-- A billing period that was closed: its totals by dimension, workspace and id, by the platform's ids. Never changed. It stands beside
-- the closes of calendar months, which keep costs too.
CREATE TABLE usage.period_close (
  period_close_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT period_close_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT period_close_source_id_fkey REFERENCES usage.source,
  period_start date NOT NULL,
  period_end date NOT NULL,
  closed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  settle_after_seconds bigint NOT NULL,
  -- Days x dimensions x workspaces on which the platform contradicted itself, closed because somebody said so.
  accepted_disagreements integer NOT NULL,
  CONSTRAINT period_close_once UNIQUE (source_id, period_end),
  CONSTRAINT period_close_order CHECK (period_start < period_end)
);

CREATE TABLE usage.period_total (
  period_close_id integer NOT NULL CONSTRAINT period_total_period_close_id_fkey REFERENCES usage.period_close ON DELETE CASCADE,
  group_by text NOT NULL,
  workspace text NOT NULL,
  external_id text NOT NULL,
  traces bigint NOT NULL,
  CONSTRAINT period_total_pkey PRIMARY KEY (period_close_id, group_by, workspace, external_id),
  CONSTRAINT period_total_traces_range CHECK (traces > 0)
);
