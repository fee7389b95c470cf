-- Fetch tasks are taken for the queue in the order of these indexes, so that who takes a thousand reads a thousand, however many
-- wait: the first of each backfill and of the routine (no backfill), and those of the routine that have waited longest.
CREATE INDEX slice_next ON usage.slice (source_id, backfill_id, (group_by <> 'workspace'), period_start DESC)
  WHERE state = 'waiting';
CREATE INDEX slice_oldest ON usage.slice (source_id, created_at) WHERE state = 'waiting' AND backfill_id IS NULL;
DROP INDEX usage.slice_waiting;

-- A worker that claims a task moves its lease. While an index holds that, each claim writes to every index of the table.
CREATE INDEX slice_in_queue ON usage.slice (source_id) WHERE state = 'queued';
DROP INDEX usage.slice_queued;
