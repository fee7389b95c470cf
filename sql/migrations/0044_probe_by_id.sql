-- A meter probe checks which user and key its traces are billed to, and how late they are billed. Null: an earlier release
-- entered it.
ALTER TABLE usage.probe
  -- An id, `(none)`, or for keys `...` and the end of a short key.
  ADD COLUMN expected_user text,
  ADD COLUMN expected_key text,
  -- How long the figures must stay, and how late the last trace may be billed (null: no limit), both in milliseconds.
  ADD COLUMN settle_for_ms integer,
  ADD COLUMN late_after_ms integer,
  -- When an answer first held some of it, and when the last request was sent whose answer lacked some.
  ADD COLUMN first_billed_at timestamptz,
  ADD COLUMN unbilled_at timestamptz,
  DROP CONSTRAINT probe_state_known,
  DROP CONSTRAINT probe_finished_when,
  DROP CONSTRAINT probe_matched_is_billed,
  ADD CONSTRAINT probe_state_known CHECK (state IN ('sending', 'waiting', 'matched', 'late', 'differs', 'inconclusive')),
  ADD CONSTRAINT probe_finished_when CHECK ((state IN ('matched', 'late', 'differs', 'inconclusive')) = (finished_at IS NOT NULL)),
  ADD CONSTRAINT probe_matched_is_billed CHECK (state NOT IN ('matched', 'late') OR billed_at IS NOT NULL);

-- Which id should rise, and which ids changed, the largest change first: [{"id": ..., "traces": ...}].
ALTER TABLE usage.probe_figure
  ADD COLUMN expected_id text,
  ADD COLUMN rises jsonb;
