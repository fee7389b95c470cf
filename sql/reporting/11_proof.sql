-- How days and hours were proved. Days: usage.day_proof. A row of usage.reconciled or usage.matched_total is true as it stands: a
-- restatement removes it (usage.end_proof).

-- When a figure that needs two was proved: with the older of both proofs, and not at all without one of them.
CREATE OR REPLACE FUNCTION usage.proved_by_both(one timestamptz, other timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN one > '-infinity' AND other > '-infinity' THEN least(one, other) END;

-- The oldest proof of these days; -infinity if one of them has none.
CREATE OR REPLACE FUNCTION usage.oldest_proof(starts date[], instants timestamptz[], first date, last date) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN width_bucket(first, starts) > 0
            THEN (SELECT min(one) FROM unnest(instants[width_bucket(first, starts) : width_bucket(last, starts)]) one)
            ELSE '-infinity' END;

-- Hours of each hour scope that were compared with whole exports and have no difference, and when each part was.
CREATE OR REPLACE VIEW usage.hour_proof AS
SELECT r.scope_id,
       range_agg(tstzrange(r.period_start, r.period_end)) - coalesce((
         SELECT range_agg(tstzrange(d.bucket_start, d.bucket_start + interval '1 hour'))
         FROM usage.reconciliation_difference d
         WHERE d.scope_id = r.scope_id AND d.state IN ('open', 'platform_disagrees')
       ), '{}') AS parts,
       array_agg(r.period_start ORDER BY r.period_start) AS starts, array_agg(r.reconciled_at ORDER BY r.period_start) AS reconciled_at
FROM usage.reconciled r
JOIN usage.trace_scope s USING (scope_id)
WHERE s.stride = 'hour'
GROUP BY r.scope_id;
