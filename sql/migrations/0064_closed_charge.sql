-- The charges of a closed month by day, as they were when it was closed. A later import of prices and later counts change none
-- of them: so they hold the price itself. Releases before this one kept closed_cost only.
CREATE TABLE usage.closed_charge (
  close_id integer NOT NULL CONSTRAINT closed_charge_close_id_fkey REFERENCES usage.month_close,
  usage_date date NOT NULL,
  workspace_id integer NOT NULL CONSTRAINT closed_charge_workspace_id_fkey REFERENCES usage.workspace,
  sku text NOT NULL,
  -- Number of the imported price, which may be gone since. Numbers are not given twice.
  price_id integer NOT NULL,
  -- 0: the price had no volume tiers.
  tier integer NOT NULL,
  from_quantity bigint NOT NULL,
  unit_price numeric(18, 10) NOT NULL,
  currency text NOT NULL,
  traces bigint NOT NULL,
  cost numeric(38, 10) NOT NULL,
  CONSTRAINT closed_charge_pkey PRIMARY KEY (close_id, usage_date, workspace_id, sku, tier),
  CONSTRAINT closed_charge_traces_range CHECK (traces > 0)
);
