-- The workspaces that a backfill asks for, by the platform's id, so that it can say what of its range is loaded. Null for a
-- backfill of an earlier release: all workspaces of its fetch tasks.
ALTER TABLE usage.backfill ADD COLUMN workspace_ids text[];
