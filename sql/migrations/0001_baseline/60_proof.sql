-- Comparisons with the platform's export and totals, and the differences.

-- Stored figures that differ from another figure of the platform. One row a key: a difference that is found again is
-- the same row. Usage with several measures may differ in each of them.
CREATE TABLE usage.difference (
  scope_id integer NOT NULL CONSTRAINT difference_scope_id_fkey REFERENCES usage.scope,
  -- Export: a record, compared with the platform's CSV export. The others are totals. Stride_total: days, compared with
  -- a coarser window. Grouping_total: a dimension's day, compared with the workspace's. Provider_total: days, compared
  -- with the billing provider's total. Tier_total: the short-lived traces are not all traces less the long-lived ones.
  -- Tier_exceeds: a tier has more traces than all tiers.
  compared_with text NOT NULL,
  -- For an export, the bucket. For a total, the day on which the difference was found, or else the time of the total.
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- The platform's id: an id that only the other figure has need not be stored. Empty for grouping totals.
  external_id text NOT NULL,
  measure text NOT NULL DEFAULT 'traces',
  -- For an export, the kind of difference. For a total, the same as compared_with.
  kind text NOT NULL,
  stored_traces bigint,
  other_traces bigint,
  -- The export's name (name_differs) or end of the bucket (bucket_end_differs).
  export_says text,
  -- Open: to be fetched again. Platform_disagrees: fetched again, and the platform's two responses still differ.
  -- Unattributed: requested twice, the workspace has more than the ids of the dimension; shown, but not a failure.
  -- Repaired: fetched again, and they agree. Closed: a later check did not find it. Withdrawn: fetched again, the
  -- second response agrees with the stored count, and nothing was changed. Not_configured: its workspace is no longer
  -- read. Hours_dropped: its hour is no longer kept. Nothing can check these again.
  state text NOT NULL DEFAULT 'open',
  fetch_number bigint NOT NULL,
  -- Time of the request with that number: a later load was requested after this export.
  fetched_at timestamptz NOT NULL DEFAULT now(),
  found_at timestamptz NOT NULL DEFAULT now(),
  closed_at timestamptz,
  CONSTRAINT difference_pkey PRIMARY KEY (scope_id, compared_with, period_start, period_end, external_id, measure),
  CONSTRAINT difference_compared_with_known CHECK (
    compared_with IN ('export', 'stride_total', 'grouping_total', 'provider_total', 'tier_total', 'tier_exceeds')
  ),
  CONSTRAINT difference_period_order CHECK (period_start < period_end),
  CONSTRAINT difference_measure_known CHECK (
    measure IN ('traces', 'nodes_executed', 'agent_runs', 'agent_uptime_seconds', 'lcu', 'lsu',
      'compute_standard_units', 'storage_standard_units', 'spend_usd', 'evaluated_traces')
  ),
  CONSTRAINT difference_kind_known CHECK (
    CASE compared_with
      WHEN 'export' THEN kind IN ('missing_in_store', 'missing_in_export', 'traces_differ', 'name_differs',
        'bucket_end_differs')
      ELSE kind = compared_with
    END
  ),
  CONSTRAINT difference_says_when CHECK (kind NOT IN ('name_differs', 'bucket_end_differs') OR export_says IS NOT NULL),
  CONSTRAINT difference_state_known CHECK (
    state IN (
      'open', 'platform_disagrees', 'unattributed', 'repaired', 'closed', 'withdrawn', 'not_configured', 'hours_dropped'
    )
  ),
  -- A total is requested twice before it is kept as a difference. Only a dimension attributes usage.
  CONSTRAINT difference_state_of_totals CHECK (
    CASE compared_with
      WHEN 'export' THEN state <> 'unattributed'
      WHEN 'grouping_total' THEN state IN ('platform_disagrees', 'unattributed', 'closed', 'not_configured')
      ELSE state IN ('platform_disagrees', 'closed', 'not_configured')
    END
  ),
  CONSTRAINT difference_closed_when CHECK (
    (state IN ('repaired', 'closed', 'withdrawn', 'not_configured', 'hours_dropped')) = (closed_at IS NOT NULL)
  )
);
CREATE INDEX difference_unresolved ON usage.difference (scope_id, period_start)
  WHERE state IN ('open', 'platform_disagrees');
CREATE INDEX difference_newest
  ON usage.difference (found_at DESC, scope_id, compared_with, period_start, period_end, external_id)
    WHERE state <> 'unattributed';

-- Parts of time that a complete export was last compared with, without a remaining difference. A restatement ends it.
CREATE TABLE usage.reconciled (
  scope_id integer NOT NULL CONSTRAINT reconciled_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- The fetch number of the export.
  fetch_number bigint NOT NULL,
  reconciled_at timestamptz NOT NULL,
  CONSTRAINT reconciled_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT reconciled_period_order CHECK (period_start < period_end),
  CONSTRAINT reconciled_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);

-- Parts of time whose control total equalled the sum of the stored days, by id. The newest total counts. A row may be
-- the part of its total's time that no newer total covers.
CREATE TABLE usage.matched_total (
  scope_id integer NOT NULL CONSTRAINT matched_total_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- The time of the whole total: a change of any day in it ends the proof of all of them.
  total_start timestamptz NOT NULL,
  total_end timestamptz NOT NULL,
  -- The fetch number of the request for the total.
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

-- When totals were checked. The results of a check are in usage.day_proof, in usage.difference and with its run.
CREATE TABLE usage.control_check (
  source_id smallint NOT NULL CONSTRAINT control_check_source_id_fkey REFERENCES usage.source,
  checked_at timestamptz NOT NULL DEFAULT now(),
  -- Windows that could not be requested.
  failures integer NOT NULL,
  CONSTRAINT control_check_pkey PRIMARY KEY (source_id, checked_at)
);

-- When the days of each day scope were proved: compared with a complete export, and part of a total that the stored
-- days equal; -infinity if that does not prove them. From each of `starts` to the next one, all days are alike. No day
-- with a remaining difference from the export or a total is proved. Usage that a dimension does not attribute is no
-- difference, and the billing provider's total of a month proves none of its days.
--
-- Only final time is compared and totalled, and a change that ends finality also removes these rows. A row exists once
-- something was compared. Modules that write proof or differences keep it (usage.keep_proof), in the same transaction.
CREATE TABLE usage.day_proof (
  scope_id integer CONSTRAINT day_proof_pkey PRIMARY KEY CONSTRAINT day_proof_scope_id_fkey
    REFERENCES usage.scope ON DELETE CASCADE,
  starts date[] NOT NULL,
  reconciled_at timestamptz[] NOT NULL,
  matched_at timestamptz[] NOT NULL,
  -- The later of both.
  proved_at timestamptz[] NOT NULL,
  -- Compared with a complete export, and part of a total that was compared, whatever the result.
  compared datemultirange NOT NULL,
  totalled datemultirange NOT NULL,
  -- Days with a remaining difference: these are not proved.
  differing datemultirange NOT NULL,
  CONSTRAINT day_proof_alike CHECK (
    cardinality(starts) = cardinality(reconciled_at) AND cardinality(starts) = cardinality(matched_at)
    AND cardinality(starts) = cardinality(proved_at)
  )
);

-- The rows that usage.day_proof must hold for these scopes. Parts of one kind of proof do not overlap. So a running sum
-- of their instants, added where a part begins and subtracted where it ends, gives the instant that is valid.
CREATE FUNCTION usage.proof_of(scopes integer[]) RETURNS SETOF usage.day_proof
-- Without SET, so that it is planned as a part of the statement that calls it.
LANGUAGE sql STABLE
AS $$
  SELECT scope_id, array_agg(day ORDER BY day) AS starts, array_agg(reconciled_at ORDER BY day) AS reconciled_at,
         array_agg(matched_at ORDER BY day) AS matched_at,
         array_agg(greatest(reconciled_at, matched_at) ORDER BY day) AS proved_at,
         coalesce(range_agg(days) FILTER (WHERE exported > 0), '{}') AS compared,
         coalesce(range_agg(days) FILTER (WHERE totalled > 0), '{}') AS totalled,
         coalesce(range_agg(days) FILTER (WHERE is_differing), '{}') AS differing
  FROM (
    SELECT scope_id, day, daterange(day, lead(day) OVER (PARTITION BY scope_id ORDER BY day)) AS days, is_differing,
      exported, totalled,
           CASE WHEN NOT is_differing AND exported > 0
                THEN timestamptz 'epoch' + exported * interval '1 microsecond' ELSE '-infinity' END AS reconciled_at,
           CASE WHEN NOT is_differing AND totalled > 0
                THEN timestamptz 'epoch' + totalled * interval '1 microsecond' ELSE '-infinity' END AS matched_at
    FROM (
      SELECT scope_id, day, sum(sum(differing)) OVER w > 0 AS is_differing,
             (sum(sum(exported)) OVER w)::float8 AS exported, (sum(sum(totalled)) OVER w)::float8 AS totalled
      FROM (
        SELECT p.scope_id, b.day, b.sign * p.differing AS differing, b.sign * p.exported AS exported,
          b.sign * p.totalled AS totalled
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
          SELECT d.scope_id, d.period_start, d.period_end, 1, 0, 0
          FROM usage.difference d
          WHERE d.scope_id = ANY (scopes) AND d.state IN ('open', 'platform_disagrees')
            AND d.compared_with <> 'provider_total'
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
$$;
REVOKE ALL ON FUNCTION usage.proof_of (integer[]) FROM public;

-- Computes and stores the proof of scopes.
CREATE FUNCTION usage.keep_proof(scopes integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM FROM usage.scope WHERE scope_id = ANY (scopes) ORDER BY scope_id FOR NO KEY UPDATE;

  WITH proof AS MATERIALIZED (
    SELECT * FROM usage.proof_of(scopes)
  ), kept AS (
    INSERT INTO usage.day_proof AS kept (scope_id, starts, reconciled_at, matched_at, proved_at, compared, totalled,
      differing)
    SELECT scope_id, starts, reconciled_at, matched_at, proved_at, compared, totalled, differing FROM proof
    ON CONFLICT (scope_id) DO UPDATE
    SET starts = excluded.starts, reconciled_at = excluded.reconciled_at, matched_at = excluded.matched_at,
        proved_at = excluded.proved_at, compared = excluded.compared, totalled = excluded.totalled,
        differing = excluded.differing
  )
  DELETE FROM usage.day_proof p WHERE p.scope_id = ANY (scopes)
    AND NOT EXISTS (SELECT FROM proof x WHERE x.scope_id = p.scope_id);
END
$$;
REVOKE ALL ON FUNCTION usage.keep_proof (integer[]) FROM public;
