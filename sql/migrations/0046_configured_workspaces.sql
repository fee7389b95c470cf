-- The workspaces that the configuration of a source names, by the platform's ids, as of its last contact. Empty: all that the
-- platform lists. Planner, request budget, status and close read them here.
ALTER TABLE usage.source ADD COLUMN workspace_ids text[] NOT NULL DEFAULT '{}';
