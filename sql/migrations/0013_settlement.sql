-- When each part of a day scope's time was first stored as settled. Coverage forgets it: a later load puts its own fetch
-- in place. What was stored as settled at an instant is read from here, and from the restatements since.
CREATE TABLE usage.settlement (
  scope_id integer NOT NULL CONSTRAINT settlement_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  settled_at timestamptz NOT NULL,
  CONSTRAINT settlement_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT settlement_period_order CHECK (period_start < period_end),
  CONSTRAINT settlement_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);

-- From when on the restatements are whole; null: from the source's first load on. What was stored before is not known.
ALTER TABLE usage.source ADD COLUMN history_since timestamptz;
UPDATE usage.source SET history_since = now();
INSERT INTO usage.settlement (scope_id, period_start, period_end, settled_at)
SELECT scope_id, period_start, period_end, now()
FROM usage.coverage JOIN usage.scope USING (scope_id)
WHERE settled AND stride = 'day';

CREATE INDEX restatement_time ON usage.restatement (restated_at);
