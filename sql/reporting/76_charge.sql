-- What usage costs: the rules of usage.charge, and how it is kept. Readers cannot see them. A column `traces` of a charge holds the
-- quantity that its SKU counts: traces, those of a retention tier, or a measure of deployment or sandbox usage.

-- What a measure is counted with: such as all measures of deployments in one answer. Of traces each meter is a measure. The units of
-- deployments are charged, and not counted here.
CREATE OR REPLACE FUNCTION usage.meter_of_measure(measure text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE measure
  WHEN 'deployment_lcu' THEN 'deployments'
  WHEN 'deployment_lsu' THEN 'deployments'
  -- each measure
  WHEN '{measure}' THEN '{meter}'
  -- end
  ELSE measure END;

-- From this day on the platform charges deployments by compute and storage units, which its API does not report (docs/platform.md). What
-- their runs and uptime cost from then on is an estimate that no invoice has.
CREATE OR REPLACE FUNCTION usage.deployment_units_since() RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN date '2026-10-01';

CREATE OR REPLACE FUNCTION usage.is_on_no_invoice(measure text, usage_date date) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN usage.meter_of_measure(measure) = 'deployments' AND usage_date >= usage.deployment_units_since();

-- Meters that are priced, also those that only closed months have. Others are not read. Of closed charges, which may be millions, each
-- measure is one look-up in their index.
CREATE OR REPLACE VIEW usage.priced_meter AS
WITH RECURSIVE closed (measure) AS (
  SELECT min(measure) FROM usage.closed_charge
  UNION ALL
  SELECT (SELECT min(c.measure) FROM usage.closed_charge c WHERE c.measure > closed.measure) FROM closed WHERE closed.measure IS NOT NULL
)
SELECT usage.meter_of_measure(measure) AS meter FROM usage.sku
UNION
SELECT usage.meter_of_measure(measure) FROM closed WHERE measure IS NOT NULL;

-- Days with usage of each workspace. A sum, so that an answer that spells a workspace in two ways makes one day of it.
CREATE OR REPLACE VIEW usage.workspace_usage AS
SELECT x.slug, u.usage_date, x.workspace_id, x.workspace_name, u.traces,
       usage.day_status(u.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status
FROM usage.trace_cell x
CROSS JOIN LATERAL (
  SELECT r.usage_date, sum(r.traces)::bigint AS traces
  FROM (
    SELECT r.bucket_start AS usage_date, r.traces
    FROM usage.series s
    JOIN usage.dated_record r USING (series_id)
    WHERE s.scope_id = x.day_scope_id
    UNION ALL
    SELECT day, usage.traces_of_hours(ARRAY(SELECT s.series_id FROM usage.series s WHERE s.scope_id = x.hour_scope_id), day)
    FROM usage.days_of(x.days_of_hours) day
  ) r
  WHERE r.traces > 0
  GROUP BY r.usage_date
) u
WHERE x.group_by = 'workspace';

-- Expected days of what else is priced. Nothing is expected where the server does not count it. What is not priced is not read.
CREATE OR REPLACE VIEW usage.measured_day AS
SELECT d.trace_tier AS meter, d.trace_tier AS measure, d.source_id AS slug, d.usage_date, d.workspace_id, d.workspace_name, d.traces, d.is_final,
       d.coverage_status
FROM reporting_detail.fct_usage_workspace_by_tier_daily d
WHERE d.coverage_status <> 'not_available' AND d.trace_tier = ANY (ARRAY(SELECT p.meter FROM usage.priced_meter p))
UNION ALL
SELECT d.meter, d.measure, d.source_id, d.usage_date, d.workspace_id, d.workspace_name, trim_scale(d.quantity), d.is_final, d.coverage_status
FROM reporting_detail.fct_other_usage_daily d
WHERE d.group_by = 'workspace' AND d.coverage_status <> 'not_available' AND d.meter IN ('deployments', 'sandboxes')
  AND d.meter = ANY (ARRAY(SELECT p.meter FROM usage.priced_meter p));

-- Months whose costs were closed, by workspace. One that the close left out has none of it.
CREATE OR REPLACE VIEW usage.charged_month AS
SELECT m.close_id, m.source_id, m.month_start, w.entity_id AS workspace_entity_id,
       daterange(m.month_start, (m.month_start + interval '1 month')::date) AS days
FROM usage.month_close m
JOIN usage.entity e USING (source_id)
JOIN usage.workspace w USING (entity_id)
WHERE m.costs_closed_at IS NOT NULL AND NOT EXISTS (
  SELECT FROM usage.closed_workspace x WHERE x.close_id = m.close_id AND x.workspace_id = w.entity_id AND x.is_left_out
);

-- The charges of a month of a source, of some workspaces and meters or, with null, of all: what usage.charge has to hold. Days with
-- usage, by SKU and volume tier. A tier is filled in the order of days, and within a day of the workspaces' ids.
CREATE OR REPLACE FUNCTION usage.charges_of(source smallint, month date, workspaces integer[], meters text[]) RETURNS SETOF usage.charge
-- Without SET: so it is planned as a part of the statement that calls it.
LANGUAGE sql STABLE
AS $$
  WITH price AS MATERIALIZED (
    SELECT * FROM usage.measured_price
    WHERE source_id = source AND (workspaces IS NULL OR workspace_entity_id = ANY (workspaces))
      AND (meters IS NULL OR usage.meter_of_measure(measure) = ANY (meters))
  ),
  named AS MATERIALIZED (
    SELECT usage.shown_id(external_id) AS id FROM usage.entity WHERE entity_id = ANY (workspaces)
  ),
  -- Each expected day, loaded or not.
  used AS MATERIALIZED (
    SELECT 'traces'::text AS measure, usage_date, workspace_id, traces, is_final, coverage_status
    FROM reporting.fct_usage_workspace_daily
    WHERE source_id = (SELECT slug FROM usage.source s WHERE s.source_id = source)
      AND usage_date >= month AND usage_date < (month + interval '1 month')::date
      AND (workspaces IS NULL OR workspace_id = ANY (ARRAY(SELECT id FROM named)))
      AND (meters IS NULL OR 'traces' = ANY (meters))
    UNION ALL
    SELECT measure, usage_date, workspace_id, traces, is_final, coverage_status
    FROM usage.measured_day
    WHERE slug = (SELECT s.slug FROM usage.source s WHERE s.source_id = source)
      AND usage_date >= month AND usage_date < (month + interval '1 month')::date
      AND (workspaces IS NULL OR workspace_id = ANY (ARRAY(SELECT id FROM named)))
      AND (meters IS NULL OR meter = ANY (meters))
  ),
  priced AS (
    SELECT p.*, u.usage_date, u.traces, u.is_final, u.coverage_status
    FROM used u
    JOIN price p ON p.workspace_id = u.workspace_id AND p.measure = u.measure AND p.days @> u.usage_date
  ),
  estimate AS (
    SELECT usage_date, workspace_entity_id AS workspace_id, sku, measure, false AS is_closed, 0 AS tier, price_id,
           0::bigint AS from_quantity, unit_price, currency, traces, is_final, coverage_status
    FROM priced
    WHERE NOT is_tiered AND traces > 0
    UNION ALL
    SELECT d.usage_date, d.workspace_entity_id, d.sku, d.measure, false, t.tier, d.price_id, t.from_quantity, t.unit_price, d.currency,
           q.traces, d.is_certain,
           -- The day may be final while one before it is not, which shifts the tiers.
           CASE WHEN d.is_final AND NOT d.is_certain THEN 'provisional' ELSE d.coverage_status END
    FROM (
      SELECT d.*,
             CASE d.counted_over WHEN 'workspace' THEN sum(d.traces) OVER one ELSE sum(d.traces) OVER whole END AS counted,
             CASE d.counted_over WHEN 'workspace' THEN bool_and(d.is_final) OVER one ELSE bool_and(d.is_final) OVER whole END
               AS is_certain
      FROM priced d
      -- A workspace that a close of the month is not about fills no tier there.
      JOIN usage.required_workspace r ON r.workspace_id = d.workspace_entity_id AND coalesce(r.days @> d.usage_date, false)
      WHERE d.is_tiered
      WINDOW whole AS (
               PARTITION BY d.sku_id, d.price_source_id, d.price_workspace_id ORDER BY d.usage_date, d.workspace_id COLLATE "C"
             ),
             one AS (PARTITION BY d.sku_id, d.price_source_id, d.price_workspace_id, d.workspace_id ORDER BY d.usage_date)
    ) d
    JOIN usage.volume_tier t USING (price_id)
    CROSS JOIN LATERAL (
      SELECT least(d.counted, t.to_quantity) - greatest(d.counted - d.traces, t.from_quantity) AS traces
    ) q
    WHERE d.traces > 0 AND q.traces > 0
  ),
  book AS (
    SELECT e.usage_date, e.workspace_id, e.sku, e.measure, e.is_closed, e.tier,
           NOT EXISTS (
             SELECT FROM usage.charged_month x
             WHERE x.source_id = source AND x.month_start = month AND x.workspace_entity_id = e.workspace_id
           ) AS is_booked,
           e.price_id, e.from_quantity, e.unit_price, e.currency, e.traces,
           -- Exact: the factors have 18 and 19 digits, ten of them after the point. Of compute and storage units, which have six digits after
           -- the point themselves, a price has four at most (src/domain/bill/price.ts).
           (e.unit_price * e.traces)::numeric(38, 10) AS cost, e.is_final, e.coverage_status, e.traces AS traces_now
    FROM estimate e
    UNION ALL
    SELECT c.usage_date, c.workspace_id, c.sku, c.measure, true, c.tier, true, c.price_id, c.from_quantity, c.unit_price, c.currency,
           c.traces, c.cost, true, 'ok',
           coalesce((
             SELECT sum(u.traces) FROM used u
             WHERE u.usage_date = c.usage_date AND u.measure = c.measure
               AND u.workspace_id = (SELECT usage.shown_id(e.external_id) FROM usage.entity e WHERE e.entity_id = c.workspace_id)
           ), 0)
    FROM usage.closed_charge c
    JOIN usage.month_close m USING (close_id)
    WHERE m.source_id = source AND m.month_start = month AND (workspaces IS NULL OR c.workspace_id = ANY (workspaces))
      AND (meters IS NULL OR usage.meter_of_measure(c.measure) = ANY (meters))
  )
  SELECT source, month, usage_date, workspace_id, sku, measure, is_closed, tier, is_booked, price_id, from_quantity, unit_price,
         currency, traces, cost, is_final, coverage_status, CASE WHEN place = 1 THEN day_traces END,
         CASE WHEN place = 1 THEN day_cost END, CASE WHEN tiers = 1 THEN unit_price END,
         CASE WHEN place = 1 THEN CASE WHEN is_closed THEN traces_now ELSE day_traces END END
  FROM (
    SELECT b.*, row_number() OVER in_order AS place, count(*) OVER day AS tiers, sum(traces) OVER day AS day_traces,
           (sum(cost) OVER day)::numeric(38, 10) AS day_cost
    FROM book b
    WINDOW day AS (PARTITION BY usage_date, workspace_id, sku, is_closed), in_order AS (day ORDER BY tier)
  ) b
$$;

-- Months of a source that may have usage, also before its data start, and those that are closed.
CREATE OR REPLACE VIEW usage.usage_month AS
SELECT s.source_id, m.month_start
FROM usage.source s
CROSS JOIN LATERAL usage.months_of(least(s.data_start, (
  SELECT min(lower(d.loaded)) FROM usage.scope c JOIN usage.day_state d USING (scope_id)
  WHERE c.source_id = s.source_id AND c.group_by = 'workspace'
)), (now() AT TIME ZONE 'UTC')::date) m (month_start)
UNION
SELECT source_id, month_start FROM usage.month_close;

-- Months of a source that may have charges.
CREATE OR REPLACE FUNCTION usage.charge_months(source smallint) RETURNS SETOF date
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT month_start FROM usage.usage_month WHERE source_id = source
  UNION
  SELECT month_start FROM usage.charge WHERE source_id = source
$$;

-- Recomputes charges and stores what differs. Two transactions that change one month wait here for each other, until the first has
-- committed: the second then sees what it changed, and takes both.
CREATE OR REPLACE FUNCTION usage.keep_charges(
  source smallint, month date, workspaces integer[], meters text[], days_of_hours datemultirange
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
-- Planning anew for each call takes longer than the call.
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  which integer[];
  -- Short-lived traces are all less the long-lived ones.
  of text[] := CASE WHEN meters && ARRAY['traces', 'longlived'] THEN meters || ARRAY['shortlived'] ELSE meters END;
  changed bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(
    hashtext('usage.charge'), source * 100000 + (extract(year FROM month) * 12 + extract(month FROM month))::integer
  );
  -- Decided behind the lock: what others change meanwhile is seen here, or they see this. Of a workspace that is asked about no more,
  -- whatever is loaded makes days of every meter expected. Else hours make up a day that has no figure of its own, and no other.
  IF EXISTS (
    SELECT FROM usage.workspace w
    JOIN usage.entity e USING (entity_id)
    JOIN usage.source s USING (source_id)
    WHERE w.entity_id = ANY (workspaces)
      AND (w.unlisted_since IS NOT NULL OR NOT usage.is_configured(s.workspace_ids, e.external_id))
  ) THEN
    of := NULL;
  ELSIF days_of_hours IS NOT NULL AND NOT EXISTS (
    SELECT FROM unnest(workspaces) w (workspace_id)
    LEFT JOIN usage.trace_scope d
      ON d.source_id = source AND d.group_by = 'workspace' AND d.workspace_id = w.workspace_id AND d.stride = 'day'
    LEFT JOIN usage.day_state v USING (scope_id)
    WHERE NOT coalesce(v.loaded + v.unverified, '{}') @> days_of_hours
  ) THEN
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM usage.price) OR EXISTS (SELECT FROM usage.closed_charge) THEN
    -- Where all workspaces fill one volume tier, what one has used shifts what the others cost.
    which := CASE WHEN NOT EXISTS (
      SELECT FROM usage.price p WHERE p.counted_over = 'source' AND EXISTS (
        SELECT FROM usage.price o JOIN usage.price_tier USING (price_id) JOIN usage.sku k USING (sku_id)
        WHERE o.sku_id = p.sku_id AND (of IS NULL OR usage.meter_of_measure(k.measure) = ANY (of))
      )
    ) THEN workspaces END;
    WITH now AS MATERIALIZED (
      SELECT * FROM usage.charges_of(source, month, which, of)
    ), stored AS MATERIALIZED (
      SELECT * FROM usage.charge
      WHERE source_id = source AND month_start = month AND (which IS NULL OR workspace_id = ANY (which))
        AND (of IS NULL OR usage.meter_of_measure(measure) = ANY (of))
    ), gone AS (
      DELETE FROM usage.charge c
      USING (
        SELECT usage_date, workspace_id, sku, is_closed, tier FROM stored
        EXCEPT SELECT usage_date, workspace_id, sku, is_closed, tier FROM now
      ) g
      WHERE c.usage_date = g.usage_date AND c.workspace_id = g.workspace_id AND c.sku = g.sku AND c.is_closed = g.is_closed
        AND c.tier = g.tier
      RETURNING 1
    ), entered AS (
      INSERT INTO usage.charge
      SELECT * FROM now EXCEPT SELECT * FROM stored
      ON CONFLICT (usage_date, workspace_id, sku, is_closed, tier) DO UPDATE
      SET source_id = excluded.source_id, month_start = excluded.month_start, measure = excluded.measure,
          is_booked = excluded.is_booked, price_id = excluded.price_id, from_quantity = excluded.from_quantity,
          unit_price = excluded.unit_price, currency = excluded.currency, traces = excluded.traces, cost = excluded.cost,
          is_final = excluded.is_final, coverage_status = excluded.coverage_status, day_traces = excluded.day_traces,
          day_cost = excluded.day_cost, day_unit_price = excluded.day_unit_price, day_traces_now = excluded.day_traces_now
      RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM entered) INTO changed;
  ELSE
    DELETE FROM usage.charge WHERE source_id = source AND month_start = month;
    GET DIAGNOSTICS changed = ROW_COUNT;
  END IF;
  -- For whoever asks within this transaction (src/store/bill/charges.ts).
  PERFORM set_config(
    'usage.charges_changed', (coalesce(nullif(current_setting('usage.charges_changed', true), '')::bigint, 0) + changed)::text, true
  );
END
$$;

-- Charges of a source that are stored and not what usage, prices and closes say now, or the other way round: none. For tests and
-- `doctor`.
CREATE OR REPLACE FUNCTION usage.wrong_charges(source smallint)
RETURNS TABLE (is_stored boolean, usage_date date, workspace_id integer, sku text, charge jsonb)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH now AS MATERIALIZED (
    SELECT c.* FROM usage.charge_months(source) m (month_start) CROSS JOIN LATERAL usage.charges_of(source, m.month_start, NULL, NULL) c
  ),
  stored AS MATERIALIZED (SELECT * FROM usage.charge WHERE source_id = source)
  SELECT true, t.usage_date, t.workspace_id, t.sku, to_jsonb(t) FROM (SELECT * FROM stored EXCEPT SELECT * FROM now) t
  UNION ALL
  SELECT false, t.usage_date, t.workspace_id, t.sku, to_jsonb(t) FROM (SELECT * FROM now EXCEPT SELECT * FROM stored) t
  ORDER BY 2, 3, 4, 1
$$;
REVOKE ALL ON FUNCTION usage.charges_of (smallint, date, integer[], text[]), usage.charge_months (smallint),
  usage.keep_charges (smallint, date, integer[], text[], datemultirange), usage.wrong_charges (smallint) FROM public;
