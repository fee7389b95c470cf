-- How late counts still changed: changes found by an answer whose predecessor came after the bucket's end already, by
-- their age at most. Before they settle, counts leave no other history.
CREATE TABLE usage.late_change (
  source_id smallint NOT NULL CONSTRAINT late_change_source_id_fkey REFERENCES usage.source,
  observed_on date NOT NULL,
  group_by text NOT NULL,
  stride text NOT NULL,
  was_final boolean NOT NULL,
  -- Upper end of the class of ages, counted from the end of the bucket.
  age_hours integer NOT NULL,
  changes bigint NOT NULL,
  -- Sum of the differences without their signs.
  traces_moved bigint NOT NULL,
  CONSTRAINT late_change_pkey PRIMARY KEY (source_id, observed_on, group_by, stride, was_final, age_hours),
  CONSTRAINT late_change_age_range CHECK (age_hours > 0)
);
