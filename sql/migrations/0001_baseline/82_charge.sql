-- What usage costs by day, stored in the transaction of every change that it follows from: usage, how it is loaded, prices, closes.
-- Two books a row can be of: what is used now at the prices of now, and what a month was closed with. Readers see one of them
-- (is_booked). usage.charges_of says the rules (sql/reporting/76_charge.sql). No foreign keys: it is derived, and recomputed whole.
CREATE TABLE usage.charge (
  source_id smallint NOT NULL,
  month_start date NOT NULL,
  usage_date date NOT NULL,
  workspace_id integer NOT NULL,
  sku text NOT NULL,
  measure text NOT NULL,
  -- As the month was closed.
  is_closed boolean NOT NULL,
  -- 0: the price has no volume tiers.
  tier integer NOT NULL,
  -- What readers see: the closed charges of a month and workspace where there are some, else the estimate of now.
  is_booked boolean NOT NULL,
  price_id integer NOT NULL,
  from_quantity bigint NOT NULL,
  unit_price numeric(18, 10) NOT NULL,
  currency text NOT NULL,
  -- The quantity of this tier, in units of the measure.
  traces numeric NOT NULL,
  cost numeric(38, 10) NOT NULL,
  is_final boolean NOT NULL,
  coverage_status text NOT NULL,
  -- Of the day and SKU, all tiers together. On the row of the first tier alone, so that a join finds each day once.
  day_traces numeric,
  day_cost numeric(38, 10),
  -- Null also where a volume tier begins within the day: then no one price is that of all its traces.
  day_unit_price numeric(18, 10),
  -- What the workspace has now: of a closed day that may be another quantity.
  day_traces_now numeric,
  CONSTRAINT charge_pkey PRIMARY KEY (usage_date, workspace_id, sku, is_closed, tier),
  CONSTRAINT charge_traces_range CHECK (traces > 0)
) WITH (
  autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02
);
CREATE INDEX charge_by_month ON usage.charge (source_id, month_start, workspace_id);
-- Days in which a volume tier begins.
CREATE INDEX charge_averaged ON usage.charge (usage_date) WHERE day_traces IS NOT NULL AND day_unit_price IS NULL;

-- What is to be recomputed before the transaction ends. Nobody else ever sees a row. One row for each month that a statement changes,
-- not for each workspace: at the end each row runs a trigger.
CREATE TABLE usage.charge_due (
  -- Null: of every source.
  source_id smallint,
  -- Null: every month.
  month_start date,
  -- Null: every workspace.
  workspace_ids integer[],
  -- Null: every meter.
  meters text[],
  -- Only hours of these days have changed. Whether that matters is decided when the month is computed (usage.keep_charges).
  days_of_hours datemultirange,
  -- Logical replication of all tables refuses to delete from one without a key.
  due_number bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT charge_due_pkey PRIMARY KEY
);

-- Runs when the transaction commits, or at SET CONSTRAINTS usage.charges_follow IMMEDIATE. The first call takes all.
CREATE FUNCTION usage.recompute_due_charges() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  due record;
BEGIN
  FOR due IN
    WITH taken AS (
      DELETE FROM usage.charge_due RETURNING *
    ), month AS (
      SELECT source_id, month_start, workspace_ids, meters, days_of_hours FROM taken WHERE month_start IS NOT NULL
      UNION ALL
      SELECT s.source_id, m.month_start, NULL, NULL, NULL
      FROM usage.source s
      CROSS JOIN LATERAL usage.charge_months(s.source_id) m (month_start)
      WHERE EXISTS (SELECT FROM taken t WHERE t.month_start IS NULL AND coalesce(t.source_id, s.source_id) = s.source_id)
    )
    SELECT m.source_id, m.month_start,
           CASE WHEN bool_and(m.workspace_ids IS NOT NULL) THEN array_agg(DISTINCT workspace_id) END AS workspaces,
           CASE WHEN bool_and(m.meters IS NOT NULL) THEN array_agg(DISTINCT meter) END AS meters,
           CASE WHEN bool_and(m.days_of_hours IS NOT NULL) THEN range_agg(m.days_of_hours) END AS days_of_hours
    FROM month m
    LEFT JOIN LATERAL unnest(m.workspace_ids) workspace_id ON true
    LEFT JOIN LATERAL unnest(m.meters) meter ON true
    GROUP BY m.source_id, m.month_start
    -- In one order, so that two transactions never wait for each other in a circle.
    ORDER BY m.source_id, m.month_start
  LOOP
    PERFORM usage.keep_charges(due.source_id, due.month_start, due.workspaces, due.meters, due.days_of_hours);
  END LOOP;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.recompute_due_charges () FROM public;

CREATE CONSTRAINT TRIGGER charges_follow AFTER INSERT ON usage.charge_due
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION usage.recompute_due_charges();

-- Notes that all charges of a month of a source are due. Null: every month; of every source.
CREATE FUNCTION usage.charges_due(source smallint, month date) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  INSERT INTO usage.charge_due (source_id, month_start)
  SELECT source, month WHERE NOT EXISTS (
    SELECT FROM usage.charge_due d
    WHERE d.source_id IS NOT DISTINCT FROM source AND d.month_start IS NOT DISTINCT FROM month AND d.workspace_ids IS NULL
  )
$$;
REVOKE ALL ON FUNCTION usage.charges_due (smallint, date) FROM public;

-- Prices change what all time costs. A statement that changes records and is not of the program does not say of which time.
CREATE FUNCTION usage.all_charges_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM usage.charges_due(NULL, NULL);
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.all_charges_follow () FROM public;
CREATE TRIGGER charges_follow AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON usage.price
  FOR EACH STATEMENT EXECUTE FUNCTION usage.all_charges_follow();
CREATE TRIGGER charges_follow AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON usage.price_tier
  FOR EACH STATEMENT EXECUTE FUNCTION usage.all_charges_follow();
CREATE TRIGGER charges_follow AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON usage.dated_record
  FOR EACH STATEMENT WHEN (current_setting('usage.keeps_digests', true) IS DISTINCT FROM 'on')
  EXECUTE FUNCTION usage.all_charges_follow();
CREATE TRIGGER charges_follow AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON usage.hourly_record
  FOR EACH STATEMENT WHEN (current_setting('usage.keeps_digests', true) IS DISTINCT FROM 'on')
  EXECUTE FUNCTION usage.all_charges_follow();

-- Which days of a source are expected, and of which workspaces, decides what fills a volume tier and what is final. A close changes
-- its month.
CREATE FUNCTION usage.charges_follow_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  changed jsonb;
BEGIN
  IF TG_OP = 'DELETE' THEN
    changed := to_jsonb(OLD);
  ELSE
    changed := to_jsonb(NEW);
  END IF;
  PERFORM usage.charges_due(
    -- A workspace's row names no source.
    coalesce(
      (changed ->> 'source_id')::smallint, (SELECT e.source_id FROM usage.entity e WHERE e.entity_id = (changed ->> 'entity_id')::integer)
    ),
    (changed ->> 'month_start')::date
  );
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.charges_follow_row () FROM public;
CREATE TRIGGER charges_follow AFTER UPDATE ON usage.source FOR EACH ROW
  WHEN ((OLD.workspace_ids, OLD.data_start, OLD.wanted_meters) IS DISTINCT FROM (NEW.workspace_ids, NEW.data_start, NEW.wanted_meters))
  EXECUTE FUNCTION usage.charges_follow_row();
CREATE TRIGGER charges_follow AFTER INSERT OR DELETE ON usage.source_fact
  FOR EACH ROW EXECUTE FUNCTION usage.charges_follow_row();
CREATE TRIGGER charges_follow AFTER INSERT OR DELETE ON usage.source_meter
  FOR EACH ROW EXECUTE FUNCTION usage.charges_follow_row();
CREATE TRIGGER charges_follow_change AFTER UPDATE ON usage.source_meter FOR EACH ROW
  WHEN ((OLD.state, OLD.starts_on) IS DISTINCT FROM (NEW.state, NEW.starts_on))
  EXECUTE FUNCTION usage.charges_follow_row();
CREATE TRIGGER charges_follow AFTER INSERT OR DELETE ON usage.workspace
  FOR EACH ROW EXECUTE FUNCTION usage.charges_follow_row();
CREATE TRIGGER charges_follow_change AFTER UPDATE ON usage.workspace FOR EACH ROW
  WHEN ((OLD.unlisted_since, OLD.is_deleted) IS DISTINCT FROM (NEW.unlisted_since, NEW.is_deleted))
  EXECUTE FUNCTION usage.charges_follow_row();
-- With a scope the days of another meter than traces begin to be expected: what fills a volume tier before it is final no more. Prices
-- without tiers do not care.
CREATE FUNCTION usage.charges_follow_scope() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  changed usage.scope := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
  IF EXISTS (
    SELECT FROM usage.price_tier
    JOIN usage.price USING (price_id)
    JOIN usage.sku k USING (sku_id)
    WHERE CASE changed.kind WHEN 'traces' THEN k.measure IN ('longlived', 'shortlived')
          ELSE usage.meter_of_measure(k.measure) = usage.meter_of(changed.kind, changed.trace_tier) END
  ) THEN
    PERFORM usage.charges_due(changed.source_id, NULL);
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.charges_follow_scope () FROM public;
CREATE TRIGGER charges_follow AFTER INSERT ON usage.scope FOR EACH ROW
  WHEN (NEW.group_by = 'workspace' AND NEW.stride = 'day' AND (NEW.kind <> 'traces' OR NEW.trace_tier <> 'all'))
  EXECUTE FUNCTION usage.charges_follow_scope();
CREATE TRIGGER charges_follow_deleted AFTER DELETE ON usage.scope FOR EACH ROW
  WHEN (OLD.group_by = 'workspace' AND OLD.stride = 'day' AND (OLD.kind <> 'traces' OR OLD.trace_tier <> 'all'))
  EXECUTE FUNCTION usage.charges_follow_scope();
CREATE TRIGGER charges_follow AFTER INSERT OR UPDATE OR DELETE ON usage.month_close
  FOR EACH ROW EXECUTE FUNCTION usage.charges_follow_row();

-- So do the workspaces and charges of one. Its month may be gone when they go; then that has been noted.
CREATE FUNCTION usage.charges_follow_closed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM usage.charges_due(m.source_id, m.month_start) FROM usage.month_close m WHERE m.close_id IN (SELECT close_id FROM changed);
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.charges_follow_closed () FROM public;
CREATE TRIGGER charges_follow_inserted AFTER INSERT ON usage.closed_workspace
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION usage.charges_follow_closed();
CREATE TRIGGER charges_follow_updated AFTER UPDATE ON usage.closed_workspace
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION usage.charges_follow_closed();
CREATE TRIGGER charges_follow_deleted AFTER DELETE ON usage.closed_workspace
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION usage.charges_follow_closed();
CREATE TRIGGER charges_follow_inserted AFTER INSERT ON usage.closed_charge
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION usage.charges_follow_closed();
CREATE TRIGGER charges_follow_updated AFTER UPDATE ON usage.closed_charge
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION usage.charges_follow_closed();
CREATE TRIGGER charges_follow_deleted AFTER DELETE ON usage.closed_charge
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION usage.charges_follow_closed();
