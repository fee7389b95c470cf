-- What the charges of closed months count: their SKU may be gone. Their column `traces` holds the quantity. A release before this one
-- closes the charges for all traces only.
ALTER TABLE usage.closed_cost ADD COLUMN measure text NOT NULL DEFAULT 'traces';
ALTER TABLE usage.closed_charge ADD COLUMN measure text NOT NULL DEFAULT 'traces';
ALTER TABLE usage.closed_correction ADD COLUMN measure text NOT NULL DEFAULT 'traces';
