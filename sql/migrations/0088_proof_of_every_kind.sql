-- A restatement ends the proof of what it changes, whatever is counted: `usage.scope` has the scopes of traces of all tiers alone, and
-- a late upgrade restates long-lived traces without changing those of all tiers.
CREATE OR REPLACE FUNCTION usage.end_proof() RETURNS trigger
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
    JOIN usage.every_scope own ON own.scope_id = s.scope_id
    JOIN usage.every_scope c
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
