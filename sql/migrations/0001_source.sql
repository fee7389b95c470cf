-- One platform organisation that usage is read from. Everything else hangs off it.
CREATE TABLE usage.source (
  source_id smallint GENERATED ALWAYS AS IDENTITY CONSTRAINT source_pkey PRIMARY KEY,
  slug text NOT NULL CONSTRAINT source_slug_key UNIQUE,
  base_url text NOT NULL,
  -- Bound at first contact, where the platform tells: another id later refuses the source.
  organization_id text,
  organization_name text,
  data_start date NOT NULL,
  -- How far back hours are kept up to date; the views expect hours from there on.
  hourly_hours integer NOT NULL,
  -- A digest of key and configuration: a change clears kept failures and a refused key. Never the key itself.
  configuration_digest text NOT NULL,
  -- Set when the platform refused the key (401, 403): nothing is asked until it is cleared.
  refused_at timestamptz,
  refused_code text,
  refused_message text,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT source_slug_form CHECK (slug ~ '^[a-z][a-z0-9_-]{0,62}$'),
  CONSTRAINT source_refusal_whole CHECK ((refused_at IS NULL) = (refused_code IS NULL))
);

-- What a source taught us about its server; shown by `doctor`.
CREATE TABLE usage.source_fact (
  source_id smallint NOT NULL CONSTRAINT source_fact_source_id_fkey REFERENCES usage.source,
  fact text NOT NULL,
  evidence text NOT NULL,
  learned_at timestamptz NOT NULL DEFAULT now(),
  -- From then on one task may ask again; null where asking again is part of every round.
  probe_after timestamptz,
  CONSTRAINT source_fact_pkey PRIMARY KEY (source_id, fact),
  CONSTRAINT source_fact_known CHECK (
    fact IN ('no_listing', 'no_future_end', 'no_hour', 'no_day', 'no_week', 'no_month', 'no_year')
  )
);
