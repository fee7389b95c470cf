-- DuckDB reads the files of `usage-etl files` without a server: `duckdb < duckdb.sql`, in the folder that has them.
-- The manifest names the files of one whole set, and says of each day whether it is final and fully loaded.
CREATE TEMP TABLE file AS
  SELECT unnest(datasets.fct_usage_project_daily.files, recursive := true) FROM read_json('manifest/default.json');
SET VARIABLE files = (SELECT list(path) FROM file);

SELECT strftime(usage_date, '%Y-%m') AS month, coalesce(project_name, project_id, 'not loaded by project') AS project,
       sum(traces)::bigint AS traces, bool_and(is_final) AS is_final
FROM read_parquet(getvariable('files'), hive_partitioning = true)
GROUP BY 1, 2
ORDER BY 1, 3 DESC NULLS LAST, 2;
