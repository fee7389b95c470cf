-- The number that orders fetches. Drawn together with the time, before each request.
CREATE SEQUENCE usage.fetch_number AS bigint;

-- Ledger of requests for usage.
CREATE TABLE usage.fetch (
  fetch_number bigint NOT NULL DEFAULT nextval('usage.fetch_number') CONSTRAINT fetch_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT fetch_source_id_fkey REFERENCES usage.source,
  purpose text NOT NULL,
  group_by text NOT NULL,
  stride text NOT NULL,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  workspaces integer NOT NULL,
  fetched_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at timestamptz,
  outcome text NOT NULL DEFAULT 'running',
  code text,
  status integer,
  records bigint,
  traces bigint,
  CONSTRAINT fetch_purpose_known CHECK (purpose IN ('load', 'reconcile')),
  CONSTRAINT fetch_outcome_known CHECK (
    outcome IN ('running', 'loaded', 'discarded', 'unconfirmed', 'unverified', 'refused', 'failed', 'compared')
  )
);
CREATE INDEX fetch_source_time ON usage.fetch (source_id, fetched_at);
