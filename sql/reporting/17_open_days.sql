-- Open days, which keep a month from being closed. Building blocks; readers cannot see them.

-- The other meters whose days a source must keep: those that its configuration wants and that its server counts, from
-- their beginning on, and those for which that is not known.
CREATE OR REPLACE VIEW usage.kept_meter AS
SELECT a.source_id, a.meter, coalesce(a.starts_on, s.data_start) AS starts_on, true AS is_known
FROM usage.source_meter a
JOIN usage.source s USING (source_id)
WHERE a.state = 'counted' AND (s.wanted_meters IS NULL OR a.meter = ANY (s.wanted_meters))
UNION ALL
SELECT source_id, meter, unknown_from, false FROM usage.unknown_meter;

-- The open days of each workspace, dimension and meter, a set for each reason, in the order in which reasons apply. No
-- comparison repairs a contradiction of the platform, so that is the reason even if a day was not compared. Traces of
-- all tiers must be loaded, final and equal to their export. Other usage needs no comparison: it must be loaded and
-- final, and nothing may contradict it. Missing days and days that are not final count for kept meters alone, since no
-- sync would ever load the others. The days of a kept meter have no end, so callers ask only about days that have
-- ended. Hours never fill a day here.
CREATE OR REPLACE VIEW usage.open_days AS
SELECT w.source_id, w.entity_id AS workspace_id, m.group_by, m.meter, c.scope_id,
       CASE WHEN n.has_no_days THEN v.missing ELSE '{}' END AS not_available,
       CASE WHEN n.has_no_days OR k.is_known IS NOT FALSE THEN '{}' ELSE v.missing END AS not_known,
       CASE WHEN n.has_no_days OR k.is_known IS FALSE THEN '{}' ELSE v.missing END AS missing,
       v.days * v.failed AS failed, v.days * v.unverified AS unverified,
       v.days * v.loaded - v.final - v.failed - v.unverified AS provisional, coalesce(d.open, '{}') AS open,
       CASE WHEN m.meter = 'traces' THEN v.final - coalesce(p.compared, '{}') - coalesce(d.platform_disagrees, '{}')
            ELSE '{}' END
         AS not_reconciled,
       coalesce(d.platform_disagrees, '{}') AS platform_disagrees, coalesce(d.totals, '{}') AS total_differs,
       coalesce(d.tiers, '{}') AS tiers_differ, coalesce(d.provider, '{}') AS provider_differs
FROM usage.entity w
JOIN usage.source s USING (source_id)
CROSS JOIN usage.meter_dimension m
LEFT JOIN usage.scope c
  ON c.source_id = w.source_id AND c.kind = m.kind AND c.trace_tier = m.trace_tier AND c.group_by = m.group_by
 AND c.workspace_id = w.entity_id AND c.stride = 'day'
LEFT JOIN usage.kept_meter k ON k.source_id = w.source_id AND k.meter = m.meter
LEFT JOIN usage.day_state o ON o.scope_id = c.scope_id
LEFT JOIN usage.day_proof p ON p.scope_id = c.scope_id
CROSS JOIN LATERAL (
  SELECT EXISTS (SELECT FROM usage.source_fact f WHERE f.source_id = w.source_id AND f.fact = 'no_day') AS has_no_days
) n
CROSS JOIN LATERAL (
  SELECT l.*, l.days - l.loaded - l.failed - l.unverified AS missing
  FROM (
    SELECT CASE WHEN m.meter = 'traces' THEN datemultirange(daterange(s.data_start, NULL))
                WHEN k.meter IS NULL THEN '{}' ELSE datemultirange(daterange(k.starts_on, NULL)) END AS days,
           coalesce(o.loaded, '{}') AS loaded, coalesce(o.final, '{}') AS final, coalesce(o.failed, '{}') AS failed,
           coalesce(o.unverified, '{}') AS unverified
  ) l
) v
-- Few differences remain, and most scopes have no difference.
LEFT JOIN (
  SELECT d.scope_id, range_agg(t.days) FILTER (WHERE d.state = 'open') AS open,
         range_agg(t.days) FILTER (
           WHERE d.compared_with = 'export' AND d.state = 'platform_disagrees'
         ) AS platform_disagrees,
         range_agg(t.days) FILTER (WHERE d.compared_with IN ('tier_total', 'tier_exceeds')) AS tiers,
         range_agg(t.days) FILTER (WHERE d.compared_with IN ('stride_total', 'grouping_total')) AS totals,
         -- The billing provider's totals are of a month and workspace.
         range_agg(t.days) FILTER (WHERE d.compared_with = 'provider_total') AS provider
  FROM usage.difference d
  CROSS JOIN LATERAL (
    SELECT daterange((d.period_start AT TIME ZONE 'UTC')::date, (d.period_end AT TIME ZONE 'UTC')::date) AS days
  ) t
  WHERE d.state IN ('open', 'platform_disagrees')
  GROUP BY d.scope_id
) d ON d.scope_id = c.scope_id
WHERE w.dimension = 'workspace' AND (m.meter = 'traces' OR c.scope_id IS NOT NULL OR k.meter IS NOT NULL);
