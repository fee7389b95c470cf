-- Work for the queue: what is waiting to be fed to Redis, and what was fed and is leased. Redis may lose all of it.
-- Slices of the routine are gone when they are finished; those of a backfill stay, to be counted and listed.
CREATE TABLE usage.slice (
  slice_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT slice_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT slice_source_id_fkey REFERENCES usage.source,
  backfill_id integer CONSTRAINT slice_backfill_id_fkey REFERENCES usage.backfill,
  group_by text NOT NULL,
  stride text NOT NULL,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  scope_ids integer[] NOT NULL,
  workspace_ids text[] NOT NULL,
  state text NOT NULL DEFAULT 'waiting',
  -- Counts how often it was fed: part of the job's id, since BullMQ ignores an id that it has kept.
  generation integer NOT NULL DEFAULT 0,
  -- Counts how often a worker took it: what kills every worker is found here.
  attempts integer NOT NULL DEFAULT 0,
  leased_until timestamptz,
  code text,
  message text,
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  CONSTRAINT slice_period_order CHECK (period_start < period_end),
  CONSTRAINT slice_state_known CHECK (state IN ('waiting', 'queued', 'done', 'failed', 'cancelled')),
  CONSTRAINT slice_lease_when_queued CHECK ((state = 'queued') = (leased_until IS NOT NULL)),
  CONSTRAINT slice_finished_when CHECK ((state IN ('done', 'failed', 'cancelled')) = (finished_at IS NOT NULL))
);
-- Newest first, the routine before backfills.
CREATE INDEX slice_waiting ON usage.slice (source_id, (backfill_id IS NOT NULL), period_start DESC) WHERE state = 'waiting';
CREATE INDEX slice_queued ON usage.slice (source_id, leased_until) WHERE state = 'queued';
CREATE INDEX slice_of_backfill ON usage.slice (backfill_id, state) WHERE backfill_id IS NOT NULL;
-- Two rounds that plan at once enter a slice once.
CREATE UNIQUE INDEX slice_routine_once ON usage.slice (source_id, group_by, stride, period_start, period_end, scope_ids)
  WHERE backfill_id IS NULL;
