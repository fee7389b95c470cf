-- What an operator asked for. Its tasks are rows; progress is counted from them, cancelling is an update of them.
CREATE TABLE usage.backfill (
  backfill_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT backfill_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT backfill_source_id_fkey REFERENCES usage.source,
  stride text NOT NULL,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  groupings text[] NOT NULL,
  workspaces integer NOT NULL,
  reprocess text NOT NULL,
  state text NOT NULL DEFAULT 'running',
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  CONSTRAINT backfill_period_order CHECK (period_start < period_end),
  CONSTRAINT backfill_reprocess_known CHECK (reprocess IN ('missing', 'all')),
  CONSTRAINT backfill_state_known CHECK (state IN ('running', 'paused', 'cancelled', 'done')),
  CONSTRAINT backfill_finished_when CHECK ((state IN ('cancelled', 'done')) = (finished_at IS NOT NULL))
);
