CREATE OR REPLACE VIEW reporting_detail.dim_price AS
SELECT t.price_id, t.tier AS volume_tier, k.name AS sku, t.unit_price, p.currency, p.valid_from, p.valid_to,
       s.slug AS source_id, w.dimension_id AS workspace_id, w.dimension_name AS workspace_name, t.from_quantity,
       t.to_quantity,
       CASE WHEN t.tier > 0 THEN p.counted_over END AS counted_over,
       daterange(p.valid_from, p.valid_to) @> (now() AT TIME ZONE 'UTC')::date AS is_valid_today, p.imported_at,
       k.measure
FROM usage.volume_tier t
JOIN usage.price p USING (price_id)
JOIN usage.sku k USING (sku_id)
LEFT JOIN usage.source s ON s.source_id = p.source_id
LEFT JOIN usage.labelled_entity w ON w.entity_id = p.workspace_id;
COMMENT ON VIEW reporting_detail.dim_price IS
  'Which prices are imported, and when each is valid. Grain: imported price x volume tier (key: price_id, '
  'volume_tier). Valid on a day: valid_from <= day AND (valid_to IS NULL OR valid_to > day). If several prices of one '
  'sku are valid for a workspace, the most specific one applies: the workspace''s own, then its source''s, then the '
  'one for everybody. fct_cost_workspace_daily names the price that it used.';
CALL usage.comment_columns('{reporting_detail.dim_price}',
  'valid_from', 'First UTC day on which the price is valid.',
  'valid_to', 'First UTC day on which the price is no longer valid. Null: no end is known.',
  'source_id', 'Slug of the source that the price is for. Null: the price is for every source.',
  'workspace_id', 'The platform''s id of the workspace that the price is for. Null: the price is for every workspace.',
  'workspace_name', 'Current name of that workspace. Null: the price is for every workspace.',
  'from_quantity',
    'Usage of a calendar month after which this unit price applies, in units of measure. Does not add up.',
  'to_quantity',
    'Usage of a calendar month up to which this unit price applies, in units of measure. Null: without limit. Does not '
    'add up.',
  'counted_over',
    'Whose usage fills the volume tiers: source (all workspaces together) or workspace (each one separately). Null: '
    'the price has no volume tiers.',
  'is_valid_today', 'Whether the price is valid on the current UTC day.',
  'imported_at', 'When the price was imported.'
);
