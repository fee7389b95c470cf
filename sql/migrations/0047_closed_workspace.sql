-- Which workspaces a close is about, and the USAGE_SETTLE_AFTER it was made with. Null: made by a release that kept neither this
-- nor prices.
ALTER TABLE usage.month_close
  ADD COLUMN settle_after_seconds bigint,
  ADD CONSTRAINT month_close_settle_after_range CHECK (settle_after_seconds >= 0);

CREATE TABLE usage.closed_workspace (
  close_id integer NOT NULL CONSTRAINT closed_workspace_close_id_fkey REFERENCES usage.month_close,
  workspace_id integer NOT NULL CONSTRAINT closed_workspace_workspace_id_fkey REFERENCES usage.workspace,
  -- Left out by whoever closed the month: its totals are not in the close.
  is_left_out boolean NOT NULL,
  CONSTRAINT closed_workspace_pkey PRIMARY KEY (close_id, workspace_id)
);

-- Earlier closes: the workspaces that they have totals of.
INSERT INTO usage.closed_workspace (close_id, workspace_id, is_left_out)
SELECT DISTINCT t.close_id, c.workspace_id, false
FROM usage.closed_total t
JOIN usage.series s USING (series_id)
JOIN usage.scope c USING (scope_id);
