-- Meter probes, alerts, orders of operators, and the primary's time.

-- Known traffic, sent to see that exactly it is billed, to whom, and how late. One at a time of a source: two would be in each
-- other's figures.
CREATE TABLE usage.probe (
  probe_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT probe_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT probe_source_id_fkey REFERENCES usage.source,
  -- Name or id, as it is configured.
  project text NOT NULL,
  -- The platform's ids, once an answer has named the project.
  project_id text,
  workspace_id text,
  -- An id, `(none)`, or for keys `...` and the end of a short key.
  expected_user text NOT NULL,
  expected_key text NOT NULL,
  state text NOT NULL DEFAULT 'sending',
  -- Usage is read from this UTC midnight on, before the traffic and after it.
  period_start timestamptz NOT NULL,
  -- Figures by workspace and id, before the first trace was sent.
  baseline jsonb,
  -- Counted before each is sent: a process that dies then has counted one too many, never one too few.
  expected_traces integer NOT NULL DEFAULT 0,
  -- How long the figures must stay, and how late the last trace may be billed (null: no limit), both in milliseconds.
  settle_for_ms integer,
  late_after_ms integer,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  sent_at timestamptz,
  wait_until timestamptz,
  -- When an answer first held some of it, and when the last request was sent whose answer lacked some.
  first_billed_at timestamptz,
  unbilled_at timestamptz,
  -- When the first request was sent whose answer held all of it.
  billed_at timestamptz,
  finished_at timestamptz,
  code text,
  message text,
  CONSTRAINT probe_state_known CHECK (state IN ('sending', 'waiting', 'matched', 'late', 'differs', 'inconclusive')),
  CONSTRAINT probe_waits_for_what_was_sent CHECK (
    state <> 'waiting' OR (sent_at IS NOT NULL AND wait_until IS NOT NULL AND baseline IS NOT NULL)
  ),
  CONSTRAINT probe_matched_is_billed CHECK (state NOT IN ('matched', 'late') OR billed_at IS NOT NULL),
  CONSTRAINT probe_finished_when CHECK ((state IN ('matched', 'late', 'differs', 'inconclusive')) = (finished_at IS NOT NULL))
);
CREATE UNIQUE INDEX probe_one_at_a_time ON usage.probe (source_id) WHERE state IN ('sending', 'waiting');

-- What each dimension showed at the end. Others' traffic stands in all of them but the project's.
CREATE TABLE usage.probe_figure (
  probe_id integer NOT NULL CONSTRAINT probe_figure_probe_id_fkey REFERENCES usage.probe,
  group_by text NOT NULL,
  -- Which id should rise, and which ids changed, the largest change first: [{"id": ..., "traces": ...}].
  expected_id text,
  rises jsonb,
  -- By how much the figure rose.
  billed_traces bigint NOT NULL,
  -- By how much others' projects rose and fell meanwhile: so much of it may be theirs.
  others_added bigint NOT NULL,
  others_removed bigint NOT NULL,
  -- 0 where the rise is what was sent, as far as others' traffic lets that be told.
  difference bigint NOT NULL,
  CONSTRAINT probe_figure_pkey PRIMARY KEY (probe_id, group_by),
  CONSTRAINT probe_figure_group_by_known CHECK (usage.dimension_position(group_by) IS NOT NULL),
  CONSTRAINT probe_figure_others_not_negative CHECK (others_added >= 0 AND others_removed >= 0)
);

-- How sending to a route goes, by source. The row of a route that no file names any longer is removed with its notifications.
CREATE TABLE usage.route_state (
  source_id smallint NOT NULL CONSTRAINT route_state_source_id_fkey REFERENCES usage.source,
  route text NOT NULL,
  -- A random name of the process that sends now, and until when no other process may.
  claim text,
  claimed_until timestamptz,
  -- When the incidents of the last messages were read. Incidents that were read earlier are not sent after them.
  read_at timestamptz,
  -- Tries since a message last arrived, and why the last one failed. It holds no address.
  failures integer NOT NULL DEFAULT 0,
  problem text,
  -- After a failure nothing is sent before this time.
  next_try_at timestamptz,
  CONSTRAINT route_state_pkey PRIMARY KEY (source_id, route),
  CONSTRAINT route_state_claimed_until_when CHECK ((claim IS NULL) = (claimed_until IS NULL)),
  CONSTRAINT route_state_failures_not_negative CHECK (failures >= 0),
  CONSTRAINT route_state_problem_when CHECK ((failures > 0) = (problem IS NOT NULL)),
  CONSTRAINT route_state_waits_after_failure CHECK (next_try_at IS NULL OR failures > 0)
);

-- The incidents that each route was notified of, so that it hears of each beginning, growth and end once.
CREATE TABLE usage.notification (
  source_id smallint NOT NULL,
  route text NOT NULL,
  kind text NOT NULL,
  -- Empty: the incident belongs to no owner.
  owner text NOT NULL,
  -- How far the incident had grown in the last message that arrived: how many there were, and the newest of them (a restatement's
  -- number, or when it was found, in ms). The route is notified again where either grows.
  count bigint NOT NULL,
  newest bigint NOT NULL,
  since timestamptz NOT NULL,
  -- Null: a message is being sent, or nobody knows whether it arrived.
  notified_at timestamptz,
  ended_at timestamptz,
  CONSTRAINT notification_pkey PRIMARY KEY (source_id, route, kind, owner),
  CONSTRAINT notification_route_fkey FOREIGN KEY (source_id, route) REFERENCES usage.route_state ON DELETE CASCADE,
  CONSTRAINT notification_kind_known CHECK (
    kind IN (
      'difference', 'control_total', 'final_changed', 'stale', 'refused', 'access_lost', 'unpriced', 'provider_total', 'usage_limit',
      'budget', 'unusual'
    )
  ),
  CONSTRAINT notification_ended_notified CHECK (ended_at IS NULL OR notified_at IS NOT NULL)
);

-- Who did what, and when: one row for each order that a person gave, on a page or by a command. It is written in the transaction
-- of what it records wherever that is one, so that neither stands without the other. Kept for good: it tells years later who
-- closed a month. A forgotten source leaves its rows: the order to forget it is one of them.
CREATE TABLE usage.operator_action (
  action_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT operator_action_pkey PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  source_id smallint CONSTRAINT operator_action_source_id_fkey REFERENCES usage.source ON DELETE SET NULL,
  action text NOT NULL,
  detail text NOT NULL,
  actor text,
  role text NOT NULL,
  via text NOT NULL,
  outcome text NOT NULL DEFAULT 'done',
  CONSTRAINT operator_action_action_form CHECK (action ~ '^[a-z]+([._][a-z]+)*$'),
  CONSTRAINT operator_action_detail_one_line CHECK (detail !~ '[[:cntrl:]]' AND length(detail) <= 1000),
  CONSTRAINT operator_action_role_known CHECK (role IN ('operator', 'viewer')),
  CONSTRAINT operator_action_via_known CHECK (via IN ('page', 'command')),
  CONSTRAINT operator_action_outcome_known CHECK (outcome IN ('done', 'refused', 'failed'))
);
CREATE INDEX operator_action_newest ON usage.operator_action (at DESC, action_id DESC);
CREATE INDEX operator_action_of_source ON usage.operator_action (source_id, at DESC, action_id DESC) WHERE source_id IS NOT NULL;

-- Sessions of the pages that somebody logged out of before their time was over. Their cookies would be valid until then.
CREATE TABLE usage.ended_session (
  session uuid NOT NULL CONSTRAINT ended_session_pkey PRIMARY KEY,
  until timestamptz NOT NULL
);
