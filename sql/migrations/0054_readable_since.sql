-- Nothing before this instant proves access to the workspace: the first proof after access was lost, or the loss. An answer
-- that was requested before it may be empty because of that loss. Null: no such bound is known.
ALTER TABLE usage.workspace ADD COLUMN readable_since timestamptz;
