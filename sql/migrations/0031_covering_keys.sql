-- A record is its key and its count. With the count in the key's index, a report reads that and nothing else: records of a
-- series lie together in it, and in the table where their loads came in. Planned as such, it is also cheap enough not to be
-- compiled first.
CREATE UNIQUE INDEX dated_record_covering ON usage.dated_record (series_id, bucket_start) INCLUDE (traces);
ALTER TABLE usage.dated_record DROP CONSTRAINT dated_record_pkey,
  ADD CONSTRAINT dated_record_pkey PRIMARY KEY USING INDEX dated_record_covering;
CREATE UNIQUE INDEX hourly_record_covering ON usage.hourly_record (series_id, bucket_start) INCLUDE (traces);
ALTER TABLE usage.hourly_record DROP CONSTRAINT hourly_record_pkey,
  ADD CONSTRAINT hourly_record_pkey PRIMARY KEY USING INDEX hourly_record_covering;

-- Index-only scans need pages that vacuum has seen; by default it comes when a fifth of the table is new, which is years.
ALTER TABLE usage.dated_record SET (
  autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02
);
ALTER TABLE usage.hourly_record SET (
  autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02
);
