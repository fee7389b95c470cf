-- What is priced. An integer stands for its name, so that prices of one SKU can exclude each other without an extension.
CREATE TABLE usage.sku (
  sku_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT sku_pkey PRIMARY KEY,
  name text NOT NULL CONSTRAINT sku_name_key UNIQUE,
  CONSTRAINT sku_name_form CHECK (name ~ '\S' AND length(name) <= 200)
);

-- Unit prices, as somebody imported them: what costs are estimated from. The most specific one of a SKU applies: a
-- workspace's before its source's before everybody's.
CREATE TABLE usage.price (
  price_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT price_pkey PRIMARY KEY,
  sku_id integer NOT NULL CONSTRAINT price_sku_id_fkey REFERENCES usage.sku,
  -- Null: of every source.
  source_id smallint CONSTRAINT price_source_id_fkey REFERENCES usage.source,
  -- Null: of every workspace.
  workspace_id integer CONSTRAINT price_workspace_id_fkey REFERENCES usage.workspace,
  -- So many digits that its product with any bigint fits numeric(38, 10): the widest that BI tools and Parquet take.
  unit_price numeric(18, 10) NOT NULL,
  -- ISO 4217.
  currency text NOT NULL,
  valid_from date NOT NULL,
  -- Not included; null: until further notice.
  valid_to date,
  imported_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT price_unit_price_range CHECK (unit_price >= 0),
  CONSTRAINT price_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
  CONSTRAINT price_validity_order CHECK (valid_from < valid_to),
  CONSTRAINT price_workspace_of_source CHECK (workspace_id IS NULL OR source_id IS NOT NULL),
  -- A range of one integer stands for equality; 0, which no identity is, for null.
  CONSTRAINT price_no_overlap EXCLUDE USING gist (
    int4range(sku_id, sku_id, '[]') WITH &&,
    int4range(coalesce(source_id, 0), coalesce(source_id, 0), '[]') WITH &&,
    int4range(coalesce(workspace_id, 0), coalesce(workspace_id, 0), '[]') WITH &&,
    daterange(valid_from, valid_to) WITH &&
  )
);
