-- Runs, tasks to fetch, and requested backfills.

-- A backfill that an operator requested. Its fetch tasks are rows: progress is counted from them, and cancelling is an
-- update of them.
CREATE TABLE usage.backfill (
  backfill_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT backfill_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT backfill_source_id_fkey REFERENCES usage.source,
  meter text NOT NULL DEFAULT 'traces',
  stride text NOT NULL,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  groupings text[] NOT NULL,
  -- The platform's ids, so that a backfill can show what of its range is loaded.
  workspace_ids text[] NOT NULL,
  reprocess text NOT NULL,
  state text NOT NULL DEFAULT 'running',
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  CONSTRAINT backfill_meter_known CHECK (meter IN ('traces', 'longlived', 'shortlived', 'deployments', 'sandboxes',
    'evaluators')),
  CONSTRAINT backfill_period_order CHECK (period_start < period_end),
  CONSTRAINT backfill_reprocess_known CHECK (reprocess IN ('missing', 'all')),
  CONSTRAINT backfill_state_known CHECK (state IN ('running', 'paused', 'cancelled', 'done')),
  CONSTRAINT backfill_finished_when CHECK ((state IN ('cancelled', 'done')) = (finished_at IS NOT NULL))
);

-- One row for each run: a sync, a backfill, a reconciliation, a check of totals, or files for a warehouse, by hand or
-- by schedule. No other table holds a sync or a reconciliation that failed, or when it began. usage.fetch_task holds
-- how the fetch tasks of a backfill ended, and usage.backfill when the backfill itself ended.
CREATE TABLE usage.run (
  run_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT run_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT run_source_id_fkey REFERENCES usage.source,
  kind text NOT NULL,
  backfill_id integer CONSTRAINT run_backfill_id_fkey REFERENCES usage.backfill,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at timestamptz,
  -- When its process was last alive: the process notes it twice a minute. Null for a backfill, which many processes
  -- work on.
  seen_at timestamptz,
  outcome text,
  tasks integer,
  failed integer NOT NULL DEFAULT 0,
  code text,
  message text,
  CONSTRAINT run_kind_known CHECK (kind IN ('sync', 'backfill', 'reconcile', 'totals', 'files')),
  CONSTRAINT run_outcome_known CHECK (outcome IN ('done', 'partly_failed', 'differs', 'failed', 'skipped')),
  CONSTRAINT run_finished_when CHECK ((outcome IS NULL) = (finished_at IS NULL))
);
CREATE INDEX run_of_source ON usage.run (source_id, started_at);
-- Pages list the newest runs of a kind, however many years are kept.
CREATE INDEX run_of_kind ON usage.run (source_id, kind, started_at DESC, run_id DESC);

-- Fetch tasks that wait to be queued in Redis, and those that are queued and leased. Redis may lose all of them. Tasks
-- of a routine sync are deleted when they end. Tasks of a backfill stay, to be counted and listed.
CREATE TABLE usage.fetch_task (
  task_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT fetch_task_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT fetch_task_source_id_fkey REFERENCES usage.source,
  backfill_id integer CONSTRAINT fetch_task_backfill_id_fkey REFERENCES usage.backfill,
  -- Null: the task belongs to no run. No foreign key, here and in usage.fetch: the ledger of requests is long, and a
  -- run is pruned separately.
  run_id integer,
  group_by text NOT NULL,
  stride text NOT NULL,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  scope_ids integer[] NOT NULL,
  workspace_ids text[] NOT NULL,
  -- Its workspace had no recent traces when the task was planned, as far as was known.
  is_idle boolean NOT NULL DEFAULT false,
  -- From then on the task goes before others. Otherwise its figures would become older than they may be before the next
  -- sync. Null: there are no figures yet, or their age has no bound.
  due_from timestamptz,
  state text NOT NULL DEFAULT 'waiting',
  -- Counts how often it was queued: part of the job's id, since BullMQ ignores an id that it has kept.
  generation integer NOT NULL DEFAULT 0,
  -- Claims that neither ended nor were handed back: those of workers that crashed or lost their lock, and the current
  -- one. They reveal a task that ends its workers.
  open_claims integer NOT NULL DEFAULT 0,
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
-- Tasks are taken for the queue in the order of these three indexes, so that taking a thousand reads some thousands,
-- however many wait: the first of each backfill and of the routine (no backfill), and those of the routine that have
-- waited longest or are due.
CREATE INDEX fetch_task_next ON usage.fetch_task
  (source_id, backfill_id, (group_by <> 'workspace'), (stride = 'hour'), is_idle, period_start DESC)
  WHERE state = 'waiting';
CREATE INDEX fetch_task_oldest ON usage.fetch_task (source_id, created_at)
  WHERE state = 'waiting' AND backfill_id IS NULL;
CREATE INDEX fetch_task_due ON usage.fetch_task (source_id, (stride = 'hour'), due_from)
  WHERE state = 'waiting' AND backfill_id IS NULL AND due_from IS NOT NULL;
-- Not indexed by the lease: a worker that claims a task moves the lease, and would write to every index of the table.
CREATE INDEX fetch_task_in_queue ON usage.fetch_task (source_id) WHERE state = 'queued';
CREATE INDEX fetch_task_of_backfill ON usage.fetch_task (backfill_id, state) WHERE backfill_id IS NOT NULL;
CREATE INDEX fetch_task_of_run ON usage.fetch_task (run_id) WHERE run_id IS NOT NULL AND backfill_id IS NULL;
-- Two syncs that plan at once create a task once.
CREATE UNIQUE INDEX fetch_task_routine_once ON usage.fetch_task (source_id, group_by, stride, period_start, period_end,
  scope_ids)
  WHERE backfill_id IS NULL;

-- The number that orders fetches. Drawn together with the time, before each request.
CREATE SEQUENCE usage.fetch_number AS bigint;

-- Ledger of requests for usage.
CREATE TABLE usage.fetch (
  fetch_number bigint NOT NULL DEFAULT nextval('usage.fetch_number') CONSTRAINT fetch_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT fetch_source_id_fkey REFERENCES usage.source,
  run_id integer,
  purpose text NOT NULL,
  kind text NOT NULL DEFAULT 'traces',
  trace_tier text NOT NULL DEFAULT 'all',
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
  -- usage.as_of_limit at the end of the request. Loads with an instant before it have ended before this row is
  -- committed. So a snapshot that shows the row shows them as well. Replicas and transactions with an old snapshot rely
  -- on it, because the lock table does not show what their snapshot lacks.
  as_of_limit timestamptz,
  CONSTRAINT fetch_purpose_known CHECK (purpose IN ('load', 'reconcile')),
  CONSTRAINT fetch_outcome_known CHECK (
    outcome IN ('running', 'loaded', 'discarded', 'unconfirmed', 'unverified', 'refused', 'failed', 'compared')
  )
);
CREATE INDEX fetch_source_time ON usage.fetch (source_id, fetched_at);
CREATE INDEX fetch_of_run ON usage.fetch (run_id) WHERE run_id IS NOT NULL;
