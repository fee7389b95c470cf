-- Alerts, orders of operators, and ended sessions of the pages.

-- The state of sending to a route, by source. The row of a route that no file names any longer is removed with its
-- notifications.
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

-- The incidents that each route was notified of, so that it gets each beginning, growth and end once.
CREATE TABLE usage.notification (
  source_id smallint NOT NULL,
  route text NOT NULL,
  kind text NOT NULL,
  -- Empty: the incident belongs to no owner.
  owner text NOT NULL,
  -- How far the incident had grown in the last message that arrived: how many there were, and the newest of them (a
  -- restatement's number, or when it was found, in ms). The route is notified again if either grows.
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
      'difference', 'control_total', 'final_changed', 'stale', 'refused', 'access_lost', 'unpriced', 'provider_total',
      'usage_limit',
      'budget', 'unusual', 'meter_not_known', 'workspace_unloaded', 'invoice_open',
      'invoice_missing'
    )
  ),
  CONSTRAINT notification_ended_notified CHECK (ended_at IS NULL OR notified_at IS NOT NULL)
);

-- Orders that a person gave, on a page or by a command: who, what and when. A row is written in the transaction of what
-- it records wherever there is one, so that neither exists without the other. Kept for good: it shows years later who
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
CREATE INDEX operator_action_of_source ON usage.operator_action (source_id, at DESC, action_id DESC)
  WHERE source_id IS NOT NULL;

-- Sessions of the pages that somebody logged out of before their time was over. Their cookies would be valid until
-- then.
CREATE TABLE usage.ended_session (
  session uuid NOT NULL CONSTRAINT ended_session_pkey PRIMARY KEY,
  until timestamptz NOT NULL
);
