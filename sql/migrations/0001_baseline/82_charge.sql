-- The cost of usage by day, stored in the transaction of every change that it follows from: usage, how it is loaded,
-- prices, closes. sql/reporting/76_charge.sql has the rules. No foreign keys: both tables are derived, and recomputed
-- as a whole.

-- Usage as it is stored today, at today's prices, in closed months too.
CREATE TABLE usage.charge (
  source_id smallint NOT NULL,
  month_start date NOT NULL,
  usage_date date NOT NULL,
  workspace_id integer NOT NULL,
  sku text NOT NULL,
  measure text NOT NULL,
  -- The month was closed with the costs of this workspace: readers see usage.closed_charge instead.
  is_closed boolean NOT NULL,
  -- 0: the price has no volume tiers.
  tier integer NOT NULL,
  price_id integer NOT NULL,
  from_quantity bigint NOT NULL,
  unit_price numeric(18, 10) NOT NULL,
  currency text NOT NULL,
  -- The quantity of this tier, in units of the measure.
  quantity numeric NOT NULL,
  cost numeric(38, 10) NOT NULL,
  is_final boolean NOT NULL,
  coverage_status text NOT NULL,
  CONSTRAINT charge_pkey PRIMARY KEY (usage_date, workspace_id, sku, tier, is_closed),
  CONSTRAINT charge_quantity_range CHECK (quantity > 0)
) PARTITION BY LIST (is_closed);
CREATE INDEX charge_by_month ON usage.charge (source_id, month_start, workspace_id);
-- Charges that readers see, and what closed months would be charged now. Two tables, since with a condition in its
-- place the planner would sort years of charges to show the newest ones (usage.booked_charge).
CREATE TABLE usage.open_charge PARTITION OF usage.charge FOR VALUES IN (false) WITH (
  autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.02
);
CREATE TABLE usage.later_charge PARTITION OF usage.charge FOR VALUES IN (true) WITH (
  autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.02
);

-- The charges of a day that readers see, all volume tiers together (usage.booked_charge): ids and owners divide them.
-- They are joined by day; otherwise the charges of years would be added up to find those of a few days.
CREATE TABLE usage.charge_day (
  source_id smallint NOT NULL,
  month_start date NOT NULL,
  usage_date date NOT NULL,
  workspace_id integer NOT NULL,
  sku text NOT NULL,
  measure text NOT NULL,
  -- The charge is that of the month's close.
  is_closed boolean NOT NULL,
  currency text NOT NULL,
  quantity numeric NOT NULL,
  cost numeric(38, 10) NOT NULL,
  -- Null: a volume tier begins within the day, so its quantity has more than one price.
  unit_price numeric(18, 10),
  -- The workspace's quantity today, which on a closed day may differ.
  quantity_now numeric NOT NULL,
  is_final boolean NOT NULL,
  coverage_status text NOT NULL,
  CONSTRAINT charge_day_pkey PRIMARY KEY (usage_date, workspace_id, sku),
  CONSTRAINT charge_day_quantity_range CHECK (quantity > 0)
) WITH (
  autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.02
);
CREATE INDEX charge_day_by_month ON usage.charge_day (source_id, month_start, workspace_id);

-- Charges to recompute before the transaction ends. Nobody else ever sees a row. One row for each month that a
-- statement changes, not for each workspace: at the end each row runs a trigger.
CREATE TABLE usage.charge_due (
  -- Null: every source.
  source_id smallint,
  -- Null: every month.
  month_start date,
  -- Null: every workspace.
  workspace_ids integer[],
  -- Null: every meter.
  meters text[],
  -- Only hours of these days have changed. Whether that matters is decided when the month is computed
  -- (usage.keep_charges).
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
      SELECT m.source_id, m.month_start, NULL, NULL, NULL
      FROM usage.usage_month m
      WHERE EXISTS (
        SELECT FROM taken t WHERE t.month_start IS NULL AND coalesce(t.source_id, m.source_id) = m.source_id
      )
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

-- Marks all charges of a month of a source as due. Null: every month, or every source. Modules that write what charges
-- follow from call it in the transaction of the change (src/core/store/months/charges.ts); coverage and failures mark
-- theirs themselves (usage.state_follows). `doctor --state` finds what somebody changed by hand.
CREATE FUNCTION usage.charges_due(source smallint, month date) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  INSERT INTO usage.charge_due (source_id, month_start)
  SELECT source, month WHERE NOT EXISTS (
    SELECT FROM usage.charge_due d
    WHERE d.source_id IS NOT DISTINCT FROM source AND d.month_start IS NOT DISTINCT FROM month
      AND d.workspace_ids IS NULL
  )
$$;
REVOKE ALL ON FUNCTION usage.charges_due (smallint, date) FROM public;
