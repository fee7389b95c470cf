-- What the webhook was last told of a source: the same is not told twice, and what is over is told once.
CREATE TABLE usage.alert (
  source_id smallint NOT NULL CONSTRAINT alert_source_id_fkey REFERENCES usage.source,
  kind text NOT NULL,
  -- How many, and the newest of them (a restatement's number, or when it was found, in ms): told again where either grows.
  told bigint NOT NULL,
  newest bigint NOT NULL,
  since timestamptz NOT NULL,
  told_at timestamptz NOT NULL,
  cleared_at timestamptz,
  CONSTRAINT alert_pkey PRIMARY KEY (source_id, kind),
  CONSTRAINT alert_kind_known CHECK (kind IN ('difference', 'control_total', 'final_changed', 'stale', 'refused'))
);
