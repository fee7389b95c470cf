-- A native question of Metabase: traces by project and week, with filters that may be left empty.
-- Projects may share a name, so the start of the id follows it. Traces that no record by project names are not in it: fct_usage_workspace_daily has all.
-- Variables: `from` and `to` of the type Date, `workspace` of the type Text. Choose "bar", stacked by project.
SELECT date_trunc('week', usage_date)::date AS week,
       CASE WHEN project_id IS NULL THEN 'not loaded by project' ELSE coalesce(project_name || ' (' || left(project_id, 8) || ')', project_id) END AS project,
       sum(traces) AS traces, bool_and(is_final) AS is_final
FROM reporting.fct_usage_project_daily
WHERE true
  [[AND usage_date >= {{from}}]]
  [[AND usage_date < {{to}}]]
  [[AND workspace_name = {{workspace}}]]
GROUP BY 1, project_id, project_name
ORDER BY 1, 3 DESC NULLS LAST, 2;
