-- One row each time that something ran: a sync, a backfill, a reconciliation, a check of totals or a meter probe, by hand or
-- by schedule. No other table holds a sync or a reconciliation that failed, or when it began. What became of the fetch
-- tasks of a backfill stands in usage.fetch_task, and its end in usage.backfill.
CREATE TABLE usage.run (
  run_id integer GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  kind text NOT NULL,
  backfill_id integer,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at timestamptz,
  outcome text,
  tasks integer,
  failed integer NOT NULL DEFAULT 0,
  code text,
  message text,
  CONSTRAINT run_pkey PRIMARY KEY (run_id),
  CONSTRAINT run_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source (source_id),
  CONSTRAINT run_backfill_id_fkey FOREIGN KEY (backfill_id) REFERENCES usage.backfill (backfill_id),
  CONSTRAINT run_kind_known CHECK (kind IN ('sync', 'backfill', 'reconcile', 'totals', 'probe')),
  CONSTRAINT run_outcome_known CHECK (outcome IN ('done', 'partly_failed', 'differs', 'failed', 'skipped')),
  CONSTRAINT run_finished_when CHECK ((outcome IS NULL) = (finished_at IS NULL))
);

CREATE INDEX run_of_source ON usage.run (source_id, started_at);

-- What ran before this table, as far as it was kept.
INSERT INTO usage.run (source_id, kind, backfill_id, started_at, finished_at, outcome, failed, code, message)
SELECT source_id, 'backfill', backfill_id, created_at, NULL::timestamptz, NULL, 0, NULL, NULL FROM usage.backfill
UNION ALL
SELECT source_id, 'totals', NULL, checked_at, checked_at,
       CASE WHEN failures > 0 THEN 'partly_failed' WHEN differences > 0 THEN 'differs' ELSE 'done' END, failures, NULL, NULL
FROM usage.control_check
UNION ALL
SELECT source_id, 'probe', NULL, started_at, finished_at,
       CASE state WHEN 'matched' THEN 'done' WHEN 'inconclusive' THEN 'failed' ELSE 'differs' END, 0, code, message
FROM usage.probe WHERE finished_at IS NOT NULL
ORDER BY 4;
