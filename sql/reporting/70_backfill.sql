-- Progress is counted from the fetch tasks. `prune` removes them some time after the end: then the counts are 0.
CREATE OR REPLACE VIEW reporting_detail.backfill_status AS
SELECT src.slug AS source_id, b.backfill_id, b.state, b.stride, b.period_start, b.period_end,
       count(s.task_id) FILTER (WHERE s.state = 'done') AS done,
       count(s.task_id) FILTER (WHERE s.state = 'failed') AS failed,
       count(s.task_id) AS total, b.created_at, b.finished_at, b.meter
FROM usage.backfill b
JOIN usage.source src USING (source_id)
LEFT JOIN usage.fetch_task s USING (backfill_id)
GROUP BY b.backfill_id, src.slug;
COMMENT ON VIEW reporting_detail.backfill_status IS
  'How far each backfill is. Grain: backfill (key: source_id, backfill_id). The counts are fetch tasks, one request '
  'each. They are 0 once the tasks are pruned (USAGE_KEEP_HISTORY).';
CALL usage.comment_columns('{reporting_detail.backfill_status}',
  'backfill_id', 'Number of the backfill, as the command line shows it.',
  'state', 'running, paused, cancelled or done.',
  'period_start', 'Start of the requested range.',
  'period_end', 'End of the requested range, not included.',
  'done', 'Fetch tasks that are loaded. Adds up over backfills.',
  'failed', 'Fetch tasks that failed; `backfill show` lists them. Adds up over backfills.',
  'total', 'All fetch tasks, waiting and cancelled ones included. Adds up over backfills.',
  'created_at', 'When the backfill was requested.',
  'finished_at', 'When the backfill was done or cancelled. Null: it is neither.',
  'meter',
    'What is loaded: traces (of all retention tiers), longlived, shortlived, deployments, sandboxes or evaluators.'
);
