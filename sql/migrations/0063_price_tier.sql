-- Volume tiers of a price: its unit_price is charged from the first trace of a calendar month, and that of a tier from the
-- trace after the first from_quantity ones. A free allowance is a unit_price of 0 before the first tier. The tiers of a price
-- are valid as long as it is, so price_no_overlap goes on holding for both.
CREATE TABLE usage.price_tier (
  price_id integer NOT NULL CONSTRAINT price_tier_price_id_fkey REFERENCES usage.price ON DELETE CASCADE,
  from_quantity bigint NOT NULL,
  unit_price numeric(18, 10) NOT NULL,
  CONSTRAINT price_tier_pkey PRIMARY KEY (price_id, from_quantity),
  CONSTRAINT price_tier_from_quantity_range CHECK (from_quantity > 0),
  CONSTRAINT price_tier_unit_price_range CHECK (unit_price >= 0)
);

-- Whose traces of the month are counted: those of each source, or of each workspace by itself. No matter without tiers.
ALTER TABLE usage.price
  ADD COLUMN counted_over text NOT NULL DEFAULT 'source',
  ADD CONSTRAINT price_counted_over_known CHECK (counted_over IN ('source', 'workspace'));
