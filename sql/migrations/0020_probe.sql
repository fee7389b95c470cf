-- Known traffic, sent to see that exactly it is billed. One at a time of a source: two would be in each other's figures.
CREATE TABLE usage.probe (
  probe_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT probe_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT probe_source_id_fkey REFERENCES usage.source,
  -- Name or id, as it is configured.
  project text NOT NULL,
  -- The platform's ids, once an answer has named the project.
  project_id text,
  workspace_id text,
  state text NOT NULL DEFAULT 'sending',
  -- Usage is read from this UTC midnight on, before the traffic and after it.
  period_start timestamptz NOT NULL,
  -- Traces by workspace, before the first one was sent.
  baseline jsonb,
  -- Counted before each is sent: a process that dies then has counted one too many, never one too few.
  expected_traces integer NOT NULL DEFAULT 0,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  sent_at timestamptz,
  wait_until timestamptz,
  -- When the first request was sent whose answer held all of it.
  billed_at timestamptz,
  finished_at timestamptz,
  code text,
  message text,
  CONSTRAINT probe_state_known CHECK (state IN ('sending', 'waiting', 'matched', 'differs', 'inconclusive')),
  CONSTRAINT probe_finished_when CHECK ((state IN ('matched', 'differs', 'inconclusive')) = (finished_at IS NOT NULL)),
  CONSTRAINT probe_waits_for_what_was_sent CHECK (
    state <> 'waiting' OR (sent_at IS NOT NULL AND wait_until IS NOT NULL AND baseline IS NOT NULL)
  ),
  CONSTRAINT probe_matched_is_billed CHECK (state <> 'matched' OR billed_at IS NOT NULL)
);
CREATE UNIQUE INDEX probe_one_at_a_time ON usage.probe (source_id) WHERE state IN ('sending', 'waiting');

-- What each grouping showed at the end. Others' traffic stands in all of them but the project's.
CREATE TABLE usage.probe_figure (
  probe_id integer NOT NULL CONSTRAINT probe_figure_probe_id_fkey REFERENCES usage.probe,
  group_by text NOT NULL,
  -- By how much the figure rose.
  billed_traces bigint NOT NULL,
  -- By how much others' projects rose and fell meanwhile: so much of it may be theirs.
  others_added bigint NOT NULL,
  others_removed bigint NOT NULL,
  -- 0 where the rise is what was sent, as far as others' traffic lets that be told.
  difference bigint NOT NULL,
  CONSTRAINT probe_figure_pkey PRIMARY KEY (probe_id, group_by),
  CONSTRAINT probe_figure_group_by_known CHECK (group_by IN ('workspace', 'project', 'user', 'api_key')),
  CONSTRAINT probe_figure_others_not_negative CHECK (others_added >= 0 AND others_removed >= 0)
);

-- The requests of a probe stand in the same ledger, by a purpose of their own.
ALTER TABLE usage.fetch DROP CONSTRAINT fetch_purpose_known;
ALTER TABLE usage.fetch ADD CONSTRAINT fetch_purpose_known CHECK (purpose IN ('load', 'reconcile', 'probe'));
