-- Which run a fetch task and a request belong to. Null: of a release before runs, or of no run. There is no foreign key: the
-- ledger of requests is long, and a run is pruned by itself.
ALTER TABLE usage.fetch_task ADD COLUMN run_id integer;
ALTER TABLE usage.fetch ADD COLUMN run_id integer;

CREATE INDEX fetch_task_of_run ON usage.fetch_task (run_id) WHERE run_id IS NOT NULL AND backfill_id IS NULL;
CREATE INDEX fetch_of_run ON usage.fetch (run_id) WHERE run_id IS NOT NULL;
