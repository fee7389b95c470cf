-- What the traces of a closed month cost at the prices of that time. A later import changes prices, not these rows: so they
-- hold the price itself, not its number.
CREATE TABLE usage.closed_cost (
  close_id integer NOT NULL CONSTRAINT closed_cost_close_id_fkey REFERENCES usage.month_close,
  workspace_id integer NOT NULL CONSTRAINT closed_cost_workspace_id_fkey REFERENCES usage.workspace,
  sku text NOT NULL,
  unit_price numeric(18, 10) NOT NULL,
  currency text NOT NULL,
  traces bigint NOT NULL,
  cost numeric(38, 10) NOT NULL,
  CONSTRAINT closed_cost_pkey PRIMARY KEY (close_id, workspace_id, sku, currency, unit_price),
  CONSTRAINT closed_cost_traces_range CHECK (traces > 0)
);
