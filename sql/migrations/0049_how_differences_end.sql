-- Three more ways in which a difference ends.
-- Withdrawn: fetched again, and the second look agrees with what was stored: nothing was changed.
-- Not_configured: its workspace is no longer read. Hours_dropped: its hour is no longer kept. Nothing can check these again.
ALTER TABLE usage.reconciliation_difference
  DROP CONSTRAINT reconciliation_difference_state_known,
  ADD CONSTRAINT reconciliation_difference_state_known CHECK (
    state IN ('open', 'platform_disagrees', 'repaired', 'closed', 'withdrawn', 'not_configured', 'hours_dropped')
  ),
  DROP CONSTRAINT reconciliation_difference_closed_when,
  ADD CONSTRAINT reconciliation_difference_closed_when CHECK (
    (state IN ('repaired', 'closed', 'withdrawn', 'not_configured', 'hours_dropped')) = (closed_at IS NOT NULL)
  );
ALTER TABLE usage.control_difference
  DROP CONSTRAINT control_difference_state_known,
  ADD CONSTRAINT control_difference_state_known CHECK (
    state IN ('platform_disagrees', 'unattributed', 'closed', 'not_configured')
  ),
  DROP CONSTRAINT control_difference_closed_when,
  ADD CONSTRAINT control_difference_closed_when CHECK (
    (state IN ('closed', 'not_configured')) = (closed_at IS NOT NULL)
  );
