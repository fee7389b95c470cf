-- What was corrected in a month that is itself closed: changes of earlier closed months, in the month in which they were shown.
-- Later changes are corrections of a later month, so the rows of this one stay.
CREATE TABLE usage.closed_correction (
  -- The close of the month that shows the correction.
  close_id integer NOT NULL CONSTRAINT closed_correction_close_id_fkey REFERENCES usage.month_close,
  -- The day of the charge that is corrected, in an earlier month.
  usage_date date NOT NULL,
  workspace_id integer NOT NULL CONSTRAINT closed_correction_workspace_id_fkey REFERENCES usage.workspace,
  sku text NOT NULL,
  price_id integer NOT NULL,
  tier integer NOT NULL,
  from_quantity bigint NOT NULL,
  unit_price numeric(18, 10) NOT NULL,
  currency text NOT NULL,
  -- Negative: charged too much before.
  traces bigint NOT NULL,
  cost numeric(38, 10) NOT NULL,
  CONSTRAINT closed_correction_pkey PRIMARY KEY (close_id, usage_date, workspace_id, sku, currency, unit_price),
  CONSTRAINT closed_correction_traces_nonzero CHECK (traces <> 0)
);

-- Whether the charges of the month are kept by day, which they are from this release on. Without them its rows are those of
-- today, so FOCUS shows its billing period as open.
ALTER TABLE usage.month_close ADD COLUMN keeps_charges boolean NOT NULL DEFAULT false;
