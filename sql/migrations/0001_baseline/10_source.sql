-- Sources, and what was learned of their servers.

-- The dimensions that usage is split by, each with its place in listings: one function instead of a list in each check.
-- `migrate` replaces it from the release's own list (sql/reporting/00_dimension.sql), so a new dimension needs no
-- migration.
CREATE FUNCTION usage.dimension_position(dimension text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE dimension WHEN 'workspace' THEN 1 WHEN 'project' THEN 2 WHEN 'user' THEN 3 WHEN 'api_key' THEN 4 END;

-- One platform organization that usage is read from. All other rows belong to a source.
CREATE TABLE usage.source (
  source_id smallint GENERATED ALWAYS AS IDENTITY CONSTRAINT source_pkey PRIMARY KEY,
  slug text NOT NULL CONSTRAINT source_slug_key UNIQUE,
  base_url text NOT NULL,
  -- Bound at first contact, if the platform reports it: another id later refuses the source.
  organization_id text,
  organization_name text,
  data_start date NOT NULL,
  -- How far back hours are kept up to date. The views expect hours from then on.
  hourly_hours integer NOT NULL,
  -- The workspaces that the configuration names, by the platform's ids, as of the last contact. Empty: all that the
  -- platform lists. Planner, request budget, status and close read them here.
  workspace_ids text[] NOT NULL DEFAULT '{}',
  -- The meters that the configuration tells syncs to keep (USAGE_METERS). A close covers these meters, as far as the
  -- server counts them.
  wanted_meters text[] NOT NULL DEFAULT '{traces,longlived,shortlived,deployments,sandboxes,evaluators}',
  -- A digest of key and configuration: a change clears kept failures and a refused key. Never the key itself.
  configuration_digest text NOT NULL,
  -- A digest of the key, which shows whether another key is used.
  key_digest text,
  -- Set when the platform refused the key (401, 403): nothing is requested until it is cleared.
  refused_at timestamptz,
  refused_code text,
  refused_message text,
  -- The provider and the issuer of invoices in the FOCUS views, from the settings. The views read tables only, so the
  -- process that opens a source stores them here. Null: the host of the billing API; the issuer is then the provider.
  provider_name text,
  invoice_issuer_name text,
  -- Restatements are complete from this instant on, since `prune` removes older ones. Null: from the source's first
  -- load on.
  history_since timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT source_slug_form CHECK (slug ~ '^[a-z][a-z0-9_-]{0,62}$'),
  CONSTRAINT source_wanted_meters_known CHECK (
    wanted_meters <@ ARRAY['traces', 'longlived', 'shortlived', 'deployments', 'sandboxes', 'evaluators']
  ),
  CONSTRAINT source_refusal_whole CHECK ((refused_at IS NULL) = (refused_code IS NULL)),
  CONSTRAINT source_provider_name_form CHECK (provider_name ~ '\S'),
  CONSTRAINT source_invoice_issuer_name_form CHECK (invoice_issuer_name ~ '\S')
);

-- Capabilities of a source's server; shown by `doctor`.
CREATE TABLE usage.source_fact (
  source_id smallint NOT NULL CONSTRAINT source_fact_source_id_fkey REFERENCES usage.source,
  fact text NOT NULL,
  evidence text NOT NULL,
  learned_at timestamptz NOT NULL DEFAULT now(),
  -- From then on one fetch task may try again. Null: every sync tries again.
  probe_after timestamptz,
  CONSTRAINT source_fact_pkey PRIMARY KEY (source_id, fact),
  CONSTRAINT source_fact_known CHECK (
    fact IN ('no_listing', 'no_future_end', 'no_hour', 'no_day', 'no_week', 'no_month', 'no_year')
  )
);

-- Whether a source's server counts a kind and tier, learned from its responses. Traces of all tiers are always counted
-- and have no row. A meter that the configuration wants has one from the first contact on.
CREATE TABLE usage.source_meter (
  source_id smallint NOT NULL CONSTRAINT source_meter_source_id_fkey REFERENCES usage.source,
  meter text NOT NULL,
  -- `not_counted`: the server says so, or its responses lack this usage. `nothing_yet`: it has counted nothing that
  -- could show it, so nothing is missing either. `not_known`: it was not requested yet, no response could be used, or
  -- the last one contradicts earlier ones.
  state text NOT NULL,
  -- The server's response, as text for people.
  evidence text NOT NULL,
  -- Deployment usage begins with its own history.
  starts_on date,
  -- Since when it is in this state.
  learned_at timestamptz NOT NULL DEFAULT now(),
  -- Until then the server had counted none of it, by its last usable response. Null: no response says so.
  none_until timestamptz,
  -- From then on it is learned again.
  request_again_at timestamptz NOT NULL,
  CONSTRAINT source_meter_pkey PRIMARY KEY (source_id, meter),
  CONSTRAINT source_meter_known CHECK (meter IN ('longlived', 'shortlived', 'deployments', 'sandboxes', 'evaluators')),
  CONSTRAINT source_meter_state_known CHECK (state IN ('counted', 'not_counted', 'nothing_yet', 'not_known')),
  CONSTRAINT source_meter_starts CHECK (starts_on IS NULL
    OR (meter = 'deployments' AND state IN ('counted', 'not_known')))
);

-- When the configuration of a source changed, for the timeline: one row for each setting that contact or a command
-- carried out. The value of a key is never written, only that another one is used.
CREATE TABLE usage.configuration_change (
  change_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT configuration_change_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT configuration_change_source_id_fkey REFERENCES usage.source ON DELETE CASCADE,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  setting text NOT NULL,
  old_value text,
  new_value text,
  CONSTRAINT configuration_change_setting_known CHECK (
    setting IN ('base_url', 'workspaces', 'data_start', 'organization', 'key')
  ),
  CONSTRAINT configuration_change_key_unseen CHECK (setting <> 'key' OR old_value IS NULL AND new_value IS NULL)
);
CREATE INDEX configuration_change_newest ON usage.configuration_change (changed_at DESC, change_id DESC);

-- A trigger writes the rows, so that every writer keeps them alike.
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
