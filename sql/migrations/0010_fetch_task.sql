-- Work for the queue: what is waiting to be fed to Redis, and what was fed and is leased. Redis may lose all of it.
-- Tasks of the routine are gone when they are finished; those of a backfill stay, to be counted and listed.
CREATE TABLE usage.fetch_task (
  task_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT fetch_task_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT fetch_task_source_id_fkey REFERENCES usage.source,
  backfill_id integer CONSTRAINT fetch_task_backfill_id_fkey REFERENCES usage.backfill,
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
  CONSTRAINT fetch_task_period_order CHECK (period_start < period_end),
  CONSTRAINT fetch_task_state_known CHECK (state IN ('waiting', 'queued', 'done', 'failed', 'cancelled')),
  CONSTRAINT fetch_task_lease_when_queued CHECK ((state = 'queued') = (leased_until IS NOT NULL)),
  CONSTRAINT fetch_task_finished_when CHECK ((state IN ('done', 'failed', 'cancelled')) = (finished_at IS NOT NULL))
);
-- Newest first, the routine before backfills.
CREATE INDEX fetch_task_waiting ON usage.fetch_task (source_id, (backfill_id IS NOT NULL), period_start DESC) WHERE state = 'waiting';
CREATE INDEX fetch_task_queued ON usage.fetch_task (source_id, leased_until) WHERE state = 'queued';
CREATE INDEX fetch_task_of_backfill ON usage.fetch_task (backfill_id, state) WHERE backfill_id IS NOT NULL;
-- Two rounds that plan at once enter a task once.
CREATE UNIQUE INDEX fetch_task_routine_once ON usage.fetch_task (source_id, group_by, stride, period_start, period_end, scope_ids)
  WHERE backfill_id IS NULL;
