-- Internal views of earlier releases that nothing reads any more. One that somebody built on stays.
DO $$
BEGIN
  DROP VIEW IF EXISTS usage.daily_figure, usage.day_side, usage.workspace_day;
EXCEPTION
  WHEN dependent_objects_still_exist THEN NULL;
END
$$;
