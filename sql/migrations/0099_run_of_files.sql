-- Files for a warehouse are written by runs of their own. A release that still runs beside this one writes none.
ALTER TABLE usage.run DROP CONSTRAINT run_kind_known;
ALTER TABLE usage.run ADD CONSTRAINT run_kind_known
  CHECK (kind IN ('sync', 'backfill', 'reconcile', 'totals', 'probe', 'files')) NOT VALID;
ALTER TABLE usage.run VALIDATE CONSTRAINT run_kind_known;
