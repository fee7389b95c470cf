-- Fetch tasks are taken for the queue in the order of these indexes, so that who takes a thousand reads a thousand, however many
-- wait: the first of each backfill and of the routine (no backfill), and those of the routine that have waited longest.
CREATE INDEX fetch_task_next ON usage.fetch_task (source_id, backfill_id, (group_by <> 'workspace'), period_start DESC)
  WHERE state = 'waiting';
CREATE INDEX fetch_task_oldest ON usage.fetch_task (source_id, created_at) WHERE state = 'waiting' AND backfill_id IS NULL;
DROP INDEX usage.fetch_task_waiting;

-- A worker that claims a task moves its lease. While an index holds that, each claim writes to every index of the table.
CREATE INDEX fetch_task_in_queue ON usage.fetch_task (source_id) WHERE state = 'queued';
DROP INDEX usage.fetch_task_queued;
