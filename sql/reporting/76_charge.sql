-- The rules of usage.charge and usage.charge_day (what usage costs), and how these tables are kept. Readers cannot see
-- them.

-- The meter of a measure: all measures of deployments come in one response, for example. Each meter of traces is a
-- measure. The units of deployments are charged, but not counted here.
CREATE OR REPLACE FUNCTION usage.meter_of_measure(measure text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE measure
  WHEN 'deployment_lcu' THEN 'deployments'
  WHEN 'deployment_lsu' THEN 'deployments'
  WHEN 'nodes_executed' THEN 'deployments'
  WHEN 'agent_runs' THEN 'deployments'
  WHEN 'agent_uptime_seconds' THEN 'deployments'
  WHEN 'lcu' THEN 'sandboxes'
  WHEN 'lsu' THEN 'sandboxes'
  WHEN 'compute_standard_units' THEN 'sandboxes'
  WHEN 'storage_standard_units' THEN 'sandboxes'
  WHEN 'spend_usd' THEN 'evaluators'
  WHEN 'evaluated_traces' THEN 'evaluators'
  ELSE measure
END;

-- From this day on the platform charges deployments by compute and storage units, which its API does not report
-- (docs/platform.md). The cost of their runs and uptime from then on is an estimate that no invoice has.
CREATE OR REPLACE FUNCTION usage.deployment_units_since() RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN date '2026-10-01';

CREATE OR REPLACE FUNCTION usage.is_on_no_invoice(measure text, usage_date date) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN usage.meter_of_measure(measure) = 'deployments' AND usage_date >= usage.deployment_units_since();

-- Meters that are priced, including those that only closed months have. Others are not read. Closed charges may be
-- millions, so each measure is one look-up in their index.
CREATE OR REPLACE VIEW usage.priced_meter AS
WITH RECURSIVE closed (measure) AS (
  SELECT min(measure) FROM usage.closed_charge
  UNION ALL
  SELECT (SELECT min(c.measure) FROM usage.closed_charge c WHERE c.measure > closed.measure)
  FROM closed
  WHERE closed.measure IS NOT NULL
)
SELECT usage.meter_of_measure(measure) AS meter FROM usage.sku
UNION
SELECT usage.meter_of_measure(measure) FROM closed WHERE measure IS NOT NULL;

-- Months whose costs were closed, by workspace. A workspace that the close left out has no row.
CREATE OR REPLACE VIEW usage.charged_month AS
SELECT m.close_id, m.source_id, m.month_start, w.entity_id AS workspace_entity_id,
       daterange(m.month_start, (m.month_start + interval '1 month')::date) AS days
FROM usage.close m
JOIN usage.entity e USING (source_id)
JOIN usage.workspace w USING (entity_id)
WHERE m.costs_closed_at IS NOT NULL AND NOT EXISTS (
  SELECT FROM usage.closed_workspace x WHERE x.close_id = m.close_id AND x.workspace_id = w.entity_id AND x.is_left_out
);

-- The usage of each priced measure in the workspaces of a source, on each expected day of a month, loaded or not. Null:
-- all workspaces, or all meters. Nothing is expected if the server does not count the measure, and a measure without a
-- price is not read.
CREATE OR REPLACE FUNCTION usage.used_of(source smallint, month date, workspaces integer[], meters text[])
RETURNS TABLE (
  measure text, usage_date date, workspace_id text, quantity numeric, is_final boolean, coverage_status text
)
-- Without SET, as the functions below, so that it is planned as a part of the statement that calls it.
LANGUAGE sql STABLE
AS $$
  SELECT u.measure, u.usage_date, u.workspace_id, u.quantity, u.is_final, u.coverage_status
  FROM (
    SELECT source_id AS slug, 'traces'::text AS meter, 'traces'::text AS measure, usage_date, workspace_id,
           traces AS quantity, is_final, coverage_status
    FROM reporting.fct_usage_workspace_daily
    UNION ALL
    SELECT slug, meter, measure, usage_date, workspace_id, trim_scale(quantity), usage.is_final(status), status
    FROM usage.measured_day
    -- A loaded day whose units are unknown stays: it makes the volume tiers of later days uncertain.
    WHERE (status <> 'not_available' OR fetched_at IS NOT NULL) AND meter <> 'evaluators'
      AND meter = ANY (ARRAY(SELECT p.meter FROM usage.priced_meter p))
  ) u
  WHERE u.slug = (SELECT s.slug FROM usage.source s WHERE s.source_id = source)
    AND u.usage_date >= month AND u.usage_date < (month + interval '1 month')::date
    AND (
      workspaces IS NULL
      OR u.workspace_id = ANY (
        ARRAY(SELECT usage.shown_id(e.external_id) FROM usage.entity e WHERE e.entity_id = ANY (workspaces))
      )
    )
    AND (meters IS NULL OR u.meter = ANY (meters))
$$;

-- The charges of a month of a source, for some workspaces and meters or, with null, for all: usage.charge must hold
-- these rows. They are days with usage, by SKU and volume tier. A tier is filled in the order of days, and within a day
-- in the order of the workspaces' ids.
CREATE OR REPLACE FUNCTION usage.charges_of(
  source smallint, month date, workspaces integer[], meters text[]
) RETURNS SETOF usage.charge
LANGUAGE sql STABLE
AS $$
  -- Inlined, the charges of a month would take 2.5 times as long.
  WITH price AS MATERIALIZED (
    SELECT * FROM usage.measured_price
    WHERE source_id = source AND (workspaces IS NULL OR workspace_entity_id = ANY (workspaces))
      AND (meters IS NULL OR usage.meter_of_measure(measure) = ANY (meters))
  ),
  priced AS (
    SELECT p.*, u.usage_date, u.quantity, u.is_final, u.coverage_status
    FROM usage.used_of(source, month, workspaces, meters) u
    JOIN price p ON p.workspace_id = u.workspace_id AND p.measure = u.measure AND p.days @> u.usage_date
  ),
  estimate AS (
    SELECT usage_date, workspace_entity_id AS workspace_id, sku, measure, 0 AS tier, price_id,
           0::bigint AS from_quantity, unit_price, currency, quantity, is_final, coverage_status
    FROM priced
    WHERE NOT is_tiered AND quantity > 0
    UNION ALL
    SELECT d.usage_date, d.workspace_entity_id, d.sku, d.measure, t.tier, d.price_id, t.from_quantity,
           t.unit_price, d.currency, q.quantity, d.is_certain,
           -- The day may be final while an earlier one is not, which shifts the tiers.
           CASE WHEN d.is_final AND NOT d.is_certain THEN 'provisional' ELSE d.coverage_status END
    FROM (
      SELECT d.*,
             CASE d.counted_over WHEN 'workspace' THEN sum(d.quantity) OVER one ELSE sum(d.quantity) OVER whole END
               AS counted,
             CASE d.counted_over WHEN 'workspace' THEN bool_and(d.is_final) OVER one
                  ELSE bool_and(d.is_final) OVER whole END
               AS is_certain
      FROM priced d
      -- A workspace that a close of the month does not cover fills no tier there.
      JOIN usage.required_workspace r ON r.workspace_id = d.workspace_entity_id
        AND coalesce(r.days @> d.usage_date, false)
      WHERE d.is_tiered
      WINDOW whole AS (
               PARTITION BY d.sku_id, d.price_source_id, d.price_workspace_id
               ORDER BY d.usage_date, d.workspace_id COLLATE "C"
             ),
             one AS (
               PARTITION BY d.sku_id, d.price_source_id, d.price_workspace_id, d.workspace_id ORDER BY d.usage_date
             )
    ) d
    JOIN usage.volume_tier t USING (price_id)
    CROSS JOIN LATERAL (
      SELECT least(d.counted, t.to_quantity) - greatest(d.counted - d.quantity, t.from_quantity) AS quantity
    ) q
    WHERE d.quantity > 0 AND q.quantity > 0
  )
  SELECT source, month, usage_date, workspace_id, sku, measure,
         workspace_id IN (
           SELECT x.workspace_entity_id FROM usage.charged_month x WHERE x.source_id = source AND x.month_start = month
         ),
         tier, price_id, from_quantity, unit_price, currency, quantity,
         -- Exact: the factors have 18 and 19 digits, ten of them after the point. Compute and storage units have six
         -- digits after the point themselves, so their price has at most four (src/features/costs/price.ts).
         (unit_price * quantity)::numeric(38, 10), is_final, coverage_status
  FROM estimate
$$;

-- The charges that readers see: those that a month was closed with, and today's charges in all other months. There is
-- no condition and no join, so that a filter and an order reach the indexes of both tables.
CREATE OR REPLACE VIEW usage.booked_charge AS
SELECT usage_date, workspace_id, sku, measure, is_closed, tier, price_id, unit_price, currency, quantity, cost,
       is_final, coverage_status
FROM usage.open_charge
UNION ALL
SELECT usage_date, workspace_id, sku, measure, true, tier, price_id, unit_price, currency, quantity, cost, true, 'ok'
FROM usage.closed_charge;

-- One row, although the planner expects a thousand. It is planned separately because of its SET.
CREATE OR REPLACE FUNCTION usage.expect_many() RETURNS SETOF boolean
LANGUAGE sql STABLE ROWS 1000
SET search_path = pg_catalog, pg_temp
AS 'SELECT true';

-- Usage of a closed month. It is planned separately. Otherwise the first charges of a connection would wait another 0.1
-- s for this plan, which they do not need while nothing is closed.
CREATE OR REPLACE FUNCTION usage.used_since(source smallint, month date, workspaces integer[], meters text[])
RETURNS TABLE (measure text, usage_date date, workspace_id text, quantity numeric)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  RETURN QUERY
  SELECT u.measure, u.usage_date, u.workspace_id, u.quantity FROM usage.used_of(source, month, workspaces, meters) u;
END
$$;

-- The charges by day: usage.charge_day must hold these rows.
CREATE OR REPLACE FUNCTION usage.charge_days_of(
  source smallint, month date, workspaces integer[], meters text[]
) RETURNS SETOF usage.charge_day
LANGUAGE sql STABLE
AS $$
  SELECT source, month, d.usage_date, d.workspace_id, d.sku, d.measure, d.is_closed, d.currency, d.quantity, d.cost,
         d.unit_price, CASE WHEN d.is_closed THEN coalesce(u.quantity, 0) ELSE d.quantity END, d.is_final,
         d.coverage_status
  FROM (
    SELECT usage_date, workspace_id, sku, measure, is_closed, currency, sum(quantity) AS quantity,
           sum(cost)::numeric(38, 10) AS cost, CASE WHEN count(*) = 1 THEN min(unit_price) END AS unit_price, is_final,
           coverage_status
    FROM usage.booked_charge
    WHERE usage_date >= month AND usage_date < (month + interval '1 month')::date
      AND (workspaces IS NULL OR workspace_id = ANY (workspaces))
      AND (meters IS NULL OR usage.meter_of_measure(measure) = ANY (meters))
    GROUP BY usage_date, workspace_id, sku, measure, is_closed, currency, is_final, coverage_status
  ) d
  JOIN usage.entity e ON e.entity_id = d.workspace_id AND e.source_id = source
  -- The planner expects a few days in a month, and would search all usage for each of them.
  CROSS JOIN usage.expect_many() many
  LEFT JOIN (
    SELECT * FROM usage.used_since(source, month, workspaces, meters)
    WHERE EXISTS (SELECT FROM usage.close m WHERE m.source_id = source AND m.month_start = month)
  ) u ON many AND d.is_closed AND u.usage_date = d.usage_date AND u.measure = d.measure
    AND u.workspace_id = usage.shown_id(e.external_id)
$$;

-- Days that are charged, by today's prices or by a close.
CREATE OR REPLACE VIEW usage.charged_day AS
SELECT source_id, month_start, usage_date, workspace_id, measure FROM usage.charge_day
UNION ALL
SELECT source_id, month_start, usage_date, workspace_id, measure FROM usage.later_charge;

-- Months of a source that may have usage, also before its data start, those that are closed, and those with charges.
CREATE OR REPLACE VIEW usage.usage_month AS
SELECT s.source_id, m.month_start
FROM usage.source s
CROSS JOIN LATERAL usage.months_of(least(s.data_start, (
  SELECT min(lower(d.loaded)) FROM usage.scope c JOIN usage.day_state d USING (scope_id)
  WHERE c.source_id = s.source_id AND c.group_by = 'workspace'
)), (now() AT TIME ZONE 'UTC')::date) m (month_start)
UNION
SELECT source_id, month_start FROM usage.close WHERE month_start IS NOT NULL
UNION
SELECT source_id, month_start FROM usage.charge_day;

-- Recomputes charges and stores those that differ. Two transactions that change one month wait here for each other
-- until the first has committed. The second then sees the changes of the first, and includes both.
CREATE OR REPLACE FUNCTION usage.keep_charges(
  source smallint, month date, workspaces integer[], meters text[], days_of_hours datemultirange
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
-- Planning each call again takes longer than the call.
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  which integer[];
  -- Short-lived traces are all traces less the long-lived ones.
  of text[] := CASE WHEN meters && ARRAY['traces', 'longlived'] THEN meters || ARRAY['shortlived'] ELSE meters END;
  changed bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(
    hashtext('usage.charge'), source * 100000 + (extract(year FROM month) * 12 + extract(month FROM month))::integer
  );
  -- Decided after the lock: either this sees what others change meanwhile, or they see this. For a workspace that is no
  -- longer requested, anything loaded makes days of every meter expected. Otherwise hours matter only for a day that
  -- has no figure of its own.
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
    -- If all workspaces fill one volume tier, the usage of one changes the cost of the others.
    which := CASE WHEN NOT EXISTS (
      SELECT FROM usage.price p WHERE p.counted_over = 'source' AND EXISTS (
        SELECT FROM usage.price o JOIN usage.price_tier USING (price_id) JOIN usage.sku k USING (sku_id)
        WHERE o.sku_id = p.sku_id AND (of IS NULL OR usage.meter_of_measure(k.measure) = ANY (of))
      )
    ) THEN workspaces END;
    WITH now AS (
      SELECT * FROM usage.charges_of(source, month, which, of)
    ), stored AS (
      SELECT * FROM usage.charge
      WHERE source_id = source AND month_start = month AND (which IS NULL OR workspace_id = ANY (which))
        AND (of IS NULL OR usage.meter_of_measure(measure) = ANY (of))
    ), gone AS (
      DELETE FROM usage.charge c
      USING (
        SELECT usage_date, workspace_id, sku, tier, is_closed FROM stored
        EXCEPT SELECT usage_date, workspace_id, sku, tier, is_closed FROM now
      ) g
      WHERE c.usage_date = g.usage_date AND c.workspace_id = g.workspace_id AND c.sku = g.sku AND c.tier = g.tier
        AND c.is_closed = g.is_closed
      RETURNING 1
    ), entered AS (
      INSERT INTO usage.charge
      SELECT * FROM now EXCEPT SELECT * FROM stored
      ON CONFLICT (usage_date, workspace_id, sku, tier, is_closed) DO UPDATE
      SET source_id = excluded.source_id, month_start = excluded.month_start, measure = excluded.measure,
          price_id = excluded.price_id, from_quantity = excluded.from_quantity, unit_price = excluded.unit_price,
          currency = excluded.currency, quantity = excluded.quantity, cost = excluded.cost,
          is_final = excluded.is_final, coverage_status = excluded.coverage_status
      RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM entered) INTO changed;
    WITH now AS (
      SELECT * FROM usage.charge_days_of(source, month, which, of)
    ), stored AS (
      SELECT * FROM usage.charge_day
      WHERE source_id = source AND month_start = month AND (which IS NULL OR workspace_id = ANY (which))
        AND (of IS NULL OR usage.meter_of_measure(measure) = ANY (of))
    ), gone AS (
      DELETE FROM usage.charge_day c
      USING (SELECT usage_date, workspace_id, sku FROM stored EXCEPT SELECT usage_date, workspace_id, sku FROM now) g
      WHERE c.usage_date = g.usage_date AND c.workspace_id = g.workspace_id AND c.sku = g.sku
    )
    INSERT INTO usage.charge_day
    SELECT * FROM now EXCEPT SELECT * FROM stored
    ON CONFLICT (usage_date, workspace_id, sku) DO UPDATE
    SET source_id = excluded.source_id, month_start = excluded.month_start, measure = excluded.measure,
        is_closed = excluded.is_closed, currency = excluded.currency, quantity = excluded.quantity,
        cost = excluded.cost, unit_price = excluded.unit_price, quantity_now = excluded.quantity_now,
        is_final = excluded.is_final, coverage_status = excluded.coverage_status;
  ELSE
    DELETE FROM usage.charge WHERE source_id = source AND month_start = month;
    GET DIAGNOSTICS changed = ROW_COUNT;
    DELETE FROM usage.charge_day WHERE source_id = source AND month_start = month;
  END IF;
  -- For callers within this transaction (src/core/store/months/charges.ts).
  PERFORM set_config(
    'usage.charges_changed',
    (coalesce(nullif(current_setting('usage.charges_changed', true), '')::bigint, 0) + changed)::text, true
  );
END
$$;

-- Charges of a source, by day too, that are stored but wrong by today's usage, prices and closes, or that are right but
-- not stored. There should be no row. For tests and `doctor`.
CREATE OR REPLACE FUNCTION usage.wrong_charges(source smallint)
RETURNS TABLE (is_stored boolean, usage_date date, workspace_id integer, sku text, charge jsonb)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH month AS (SELECT month_start FROM usage.usage_month WHERE source_id = source),
  now AS (
    SELECT c.* FROM month m CROSS JOIN LATERAL usage.charges_of(source, m.month_start, NULL, NULL) c
  ),
  stored AS (SELECT * FROM usage.charge WHERE source_id = source),
  days_now AS (
    SELECT c.* FROM month m CROSS JOIN LATERAL usage.charge_days_of(source, m.month_start, NULL, NULL) c
  ),
  days_stored AS (SELECT * FROM usage.charge_day WHERE source_id = source)
  SELECT true, t.usage_date, t.workspace_id, t.sku, to_jsonb(t) FROM (SELECT * FROM stored EXCEPT SELECT * FROM now) t
  UNION ALL
  SELECT false, t.usage_date, t.workspace_id, t.sku, to_jsonb(t) FROM (SELECT * FROM now EXCEPT SELECT * FROM stored) t
  UNION ALL
  SELECT true, t.usage_date, t.workspace_id, t.sku, to_jsonb(t)
  FROM (SELECT * FROM days_stored EXCEPT SELECT * FROM days_now) t
  UNION ALL
  SELECT false, t.usage_date, t.workspace_id, t.sku, to_jsonb(t)
  FROM (SELECT * FROM days_now EXCEPT SELECT * FROM days_stored) t
  ORDER BY 2, 3, 4, 1
$$;
REVOKE ALL ON FUNCTION usage.used_of (smallint, date, integer[], text[]),
  usage.used_since (smallint, date, integer[], text[]),
  usage.charges_of (smallint, date, integer[], text[]), usage.charge_days_of (smallint, date, integer[], text[]),
  usage.keep_charges (smallint, date, integer[], text[], datemultirange),
  usage.wrong_charges (smallint) FROM public;
