-- The dimensions that usage is split by, each with its place in listings: one function instead of a list in each check.
-- `migrate` replaces it from the release's own list (sql/reporting/00_dimension.sql), so a new dimension needs no migration.
CREATE FUNCTION usage.dimension_position(dimension text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE dimension WHEN 'workspace' THEN 1 WHEN 'project' THEN 2 WHEN 'user' THEN 3 WHEN 'api_key' THEN 4 END;

ALTER TABLE usage.entity DROP CONSTRAINT entity_dimension_known,
  ADD CONSTRAINT entity_dimension_known CHECK (usage.dimension_position(dimension) IS NOT NULL);
ALTER TABLE usage.scope DROP CONSTRAINT scope_group_by_known,
  ADD CONSTRAINT scope_group_by_known CHECK (usage.dimension_position(group_by) IS NOT NULL);
ALTER TABLE usage.probe_figure DROP CONSTRAINT probe_figure_group_by_known,
  ADD CONSTRAINT probe_figure_group_by_known CHECK (usage.dimension_position(group_by) IS NOT NULL);
