-- Who did what, and when: one row for each order that a person gave, on a page or by a command. It is written in the transaction
-- of what it records wherever that is one, so that neither stands without the other. Kept for good: it is what tells years later
-- who closed a month. A forgotten source leaves its rows: the order to forget it is one of them.
CREATE TABLE usage.operator_action (
  action_id bigint GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  source_id smallint,
  action text NOT NULL,
  detail text NOT NULL,
  actor text,
  role text NOT NULL,
  via text NOT NULL,
  outcome text NOT NULL DEFAULT 'done',
  CONSTRAINT operator_action_pkey PRIMARY KEY (action_id),
  CONSTRAINT operator_action_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source (source_id) ON DELETE SET NULL,
  CONSTRAINT operator_action_action_form CHECK (action ~ '^[a-z]+([._][a-z]+)*$'),
  CONSTRAINT operator_action_detail_one_line CHECK (detail !~ '[[:cntrl:]]' AND length(detail) <= 1000),
  CONSTRAINT operator_action_role_known CHECK (role IN ('operator', 'viewer')),
  CONSTRAINT operator_action_via_known CHECK (via IN ('page', 'command')),
  CONSTRAINT operator_action_outcome_known CHECK (outcome IN ('done', 'refused', 'failed'))
);

CREATE INDEX operator_action_newest ON usage.operator_action (at DESC, action_id DESC);
CREATE INDEX operator_action_of_source ON usage.operator_action (source_id, at DESC, action_id DESC) WHERE source_id IS NOT NULL;
