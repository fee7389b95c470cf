-- What the configuration asks a source's syncs to keep (USAGE_KINDS, USAGE_TIERS): a close is about these meters, as far as the
-- server counts them. Null: no release that keeps it has contacted the source, and all that its server counts are meant.
ALTER TABLE usage.source
  ADD COLUMN wanted_meters text[],
  ADD CONSTRAINT source_wanted_meters_known CHECK (
    wanted_meters <@ ARRAY['traces', 'longlived', 'shortlived', 'deployments']
  );
