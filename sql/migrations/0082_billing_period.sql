-- Billing periods of the organization, by the instant at which each ends: that is all the platform tells. A period begins where the
-- one before it ended, if that was read while it was under way.
CREATE TABLE usage.billing_period (
  source_id smallint NOT NULL CONSTRAINT billing_period_source_id_fkey REFERENCES usage.source,
  ends_at timestamptz NOT NULL,
  plan_tier text,
  plan_started_at timestamptz,
  plan_ends_at timestamptz,
  -- The first and the last time that it was the one under way.
  first_read_at timestamptz NOT NULL,
  read_at timestamptz NOT NULL,
  CONSTRAINT billing_period_pkey PRIMARY KEY (source_id, ends_at)
);
