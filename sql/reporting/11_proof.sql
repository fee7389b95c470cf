-- How days were proved. As coverage is in 10_internal.sql, the days of a scope are arrays sorted by time, joined once for each
-- scope. A row of usage.reconciled or usage.matched_total is true as it stands: a restatement removes it (usage.end_proof).

-- Days of each day scope in which a difference is left, from the export or from a total: nothing proves them. What a dimension
-- does not attribute is no difference. The billing provider's total of a month says nothing about one of its days.
CREATE OR REPLACE VIEW usage.day_difference AS
SELECT v.scope_id, v.group_by, range_agg(v.days) AS days, v.kind, v.trace_tier
FROM (
  SELECT d.scope_id, s.group_by,
         daterange((d.bucket_start AT TIME ZONE 'UTC')::date, (d.bucket_start AT TIME ZONE 'UTC')::date + 1) AS days,
         s.kind, s.trace_tier
  FROM usage.reconciliation_difference d
  JOIN usage.every_scope s USING (scope_id)
  WHERE s.stride = 'day' AND d.state IN ('open', 'platform_disagrees')
  UNION ALL
  SELECT d.scope_id, s.group_by,
         daterange((d.period_start AT TIME ZONE 'UTC')::date, (d.period_end AT TIME ZONE 'UTC')::date), s.kind, s.trace_tier
  FROM usage.control_difference d
  JOIN usage.every_scope s USING (scope_id)
  WHERE d.state = 'platform_disagrees' AND d.kind <> 'provider_total'
) v
GROUP BY v.scope_id, v.group_by, v.kind, v.trace_tier;

-- When the final days of each day scope were proved: compared with a whole export, and part of a total that the stored days
-- equal; -infinity where that does not prove them. From each of the days to the next one of the scope, all days are alike.
--
-- Parts of one kind of proof do not overlap. So their instants, added where a part begins and subtracted where it ends, come to
-- the one that holds. Kind and tier stand in each GROUP BY and PARTITION BY, so that a filter on them reaches the tables.
CREATE OR REPLACE VIEW usage.proof_change AS
SELECT scope_id, kind, trace_tier, day,
       CASE WHEN is_provable AND exported > 0 THEN timestamptz 'epoch' + exported * interval '1 microsecond' ELSE '-infinity' END
         AS reconciled_at,
       CASE WHEN is_provable AND totalled > 0 THEN timestamptz 'epoch' + totalled * interval '1 microsecond' ELSE '-infinity' END
         AS matched_at
FROM (
  SELECT scope_id, kind, trace_tier, day, sum(sum(final)) OVER w > 0 AND sum(sum(differing)) OVER w = 0 AS is_provable,
         (sum(sum(exported)) OVER w)::float8 AS exported, (sum(sum(totalled)) OVER w)::float8 AS totalled
  FROM (
    SELECT c.scope_id, s.kind, s.trace_tier, b.day, b.sign * c.final::integer AS final, 0 AS differing, 0 AS exported, 0 AS totalled
    FROM usage.coverage c
    JOIN usage.every_scope s USING (scope_id)
    CROSS JOIN LATERAL (
      VALUES ((c.period_start AT TIME ZONE 'UTC')::date, 1), ((c.period_end AT TIME ZONE 'UTC')::date, -1)
    ) b (day, sign)
    WHERE s.stride = 'day'
    UNION ALL
    SELECT r.scope_id, s.kind, s.trace_tier, b.day, 0, 0, b.sign * (extract(epoch FROM r.reconciled_at) * 1000000)::bigint, 0
    FROM usage.reconciled r
    JOIN usage.every_scope s USING (scope_id)
    CROSS JOIN LATERAL (
      VALUES ((r.period_start AT TIME ZONE 'UTC')::date, 1), ((r.period_end AT TIME ZONE 'UTC')::date, -1)
    ) b (day, sign)
    WHERE s.stride = 'day'
    UNION ALL
    SELECT m.scope_id, s.kind, s.trace_tier, b.day, 0, 0, 0, b.sign * (extract(epoch FROM m.matched_at) * 1000000)::bigint
    FROM usage.matched_total m
    JOIN usage.every_scope s USING (scope_id)
    CROSS JOIN LATERAL (
      VALUES ((m.period_start AT TIME ZONE 'UTC')::date, 1), ((m.period_end AT TIME ZONE 'UTC')::date, -1)
    ) b (day, sign)
    UNION ALL
    SELECT d.scope_id, d.kind, d.trace_tier, b.day, 0, b.sign, 0, 0
    FROM usage.day_difference d
    CROSS JOIN LATERAL unnest(d.days) u (days)
    CROSS JOIN LATERAL (VALUES (lower(u.days), 1), (upper(u.days), -1)) b (day, sign)
  ) bound
  GROUP BY scope_id, kind, trace_tier, day
  WINDOW w AS (PARTITION BY scope_id, kind, trace_tier ORDER BY day)
) counted;

-- The same as arrays, of traces of all tiers, with the later of both. All that decides is in the arrays, and without nulls, so a
-- figure finds its instant with one width_bucket and without a search.
CREATE OR REPLACE VIEW usage.proved_day AS
SELECT scope_id, array_agg(day ORDER BY day) AS starts, array_agg(reconciled_at ORDER BY day) AS reconciled_at,
       array_agg(matched_at ORDER BY day) AS matched_at,
       array_agg(greatest(reconciled_at, matched_at) ORDER BY day) AS proved_at
FROM usage.proof_change
WHERE kind = 'traces' AND trace_tier = 'all'
GROUP BY scope_id;

-- The same of every kind and tier.
CREATE OR REPLACE VIEW usage.every_proved_day AS
SELECT scope_id, array_agg(day ORDER BY day) AS starts, array_agg(reconciled_at ORDER BY day) AS reconciled_at,
       array_agg(matched_at ORDER BY day) AS matched_at,
       array_agg(greatest(reconciled_at, matched_at) ORDER BY day) AS proved_at
FROM usage.proof_change
GROUP BY scope_id;

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
JOIN usage.scope s USING (scope_id)
WHERE s.stride = 'hour'
GROUP BY r.scope_id;
