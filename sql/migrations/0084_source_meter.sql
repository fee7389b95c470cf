-- Whether a source's server counts a kind and tier, learned from its answers. Traces of all tiers are always counted and have
-- no row. Deployment usage begins where its own history begins.
CREATE TABLE usage.source_meter (
  source_id smallint NOT NULL CONSTRAINT source_meter_source_id_fkey REFERENCES usage.source,
  meter text NOT NULL,
  is_available boolean NOT NULL,
  -- What was answered, for people.
  evidence text NOT NULL,
  starts_on date,
  learned_at timestamptz NOT NULL DEFAULT now(),
  -- From then on it is learned again.
  ask_again_at timestamptz NOT NULL,
  CONSTRAINT source_meter_pkey PRIMARY KEY (source_id, meter),
  CONSTRAINT source_meter_known CHECK (meter IN ('longlived', 'shortlived', 'deployments')),
  CONSTRAINT source_meter_starts CHECK (starts_on IS NULL OR (meter = 'deployments' AND is_available))
);
