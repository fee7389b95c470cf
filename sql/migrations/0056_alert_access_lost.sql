-- The webhook also hears that the key lost a workspace.
ALTER TABLE usage.alert DROP CONSTRAINT alert_kind_known;
ALTER TABLE usage.alert ADD CONSTRAINT alert_kind_known CHECK (
  kind IN ('difference', 'control_total', 'final_changed', 'stale', 'refused', 'access_lost')
);
