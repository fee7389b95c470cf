-- How days and hours were proved. Days: usage.day_proof. A row of usage.reconciled or usage.matched_total is true as it
-- stands: a restatement removes it (src/core/store/proof/proved-time.ts).

-- Hours of each hour scope that were compared with whole exports and have no difference, and when each part was.
CREATE OR REPLACE VIEW usage.hour_proof AS
SELECT r.scope_id,
       range_agg(tstzrange(r.period_start, r.period_end)) - coalesce((
         SELECT range_agg(tstzrange(d.period_start, d.period_end))
         FROM usage.difference d
         WHERE d.scope_id = r.scope_id AND d.state IN ('open', 'platform_disagrees')
       ), '{}') AS parts,
       array_agg(r.period_start ORDER BY r.period_start) AS starts,
       array_agg(r.reconciled_at ORDER BY r.period_start) AS reconciled_at
FROM usage.reconciled r
JOIN usage.trace_scope s USING (scope_id)
WHERE s.stride = 'hour'
GROUP BY r.scope_id;
