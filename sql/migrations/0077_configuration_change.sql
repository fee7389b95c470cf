-- When the configuration of a source changed, for the timeline: one row for each setting that contact or a command carried out.
-- A trigger writes it, so that a release before this one and every later writer keep it alike. The value of a key is never
-- written: only that another one is used, told by a digest that does not reveal it. An older release writes no digest.
CREATE TABLE usage.configuration_change (
  change_id bigint GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  setting text NOT NULL,
  old_value text,
  new_value text,
  CONSTRAINT configuration_change_pkey PRIMARY KEY (change_id),
  -- A release before this one forgets a source without knowing of these rows.
  CONSTRAINT configuration_change_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source ON DELETE CASCADE,
  CONSTRAINT configuration_change_setting_known
    CHECK (setting IN ('base_url', 'workspaces', 'data_start', 'organization', 'key')),
  CONSTRAINT configuration_change_key_unseen CHECK (setting <> 'key' OR old_value IS NULL AND new_value IS NULL)
);
CREATE INDEX configuration_change_newest ON usage.configuration_change (changed_at DESC, change_id DESC);

ALTER TABLE usage.source ADD COLUMN key_digest text;

CREATE FUNCTION usage.keep_configuration_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  INSERT INTO usage.configuration_change (source_id, setting, old_value, new_value)
  SELECT NEW.source_id, c.setting, c.old_value, c.new_value
  FROM (VALUES
    ('base_url', OLD.base_url, NEW.base_url),
    ('workspaces', array_to_string(OLD.workspace_ids, ', '), array_to_string(NEW.workspace_ids, ', ')),
    ('data_start', OLD.data_start::text, NEW.data_start::text),
    ('organization', OLD.organization_id, NEW.organization_id)
  ) c (setting, old_value, new_value)
  WHERE c.old_value IS DISTINCT FROM c.new_value;
  -- Without a digest it is not known which key was used before.
  IF OLD.key_digest <> NEW.key_digest THEN
    INSERT INTO usage.configuration_change (source_id, setting) VALUES (NEW.source_id, 'key');
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.keep_configuration_change () FROM public;

CREATE TRIGGER configuration_changes
  AFTER UPDATE OF base_url, workspace_ids, data_start, organization_id, key_digest ON usage.source
  FOR EACH ROW
  WHEN (
    (OLD.base_url, OLD.workspace_ids, OLD.data_start, OLD.organization_id, OLD.key_digest)
      IS DISTINCT FROM (NEW.base_url, NEW.workspace_ids, NEW.data_start, NEW.organization_id, NEW.key_digest)
  )
  EXECUTE FUNCTION usage.keep_configuration_change();

-- Pages list the newest runs of a kind and the newest differences, whatever was kept for years.
CREATE INDEX run_of_kind ON usage.run (source_id, kind, started_at DESC, run_id DESC);
CREATE INDEX reconciliation_difference_newest
  ON usage.reconciliation_difference (found_at DESC, scope_id, bucket_start, external_id);
CREATE INDEX control_difference_newest
  ON usage.control_difference (found_at DESC, scope_id, kind, period_start, period_end, external_id)
  WHERE state <> 'unattributed';
