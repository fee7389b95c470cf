-- What keeps a month open of other usage than traces of all tiers. Building blocks; readers cannot see them.

-- The other meters of which a source keeps all days: those that its configuration wants and that its server counts, from their
-- beginning on.
CREATE OR REPLACE VIEW usage.kept_meter AS
SELECT a.source_id, a.meter, coalesce(a.starts_on, s.data_start) AS starts_on
FROM usage.source_meter a
JOIN usage.source s USING (source_id)
WHERE a.is_available AND (s.wanted_meters IS NULL OR a.meter = ANY (s.wanted_meters));

-- The days of each workspace, dimension and other meter that are not as a close needs them, by reason. Gaps and days that are not
-- final count of kept meters alone: no sync would ever load others. A difference counts of whatever was loaded. They have no end
-- where a meter is kept: who reads them asks about days that have ended.
CREATE OR REPLACE VIEW usage.other_open_days AS
SELECT w.source_id, w.entity_id AS workspace_id, g.group_by, m.meter, c.scope_id,
       n.days - v.loaded - v.failed - v.unverified AS missing, n.days * v.failed AS failed, n.days * v.unverified AS unverified,
       n.days * v.loaded - v.final - v.failed - v.unverified AS provisional,
       d.open, d.contradicted, t.tiers, t.totals
FROM usage.entity w
CROSS JOIN (
  -- each dimension
  SELECT '{dimension}'::text AS group_by UNION ALL
  -- end
  SELECT NULL WHERE false
) g
CROSS JOIN (
  VALUES ('longlived', 'traces', 'longlived'), ('shortlived', 'traces', 'shortlived'),
         ('deployments', 'langsmith_deployments', 'all')
) m (meter, kind, trace_tier)
LEFT JOIN usage.scope c
  ON c.source_id = w.source_id AND c.kind = m.kind AND c.trace_tier = m.trace_tier AND c.group_by = g.group_by
 AND c.workspace_id = w.entity_id AND c.stride = 'day'
LEFT JOIN usage.kept_meter k ON k.source_id = w.source_id AND k.meter = m.meter
CROSS JOIN LATERAL (
  SELECT CASE WHEN k.meter IS NULL THEN '{}' ELSE datemultirange(daterange(k.starts_on, NULL)) END AS days
) n
LEFT JOIN usage.day_state s ON s.scope_id = c.scope_id
CROSS JOIN LATERAL (
  SELECT coalesce(s.loaded, '{}') AS loaded, coalesce(s.final, '{}') AS final, coalesce(s.failed, '{}') AS failed,
         coalesce(s.unverified, '{}') AS unverified
) v
CROSS JOIN LATERAL (
  SELECT coalesce(range_agg(t.days) FILTER (WHERE d.state = 'open'), '{}') AS open,
         coalesce(range_agg(t.days) FILTER (WHERE d.state = 'platform_disagrees'), '{}') AS contradicted
  FROM usage.reconciliation_difference d
  CROSS JOIN LATERAL (
    SELECT daterange((d.bucket_start AT TIME ZONE 'UTC')::date, (d.bucket_start AT TIME ZONE 'UTC')::date + 1) AS days
  ) t
  WHERE d.scope_id = c.scope_id AND d.state IN ('open', 'platform_disagrees')
) d
CROSS JOIN LATERAL (
  -- The billing provider's totals of a tier keep the days of traces open.
  SELECT coalesce(range_agg(t.days) FILTER (WHERE d.kind IN ('tier_total', 'tier_exceeds')), '{}') AS tiers,
         coalesce(range_agg(t.days) FILTER (WHERE d.kind NOT IN ('tier_total', 'tier_exceeds')), '{}') AS totals
  FROM usage.control_difference d
  CROSS JOIN LATERAL (
    SELECT daterange((d.period_start AT TIME ZONE 'UTC')::date, (d.period_end AT TIME ZONE 'UTC')::date) AS days
  ) t
  WHERE d.scope_id = c.scope_id AND d.state = 'platform_disagrees' AND d.kind <> 'provider_total'
) t
WHERE w.dimension = 'workspace' AND (c.scope_id IS NOT NULL OR k.meter IS NOT NULL);
