-- A restatement ends the proof of what it changes: by the export, of its bucket and of the hours of its day; by totals, of all
-- days of the total. So a row of usage.reconciled or usage.matched_total is true as it stands, and no reader has to look for
-- restatements. The load holds the lock of the scope, as every comparison does: what was compared before is ended whatever its
-- number, for an answer may be requested before the export and stored after it. A trigger also holds for older releases.
CREATE FUNCTION usage.end_proof() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  -- Most loads restate nothing, and a trigger of a statement fires without rows too.
  IF NOT EXISTS (SELECT FROM new_restatements) THEN
    RETURN NULL;
  END IF;
  WITH restated AS (
    SELECT c.scope_id,
           range_agg(tstzrange(t.bucket_start, t.bucket_start + make_interval(hours => CASE own.stride
             WHEN 'hour' THEN 1 WHEN 'day' THEN 24 WHEN 'week' THEN 168 WHEN 'month' THEN 720 ELSE 8760 END))) AS parts,
           -- Hours are another answer: an export of them that is newer than the day's stands.
           max(CASE WHEN c.scope_id = own.scope_id THEN 9223372036854775807 ELSE t.fetch_number END) AS before
    FROM new_restatements t
    JOIN usage.series s ON s.series_id = t.series_id
    JOIN usage.scope own ON own.scope_id = s.scope_id
    JOIN usage.scope c
      ON c.source_id = own.source_id AND c.kind = own.kind AND c.trace_tier = own.trace_tier
     AND c.group_by = own.group_by AND c.workspace_id = own.workspace_id
     AND (c.stride = own.stride OR own.stride = 'day' AND c.stride = 'hour')
    GROUP BY c.scope_id
  ), untotalled AS (
    DELETE FROM usage.matched_total m USING restated n
    WHERE m.scope_id = n.scope_id AND tstzrange(m.total_start, m.total_end) && n.parts
  ), removed AS (
    DELETE FROM usage.reconciled r USING restated n
    WHERE r.scope_id = n.scope_id AND r.fetch_number < n.before AND tstzrange(r.period_start, r.period_end) && n.parts
    RETURNING r.*, n.parts
  )
  INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
  SELECT r.scope_id, lower(part), upper(part), r.fetch_number, r.reconciled_at
  FROM removed r
  CROSS JOIN LATERAL unnest(tstzmultirange(tstzrange(r.period_start, r.period_end)) - r.parts) part;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.end_proof () FROM public;

-- Until the end of this migration no load is halfway.
LOCK TABLE usage.restatement IN SHARE ROW EXCLUSIVE MODE;
CREATE TRIGGER restatement_ends_proof AFTER INSERT ON usage.restatement
  REFERENCING NEW TABLE AS new_restatements FOR EACH STATEMENT
  EXECUTE FUNCTION usage.end_proof();

-- What was restated until now: by number, or stored after the export was requested. The next reconcile compares it again.
WITH restated AS (
  SELECT c.scope_id, t.bucket_start AS "start",
         t.bucket_start + make_interval(hours => CASE own.stride
           WHEN 'hour' THEN 1 WHEN 'day' THEN 24 WHEN 'week' THEN 168 WHEN 'month' THEN 720 ELSE 8760 END) AS "end",
         max(t.fetch_number) AS fetch_number,
         max(t.restated_at) FILTER (WHERE c.scope_id = own.scope_id) AS restated_at
  FROM usage.restatement t
  JOIN usage.series s USING (series_id)
  JOIN usage.scope own ON own.scope_id = s.scope_id
  JOIN usage.scope c
    ON c.source_id = own.source_id AND c.kind = own.kind AND c.trace_tier = own.trace_tier
   AND c.group_by = own.group_by AND c.workspace_id = own.workspace_id
   AND (c.stride = own.stride OR own.stride = 'day' AND c.stride = 'hour')
  GROUP BY 1, 2, 3
), unproved AS (
  SELECT r.scope_id, r.period_start, range_agg(tstzrange(n."start", n."end")) AS parts
  FROM usage.reconciled r
  JOIN restated n ON n.scope_id = r.scope_id AND n."start" < r.period_end AND n."end" > r.period_start
   AND (n.fetch_number > r.fetch_number OR n.restated_at > r.reconciled_at)
  GROUP BY r.scope_id, r.period_start
), removed AS (
  DELETE FROM usage.reconciled r USING unproved u
  WHERE r.scope_id = u.scope_id AND r.period_start = u.period_start
  RETURNING r.*, u.parts
)
INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
SELECT r.scope_id, lower(part), upper(part), r.fetch_number, r.reconciled_at
FROM removed r
CROSS JOIN LATERAL unnest(tstzmultirange(tstzrange(r.period_start, r.period_end)) - r.parts) part;
