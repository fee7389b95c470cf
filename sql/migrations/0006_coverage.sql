-- Which parts of time are loaded for a scope. A load commits its records and these rows together; they are the fence
-- against older answers, and records exist only inside them.
CREATE TABLE usage.coverage (
  scope_id integer NOT NULL CONSTRAINT coverage_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- Fetched at least USAGE_SETTLE_AFTER after its last bucket ended.
  final boolean NOT NULL,
  fetch_number bigint NOT NULL,
  fetched_at timestamptz NOT NULL,
  CONSTRAINT coverage_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT coverage_period_order CHECK (period_start < period_end),
  -- A range of one integer stands for equality, so that no extension is needed.
  CONSTRAINT coverage_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);

-- Parts of time whose last answer could not be used, and when to ask again.
CREATE TABLE usage.failure (
  scope_id integer NOT NULL CONSTRAINT failure_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- 'unverified': an answer without records for a workspace that nothing shows to be readable.
  state text NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  attempts integer NOT NULL,
  fetch_number bigint NOT NULL,
  failed_at timestamptz NOT NULL,
  retry_at timestamptz NOT NULL,
  CONSTRAINT failure_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT failure_period_order CHECK (period_start < period_end),
  CONSTRAINT failure_state_known CHECK (state IN ('failed', 'unverified')),
  CONSTRAINT failure_attempts_counted CHECK (attempts >= 1),
  CONSTRAINT failure_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);
