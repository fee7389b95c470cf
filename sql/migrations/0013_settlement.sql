-- When each part of a day scope's time was first stored as final. Coverage forgets it: a later load puts its own fetch
-- in place. What was stored as final at an instant is read from here, and from the restatements since.
CREATE TABLE usage.became_final (
  scope_id integer NOT NULL CONSTRAINT became_final_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  final_at timestamptz NOT NULL,
  CONSTRAINT became_final_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT became_final_period_order CHECK (period_start < period_end),
  CONSTRAINT became_final_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);

-- From when on the restatements are whole; null: from the source's first load on. What was stored before is not known.
ALTER TABLE usage.source ADD COLUMN history_since timestamptz;
UPDATE usage.source SET history_since = now();
INSERT INTO usage.became_final (scope_id, period_start, period_end, final_at)
SELECT scope_id, period_start, period_end, now()
FROM usage.coverage JOIN usage.scope USING (scope_id)
WHERE final AND stride = 'day';

CREATE INDEX restatement_time ON usage.restatement (restated_at);
