-- What was compared with the platform's export and totals, and what differs.

-- Differences between what is stored and the platform's CSV export, one row a key. Found again, it is the same row. Deployment
-- usage differs by measure: one id may differ in several of them in one bucket, and each has a state of its own.
CREATE TABLE usage.reconciliation_difference (
  scope_id integer NOT NULL CONSTRAINT reconciliation_difference_scope_id_fkey REFERENCES usage.scope,
  bucket_start timestamptz NOT NULL,
  -- The platform's id: an id of the export need not be stored.
  external_id text NOT NULL,
  measure text NOT NULL DEFAULT 'traces',
  kind text NOT NULL,
  stored_traces bigint,
  export_traces bigint,
  -- The export's name (name_differs) or end of the bucket (bucket_end_differs).
  export_says text,
  -- Open: to be fetched again. Platform_disagrees: fetched again, and its two answers still differ.
  -- Repaired: fetched again, and they agree. Closed: gone by itself.
  -- Withdrawn: fetched again, and the second look agrees with what was stored: nothing was changed.
  -- Not_configured: its workspace is no longer read. Hours_dropped: its hour is no longer kept. Nothing can check these again.
  state text NOT NULL DEFAULT 'open',
  fetch_number bigint NOT NULL,
  -- Time of the request with that number: a later load was requested after this export.
  fetched_at timestamptz NOT NULL DEFAULT now(),
  found_at timestamptz NOT NULL DEFAULT now(),
  closed_at timestamptz,
  CONSTRAINT reconciliation_difference_pkey PRIMARY KEY (scope_id, bucket_start, external_id, measure),
  CONSTRAINT reconciliation_difference_measure_known CHECK (
    measure IN ('traces', 'nodes_executed', 'agent_runs', 'agent_uptime_seconds', 'lcu', 'lsu', 'spend_usd', 'evaluated_traces')
  ),
  CONSTRAINT reconciliation_difference_kind_known CHECK (
    kind IN ('missing_in_store', 'missing_in_export', 'traces_differ', 'name_differs', 'bucket_end_differs')
  ),
  CONSTRAINT reconciliation_difference_says_when CHECK (
    kind NOT IN ('name_differs', 'bucket_end_differs') OR export_says IS NOT NULL
  ),
  CONSTRAINT reconciliation_difference_state_known CHECK (
    state IN ('open', 'platform_disagrees', 'repaired', 'closed', 'withdrawn', 'not_configured', 'hours_dropped')
  ),
  CONSTRAINT reconciliation_difference_closed_when CHECK (
    (state IN ('repaired', 'closed', 'withdrawn', 'not_configured', 'hours_dropped')) = (closed_at IS NOT NULL)
  )
);
CREATE INDEX reconciliation_difference_unresolved ON usage.reconciliation_difference (scope_id, bucket_start)
  WHERE state IN ('open', 'platform_disagrees');
CREATE INDEX reconciliation_difference_newest
  ON usage.reconciliation_difference (found_at DESC, scope_id, bucket_start, external_id);

-- Which parts of time a whole export was last compared with, without a difference left. A restatement removes them.
CREATE TABLE usage.reconciled (
  scope_id integer NOT NULL CONSTRAINT reconciled_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- Of the export.
  fetch_number bigint NOT NULL,
  reconciled_at timestamptz NOT NULL,
  CONSTRAINT reconciled_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT reconciled_period_order CHECK (period_start < period_end),
  CONSTRAINT reconciled_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);

-- Parts of time whose control total equalled the sum of the stored days, by id. The newest total counts. A row may be what is left
-- of its total's time beside newer ones.
CREATE TABLE usage.matched_total (
  scope_id integer NOT NULL CONSTRAINT matched_total_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- The time of the whole total: a change of any day in it ends the proof of all of them.
  total_start timestamptz NOT NULL,
  total_end timestamptz NOT NULL,
  -- Of the request for the total.
  fetch_number bigint NOT NULL,
  matched_at timestamptz NOT NULL,
  CONSTRAINT matched_total_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT matched_total_period_order CHECK (period_start < period_end),
  CONSTRAINT matched_total_within CHECK (period_start >= total_start AND period_end <= total_end),
  CONSTRAINT matched_total_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);

-- A restatement ends the proof of what it changes: by the export, of its bucket and of the hours of its day; by totals, of all days
-- of the total. So a row of usage.reconciled or usage.matched_total is true as it stands, and no reader has to look for
-- restatements. The load holds the lock of the scope, as every comparison does. What was compared before is ended whatever its
-- number, for an answer may be requested before the export and stored after it.
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

CREATE TRIGGER restatement_ends_proof AFTER INSERT ON usage.restatement
  REFERENCING NEW TABLE AS new_restatements FOR EACH STATEMENT
  EXECUTE FUNCTION usage.end_proof();

-- Totals that should be equal and are not. One row a key; found again, it is the same row.
CREATE TABLE usage.control_difference (
  -- Of the days.
  scope_id integer NOT NULL CONSTRAINT control_difference_scope_id_fkey REFERENCES usage.scope,
  -- Stride_total: days, and a coarser window of theirs. Grouping_total: a dimension's day, and the workspace's.
  -- Provider_total: days, and the billing provider's total. Tier_total: the short-lived traces are not what all less the long-lived
  -- leave. Tier_exceeds: a tier has more traces than all tiers.
  kind text NOT NULL,
  period_start timestamptz NOT NULL,
  -- A day where the mismatching one was found, else the part of time whose total differs.
  period_end timestamptz NOT NULL,
  -- The platform's id: one that the total has and the days have not need not be stored. Empty for grouping totals.
  external_id text NOT NULL,
  measure text NOT NULL DEFAULT 'traces',
  stored_traces bigint,
  control_traces bigint,
  -- 'unattributed': asked twice, the workspace has more than the dimension names. Shown, and no fault of anybody's.
  state text NOT NULL,
  fetch_number bigint NOT NULL,
  found_at timestamptz NOT NULL DEFAULT now(),
  closed_at timestamptz,
  CONSTRAINT control_difference_pkey PRIMARY KEY (scope_id, kind, period_start, period_end, external_id, measure),
  CONSTRAINT control_difference_kind_known CHECK (
    kind IN ('stride_total', 'grouping_total', 'provider_total', 'tier_total', 'tier_exceeds')
  ),
  CONSTRAINT control_difference_period_order CHECK (period_start < period_end),
  CONSTRAINT control_difference_measure_known CHECK (
    measure IN ('traces', 'nodes_executed', 'agent_runs', 'agent_uptime_seconds', 'lcu', 'lsu', 'spend_usd', 'evaluated_traces')
  ),
  CONSTRAINT control_difference_state_known CHECK (
    state IN ('platform_disagrees', 'unattributed', 'closed', 'not_configured')
  ),
  CONSTRAINT control_difference_closed_when CHECK ((state IN ('closed', 'not_configured')) = (closed_at IS NOT NULL))
);
CREATE INDEX control_difference_newest
  ON usage.control_difference (found_at DESC, scope_id, kind, period_start, period_end, external_id)
  WHERE state <> 'unattributed';

-- When totals were checked. What a check proved and found is kept in usage.day_proof, in usage.control_difference and with its run.
CREATE TABLE usage.control_check (
  source_id smallint NOT NULL CONSTRAINT control_check_source_id_fkey REFERENCES usage.source,
  checked_at timestamptz NOT NULL DEFAULT now(),
  -- Windows that could not be asked for.
  failures integer NOT NULL,
  CONSTRAINT control_check_pkey PRIMARY KEY (source_id, checked_at)
);

-- When the days of each day scope were proved: compared with a whole export, and part of a total that the stored days equal;
-- -infinity where that does not prove them. From each of `starts` to the next one, all days are alike. No day with a difference
-- left is proved, from the export or from a total. What a dimension does not attribute is no difference, and the billing
-- provider's total of a month says nothing about one of its days.
--
-- Only final time is compared and totalled, and what takes finality away takes these rows away too. A row exists once something
-- was compared. Triggers keep it, as they keep usage.day_state.
CREATE TABLE usage.day_proof (
  scope_id integer CONSTRAINT day_proof_pkey PRIMARY KEY CONSTRAINT day_proof_scope_id_fkey REFERENCES usage.scope ON DELETE CASCADE,
  starts date[] NOT NULL,
  reconciled_at timestamptz[] NOT NULL,
  matched_at timestamptz[] NOT NULL,
  -- The later of both.
  proved_at timestamptz[] NOT NULL,
  -- Compared with a whole export, and part of a total that was compared, whatever came of it.
  compared datemultirange NOT NULL,
  totalled datemultirange NOT NULL,
  -- Days with a difference left: these are not proved.
  differing datemultirange NOT NULL,
  CONSTRAINT day_proof_alike CHECK (
    cardinality(starts) = cardinality(reconciled_at) AND cardinality(starts) = cardinality(matched_at)
    AND cardinality(starts) = cardinality(proved_at)
  )
);

CREATE FUNCTION usage.keep_proof(scopes integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM FROM usage.scope WHERE scope_id = ANY (scopes) ORDER BY scope_id FOR NO KEY UPDATE;

  -- Parts of one kind of proof do not overlap. So their instants, added where a part begins and subtracted where it ends, come
  -- to the one that holds.
  WITH proof AS MATERIALIZED (
    SELECT scope_id, array_agg(day ORDER BY day) AS starts, array_agg(reconciled_at ORDER BY day) AS reconciled_at,
           array_agg(matched_at ORDER BY day) AS matched_at,
           array_agg(greatest(reconciled_at, matched_at) ORDER BY day) AS proved_at,
           coalesce(range_agg(days) FILTER (WHERE exported > 0), '{}') AS compared,
           coalesce(range_agg(days) FILTER (WHERE totalled > 0), '{}') AS totalled,
           coalesce(range_agg(days) FILTER (WHERE is_differing), '{}') AS differing
    FROM (
      SELECT scope_id, day, daterange(day, lead(day) OVER (PARTITION BY scope_id ORDER BY day)) AS days, is_differing, exported, totalled,
             CASE WHEN NOT is_differing AND exported > 0
                  THEN timestamptz 'epoch' + exported * interval '1 microsecond' ELSE '-infinity' END AS reconciled_at,
             CASE WHEN NOT is_differing AND totalled > 0
                  THEN timestamptz 'epoch' + totalled * interval '1 microsecond' ELSE '-infinity' END AS matched_at
      FROM (
        SELECT scope_id, day, sum(sum(differing)) OVER w > 0 AS is_differing,
               (sum(sum(exported)) OVER w)::float8 AS exported, (sum(sum(totalled)) OVER w)::float8 AS totalled
        FROM (
          SELECT p.scope_id, b.day, b.sign * p.differing AS differing, b.sign * p.exported AS exported, b.sign * p.totalled AS totalled
          FROM (
            SELECT r.scope_id, r.period_start, r.period_end, 0 AS differing,
                   (extract(epoch FROM r.reconciled_at) * 1000000)::bigint AS exported, 0 AS totalled
            FROM usage.reconciled r
            WHERE r.scope_id = ANY (scopes)
            UNION ALL
            SELECT m.scope_id, m.period_start, m.period_end, 0, 0, (extract(epoch FROM m.matched_at) * 1000000)::bigint
            FROM usage.matched_total m
            WHERE m.scope_id = ANY (scopes)
            UNION ALL
            SELECT d.scope_id, d.bucket_start, d.bucket_start + interval '24 hours', 1, 0, 0
            FROM usage.reconciliation_difference d
            WHERE d.scope_id = ANY (scopes) AND d.state IN ('open', 'platform_disagrees')
            UNION ALL
            SELECT d.scope_id, d.period_start, d.period_end, 1, 0, 0
            FROM usage.control_difference d
            WHERE d.scope_id = ANY (scopes) AND d.state = 'platform_disagrees' AND d.kind <> 'provider_total'
          ) p
          JOIN usage.scope s ON s.scope_id = p.scope_id AND s.stride = 'day'
          CROSS JOIN LATERAL (
            VALUES ((p.period_start AT TIME ZONE 'UTC')::date, 1), ((p.period_end AT TIME ZONE 'UTC')::date, -1)
          ) b (day, sign)
        ) bound
        GROUP BY scope_id, day
        WINDOW w AS (PARTITION BY scope_id ORDER BY day)
      ) counted
    ) proved
    GROUP BY scope_id
  ), kept AS (
    INSERT INTO usage.day_proof AS kept (scope_id, starts, reconciled_at, matched_at, proved_at, compared, totalled, differing)
    SELECT scope_id, starts, reconciled_at, matched_at, proved_at, compared, totalled, differing FROM proof
    ON CONFLICT (scope_id) DO UPDATE
    SET starts = excluded.starts, reconciled_at = excluded.reconciled_at, matched_at = excluded.matched_at,
        proved_at = excluded.proved_at, compared = excluded.compared, totalled = excluded.totalled, differing = excluded.differing
  )
  DELETE FROM usage.day_proof p WHERE p.scope_id = ANY (scopes) AND NOT EXISTS (SELECT FROM proof x WHERE x.scope_id = p.scope_id);
END
$$;
REVOKE ALL ON FUNCTION usage.keep_proof (integer[]) FROM public;

CREATE FUNCTION usage.proof_follows() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  changed integer[];
BEGIN
  IF TG_OP = 'DELETE' THEN
    changed := (SELECT array_agg(DISTINCT scope_id) FROM old_rows);
  ELSE
    changed := (SELECT array_agg(DISTINCT scope_id) FROM new_rows);
  END IF;
  IF changed IS NOT NULL THEN
    PERFORM usage.keep_proof(changed);
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.proof_follows () FROM public;

CREATE TRIGGER reconciled_inserted AFTER INSERT ON usage.reconciled
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER reconciled_updated AFTER UPDATE ON usage.reconciled
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER reconciled_deleted AFTER DELETE ON usage.reconciled
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER matched_total_inserted AFTER INSERT ON usage.matched_total
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER matched_total_updated AFTER UPDATE ON usage.matched_total
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER matched_total_deleted AFTER DELETE ON usage.matched_total
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER reconciliation_difference_inserted AFTER INSERT ON usage.reconciliation_difference
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER reconciliation_difference_updated AFTER UPDATE ON usage.reconciliation_difference
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER reconciliation_difference_deleted AFTER DELETE ON usage.reconciliation_difference
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER control_difference_inserted AFTER INSERT ON usage.control_difference
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER control_difference_updated AFTER UPDATE ON usage.control_difference
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
CREATE TRIGGER control_difference_deleted AFTER DELETE ON usage.control_difference
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.proof_follows();
