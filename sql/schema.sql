-- Made by test/integration/store/schema.test.ts from the migrated database: UPDATE_SCHEMA=1 writes it anew.

CREATE SEQUENCE usage.fetch_number AS bigint;

CREATE TABLE usage.backfill (
  backfill_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  stride text NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  groupings text[] NOT NULL,
  workspaces integer NOT NULL,
  reprocess text NOT NULL,
  state text NOT NULL DEFAULT 'running'::text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  finished_at timestamp with time zone,
  CONSTRAINT backfill_pkey PRIMARY KEY (backfill_id),
  CONSTRAINT backfill_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT backfill_finished_when CHECK (((state = ANY (ARRAY['cancelled'::text, 'done'::text])) = (finished_at IS NOT NULL))),
  CONSTRAINT backfill_period_order CHECK ((period_start < period_end)),
  CONSTRAINT backfill_reprocess_known CHECK ((reprocess = ANY (ARRAY['missing'::text, 'all'::text]))),
  CONSTRAINT backfill_state_known CHECK ((state = ANY (ARRAY['running'::text, 'paused'::text, 'cancelled'::text, 'done'::text])))
);

CREATE TABLE usage.coverage (
  scope_id integer NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  settled boolean NOT NULL,
  fetch_number bigint NOT NULL,
  fetched_at timestamp with time zone NOT NULL,
  CONSTRAINT coverage_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT coverage_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT coverage_period_order CHECK ((period_start < period_end)),
  CONSTRAINT coverage_no_overlap EXCLUDE USING gist (int4range(scope_id, scope_id, '[]'::text) WITH &&, tstzrange(period_start, period_end) WITH &&)
);

CREATE TABLE usage.dated_record (
  series_id integer NOT NULL,
  bucket_start date NOT NULL,
  traces bigint NOT NULL,
  CONSTRAINT dated_record_pkey PRIMARY KEY (series_id, bucket_start),
  CONSTRAINT dated_record_traces_range CHECK ((traces >= 0))
);

CREATE TABLE usage.entity (
  entity_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  dimension text NOT NULL,
  external_id text NOT NULL,
  first_seen_at timestamp with time zone,
  last_seen_at timestamp with time zone,
  CONSTRAINT entity_pkey PRIMARY KEY (entity_id),
  CONSTRAINT entity_identity UNIQUE (source_id, dimension, external_id),
  CONSTRAINT entity_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT entity_dimension_known CHECK ((dimension = ANY (ARRAY['workspace'::text, 'project'::text, 'user'::text, 'api_key'::text]))),
  CONSTRAINT entity_external_id_length CHECK ((octet_length(external_id) <= 1000))
);

CREATE TABLE usage.entity_name (
  entity_id integer NOT NULL,
  name text NOT NULL,
  first_bucket timestamp with time zone NOT NULL,
  last_bucket timestamp with time zone NOT NULL,
  fetch_number bigint NOT NULL,
  CONSTRAINT entity_name_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES usage.entity(entity_id)
);

CREATE TABLE usage.failure (
  scope_id integer NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  state text NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  attempts integer NOT NULL,
  fetch_number bigint NOT NULL,
  failed_at timestamp with time zone NOT NULL,
  retry_at timestamp with time zone NOT NULL,
  CONSTRAINT failure_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT failure_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT failure_attempts_counted CHECK ((attempts >= 1)),
  CONSTRAINT failure_period_order CHECK ((period_start < period_end)),
  CONSTRAINT failure_state_known CHECK ((state = ANY (ARRAY['failed'::text, 'unverified'::text]))),
  CONSTRAINT failure_no_overlap EXCLUDE USING gist (int4range(scope_id, scope_id, '[]'::text) WITH &&, tstzrange(period_start, period_end) WITH &&)
);

CREATE TABLE usage.fetch (
  fetch_number bigint NOT NULL DEFAULT nextval('usage.fetch_number'::regclass),
  source_id smallint NOT NULL,
  purpose text NOT NULL,
  group_by text NOT NULL,
  stride text NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  workspaces integer NOT NULL,
  fetched_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  finished_at timestamp with time zone,
  outcome text NOT NULL DEFAULT 'running'::text,
  code text,
  status integer,
  records bigint,
  traces bigint,
  CONSTRAINT fetch_pkey PRIMARY KEY (fetch_number),
  CONSTRAINT fetch_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT fetch_outcome_known CHECK ((outcome = ANY (ARRAY['running'::text, 'loaded'::text, 'discarded'::text, 'unconfirmed'::text, 'unverified'::text, 'refused'::text, 'failed'::text, 'compared'::text]))),
  CONSTRAINT fetch_purpose_known CHECK ((purpose = ANY (ARRAY['load'::text, 'reconcile'::text])))
);

CREATE TABLE usage.hourly_record (
  series_id integer NOT NULL,
  bucket_start timestamp with time zone NOT NULL,
  traces bigint NOT NULL,
  CONSTRAINT hourly_record_pkey PRIMARY KEY (series_id, bucket_start),
  CONSTRAINT hourly_record_traces_range CHECK ((traces >= 0))
);

CREATE TABLE usage.reconciliation_difference (
  scope_id integer NOT NULL,
  external_id text NOT NULL,
  bucket_start timestamp with time zone NOT NULL,
  kind text NOT NULL,
  stored_traces bigint,
  export_traces bigint,
  state text NOT NULL DEFAULT 'open'::text,
  fetch_number bigint NOT NULL,
  found_at timestamp with time zone NOT NULL DEFAULT now(),
  closed_at timestamp with time zone,
  CONSTRAINT reconciliation_difference_pkey PRIMARY KEY (scope_id, bucket_start, external_id),
  CONSTRAINT reconciliation_difference_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT reconciliation_difference_closed_when CHECK (((state = 'closed'::text) = (closed_at IS NOT NULL))),
  CONSTRAINT reconciliation_difference_kind_known CHECK ((kind = ANY (ARRAY['missing_in_store'::text, 'missing_in_export'::text, 'traces_differ'::text]))),
  CONSTRAINT reconciliation_difference_state_known CHECK ((state = ANY (ARRAY['open'::text, 'closed'::text])))
);

CREATE TABLE usage.restatement (
  restatement_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  series_id integer NOT NULL,
  bucket_start timestamp with time zone NOT NULL,
  old_traces bigint,
  new_traces bigint,
  fetch_number bigint NOT NULL,
  restated_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT restatement_pkey PRIMARY KEY (restatement_id),
  CONSTRAINT restatement_once UNIQUE (series_id, bucket_start, fetch_number),
  CONSTRAINT restatement_series_id_fkey FOREIGN KEY (series_id) REFERENCES usage.series(series_id),
  CONSTRAINT restatement_is_change CHECK ((old_traces IS DISTINCT FROM new_traces))
);

CREATE TABLE usage.scope (
  scope_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  kind text NOT NULL DEFAULT 'traces'::text,
  trace_tier text NOT NULL DEFAULT 'all'::text,
  group_by text NOT NULL,
  workspace_id integer NOT NULL,
  stride text NOT NULL,
  CONSTRAINT scope_pkey PRIMARY KEY (scope_id),
  CONSTRAINT scope_identity UNIQUE (source_id, kind, trace_tier, group_by, workspace_id, stride),
  CONSTRAINT scope_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT scope_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES usage.workspace(entity_id),
  CONSTRAINT scope_group_by_known CHECK ((group_by = ANY (ARRAY['workspace'::text, 'project'::text, 'user'::text, 'api_key'::text]))),
  CONSTRAINT scope_kind_known CHECK ((kind = 'traces'::text)),
  CONSTRAINT scope_stride_known CHECK ((stride = ANY (ARRAY['hour'::text, 'day'::text, 'week'::text, 'month'::text, 'year'::text]))),
  CONSTRAINT scope_trace_tier_known CHECK ((trace_tier = 'all'::text))
);

CREATE TABLE usage.series (
  series_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  scope_id integer NOT NULL,
  entity_id integer NOT NULL,
  CONSTRAINT series_pkey PRIMARY KEY (series_id),
  CONSTRAINT series_identity UNIQUE (scope_id, entity_id),
  CONSTRAINT series_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES usage.entity(entity_id),
  CONSTRAINT series_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id)
);

CREATE TABLE usage.slice (
  slice_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  backfill_id integer,
  group_by text NOT NULL,
  stride text NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  scope_ids integer[] NOT NULL,
  workspace_ids text[] NOT NULL,
  state text NOT NULL DEFAULT 'waiting'::text,
  generation integer NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  leased_until timestamp with time zone,
  code text,
  message text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  finished_at timestamp with time zone,
  CONSTRAINT slice_pkey PRIMARY KEY (slice_id),
  CONSTRAINT slice_backfill_id_fkey FOREIGN KEY (backfill_id) REFERENCES usage.backfill(backfill_id),
  CONSTRAINT slice_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT slice_finished_when CHECK (((state = ANY (ARRAY['done'::text, 'failed'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
  CONSTRAINT slice_lease_when_queued CHECK (((state = 'queued'::text) = (leased_until IS NOT NULL))),
  CONSTRAINT slice_period_order CHECK ((period_start < period_end)),
  CONSTRAINT slice_state_known CHECK ((state = ANY (ARRAY['waiting'::text, 'queued'::text, 'done'::text, 'failed'::text, 'cancelled'::text])))
);

CREATE TABLE usage.source (
  source_id smallint NOT NULL GENERATED ALWAYS AS IDENTITY,
  slug text NOT NULL,
  base_url text NOT NULL,
  organization_id text,
  organization_name text,
  data_start date NOT NULL,
  hourly_hours integer NOT NULL,
  configuration_digest text NOT NULL,
  refused_at timestamp with time zone,
  refused_code text,
  refused_message text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT source_pkey PRIMARY KEY (source_id),
  CONSTRAINT source_slug_key UNIQUE (slug),
  CONSTRAINT source_refusal_whole CHECK (((refused_at IS NULL) = (refused_code IS NULL))),
  CONSTRAINT source_slug_form CHECK ((slug ~ '^[a-z][a-z0-9_-]{0,62}$'::text))
);

CREATE TABLE usage.source_fact (
  source_id smallint NOT NULL,
  fact text NOT NULL,
  evidence text NOT NULL,
  learned_at timestamp with time zone NOT NULL DEFAULT now(),
  probe_after timestamp with time zone,
  CONSTRAINT source_fact_pkey PRIMARY KEY (source_id, fact),
  CONSTRAINT source_fact_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT source_fact_known CHECK ((fact = ANY (ARRAY['no_listing'::text, 'no_future_end'::text, 'no_hour'::text, 'no_day'::text, 'no_week'::text, 'no_month'::text, 'no_year'::text])))
);

CREATE TABLE usage.workspace (
  entity_id integer NOT NULL,
  readable_at timestamp with time zone,
  is_deleted boolean NOT NULL DEFAULT false,
  unlisted_since timestamp with time zone,
  CONSTRAINT workspace_pkey PRIMARY KEY (entity_id),
  CONSTRAINT workspace_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES usage.entity(entity_id)
);

CREATE UNIQUE INDEX entity_name_identity ON usage.entity_name USING btree (entity_id, md5(name));

CREATE INDEX fetch_source_time ON usage."fetch" USING btree (source_id, fetched_at);

CREATE INDEX slice_of_backfill ON usage.slice USING btree (backfill_id, state) WHERE (backfill_id IS NOT NULL);

CREATE INDEX slice_queued ON usage.slice USING btree (source_id, leased_until) WHERE (state = 'queued'::text);

CREATE UNIQUE INDEX slice_routine_once ON usage.slice USING btree (source_id, group_by, stride, period_start, period_end, scope_ids) WHERE (backfill_id IS NULL);

CREATE INDEX slice_waiting ON usage.slice USING btree (source_id, ((backfill_id IS NOT NULL)), period_start DESC) WHERE (state = 'waiting'::text);

-- VIEW reporting.backfill_status (
--   source_id text,
--   backfill_id integer,
--   state text,
--   stride text,
--   period_start timestamp with time zone,
--   period_end timestamp with time zone,
--   done bigint,
--   failed bigint,
--   total bigint,
--   created_at timestamp with time zone,
--   finished_at timestamp with time zone
-- )

-- VIEW reporting.data_freshness (
--   source_id text,
--   group_by text,
--   stride text,
--   loaded_until timestamp with time zone,
--   settled_until timestamp with time zone,
--   fetched_at timestamp with time zone,
--   lag_seconds bigint
-- )

-- VIEW reporting.dim_api_key (
--   source_id text,
--   api_key_short_key text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone
-- )

-- VIEW reporting.dim_date (
--   usage_date date,
--   iso_year integer,
--   iso_week integer,
--   iso_weekday integer,
--   month_start date,
--   year_start date
-- )

-- VIEW reporting.dim_project (
--   source_id text,
--   project_id text,
--   project_name text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone
-- )

-- VIEW reporting.dim_user (
--   source_id text,
--   user_id text,
--   user_email text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone
-- )

-- VIEW reporting.dim_workspace (
--   source_id text,
--   workspace_id text,
--   workspace_name text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone,
--   is_deleted boolean,
--   unlisted_since timestamp with time zone
-- )

-- VIEW reporting.fct_usage_api_key_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   api_key_short_key text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting.fct_usage_api_key_hourly (
--   source_id text,
--   usage_hour timestamp with time zone,
--   workspace_id text,
--   workspace_name text,
--   api_key_short_key text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting.fct_usage_project_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   project_id text,
--   project_name text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting.fct_usage_project_hourly (
--   source_id text,
--   usage_hour timestamp with time zone,
--   workspace_id text,
--   workspace_name text,
--   project_id text,
--   project_name text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting.fct_usage_user_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   user_id text,
--   user_email text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting.fct_usage_user_hourly (
--   source_id text,
--   usage_hour timestamp with time zone,
--   workspace_id text,
--   workspace_name text,
--   user_id text,
--   user_email text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting.fct_usage_workspace_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting.fct_usage_workspace_hourly (
--   source_id text,
--   usage_hour timestamp with time zone,
--   workspace_id text,
--   workspace_name text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting.usage_coverage_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   group_by text,
--   stride text,
--   status text
-- )

-- VIEW reporting.usage_reconciliation (
--   source_id text,
--   group_by text,
--   stride text,
--   period_start timestamp with time zone,
--   workspace_id text,
--   dimension_id text,
--   stored_traces bigint,
--   export_traces bigint,
--   kind text,
--   state text,
--   found_at timestamp with time zone
-- )

-- VIEW reporting.usage_record (
--   source_id text,
--   group_by text,
--   stride text,
--   period_start timestamp with time zone,
--   period_end timestamp with time zone,
--   workspace_id text,
--   dimension_id text,
--   dimension_name text,
--   traces bigint,
--   is_settled boolean,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting.usage_restatement (
--   source_id text,
--   group_by text,
--   stride text,
--   period_start timestamp with time zone,
--   workspace_id text,
--   dimension_id text,
--   old_traces bigint,
--   new_traces bigint,
--   restated_at timestamp with time zone
-- )

-- VIEW usage.cell (
--   day_scope_id integer,
--   hour_scope_id integer,
--   source_id smallint,
--   slug text,
--   data_start date,
--   hourly_hours integer,
--   group_by text,
--   workspace_id text,
--   workspace_name text
-- )

-- VIEW usage.daily_figure (
--   day_scope_id integer,
--   entity_id integer,
--   usage_date date,
--   traces bigint,
--   settled boolean,
--   fetched_at timestamp with time zone
-- )

-- VIEW usage.daily_row (
--   slug text,
--   group_by text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   dimension_id text,
--   dimension_name text,
--   traces bigint,
--   settled boolean,
--   fetched_at timestamp with time zone,
--   status text
-- )

-- VIEW usage.day_of_hours (
--   day_scope_id integer,
--   hour_scope_id integer,
--   usage_date date,
--   settled boolean,
--   fetched_at timestamp with time zone
-- )

-- VIEW usage.day_state (
--   day_scope_id integer,
--   hour_scope_id integer,
--   source_id smallint,
--   slug text,
--   data_start date,
--   hourly_hours integer,
--   group_by text,
--   workspace_id text,
--   workspace_name text,
--   usage_date date,
--   loaded boolean,
--   settled boolean,
--   fetched_at timestamp with time zone,
--   status text
-- )

-- VIEW usage.hour_state (
--   day_scope_id integer,
--   hour_scope_id integer,
--   source_id smallint,
--   slug text,
--   data_start date,
--   hourly_hours integer,
--   group_by text,
--   workspace_id text,
--   workspace_name text,
--   usage_hour timestamp with time zone,
--   loaded boolean,
--   settled boolean,
--   fetched_at timestamp with time zone,
--   status text
-- )

-- VIEW usage.hourly_row (
--   slug text,
--   group_by text,
--   usage_hour timestamp with time zone,
--   workspace_id text,
--   workspace_name text,
--   dimension_id text,
--   dimension_name text,
--   traces bigint,
--   settled boolean,
--   fetched_at timestamp with time zone,
--   status text
-- )

-- VIEW usage.labelled_entity (
--   entity_id integer,
--   source_id smallint,
--   dimension text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone,
--   name text,
--   label text
-- )

COMMENT ON VIEW reporting.backfill_status IS 'Grain: backfill. Its counts are of slices, one request each; once they are pruned (USAGE_KEEP_HISTORY) they are 0.';
COMMENT ON COLUMN reporting.backfill_status.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.backfill_status.backfill_id IS 'Number of the backfill, as the command line shows it.';
COMMENT ON COLUMN reporting.backfill_status.state IS 'running, paused, cancelled or done.';
COMMENT ON COLUMN reporting.backfill_status.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting.backfill_status.period_start IS 'Start of the range asked for.';
COMMENT ON COLUMN reporting.backfill_status.period_end IS 'End of the range asked for, not included.';
COMMENT ON COLUMN reporting.backfill_status.done IS 'Slices loaded.';
COMMENT ON COLUMN reporting.backfill_status.failed IS 'Slices that failed; backfill show names them.';
COMMENT ON COLUMN reporting.backfill_status.total IS 'Slices in all, those that wait or were cancelled among them.';
COMMENT ON COLUMN reporting.backfill_status.created_at IS 'When it was asked for.';
COMMENT ON COLUMN reporting.backfill_status.finished_at IS 'When it was done or cancelled; null before.';
COMMENT ON VIEW reporting.data_freshness IS 'Grain: source x grouping x stride: how far usage is loaded and settled.';
COMMENT ON COLUMN reporting.data_freshness.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.data_freshness.group_by IS 'Grouping: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting.data_freshness.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting.data_freshness.loaded_until IS 'End of the latest loaded bucket.';
COMMENT ON COLUMN reporting.data_freshness.settled_until IS 'End of the latest settled bucket.';
COMMENT ON COLUMN reporting.data_freshness.fetched_at IS 'When the platform was asked for it, by the clock of this database.';
COMMENT ON COLUMN reporting.data_freshness.lag_seconds IS 'Seconds since the platform was last asked.';
COMMENT ON VIEW reporting.dim_api_key IS 'Grain: API key, by its short key.';
COMMENT ON COLUMN reporting.dim_api_key.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.dim_api_key.api_key_short_key IS 'Short form of the API key, which is its identity; (none) where there was none; null where the period is not loaded.';
COMMENT ON COLUMN reporting.dim_api_key.first_seen_at IS 'Start of the earliest bucket that named it.';
COMMENT ON COLUMN reporting.dim_api_key.last_seen_at IS 'Start of the latest bucket that named it.';
COMMENT ON VIEW reporting.dim_date IS 'Grain: UTC day, from the earliest data start to today.';
COMMENT ON COLUMN reporting.dim_date.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.dim_date.iso_year IS 'ISO 8601 year of the week.';
COMMENT ON COLUMN reporting.dim_date.iso_week IS 'ISO 8601 week of the year.';
COMMENT ON COLUMN reporting.dim_date.iso_weekday IS '1 is Monday, 7 is Sunday.';
COMMENT ON COLUMN reporting.dim_date.month_start IS 'First day of the month.';
COMMENT ON COLUMN reporting.dim_date.year_start IS 'First day of the year.';
COMMENT ON VIEW reporting.dim_project IS 'Grain: project. Two projects may share a name: join by id.';
COMMENT ON COLUMN reporting.dim_project.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.dim_project.project_id IS 'The platform''s id of the project; (none) where it gave none; null where the period is not loaded.';
COMMENT ON COLUMN reporting.dim_project.project_name IS 'Current name of the project; not unique.';
COMMENT ON COLUMN reporting.dim_project.first_seen_at IS 'Start of the earliest bucket that named it.';
COMMENT ON COLUMN reporting.dim_project.last_seen_at IS 'Start of the latest bucket that named it.';
COMMENT ON VIEW reporting.dim_user IS 'Grain: user.';
COMMENT ON COLUMN reporting.dim_user.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.dim_user.user_id IS 'The platform''s id of the user; (none) where it gave none; null where the period is not loaded.';
COMMENT ON COLUMN reporting.dim_user.user_email IS 'Current e-mail address of the user, as USAGE_USER_EMAIL lets it in.';
COMMENT ON COLUMN reporting.dim_user.first_seen_at IS 'Start of the earliest bucket that named it.';
COMMENT ON COLUMN reporting.dim_user.last_seen_at IS 'Start of the latest bucket that named it.';
COMMENT ON VIEW reporting.dim_workspace IS 'Grain: workspace.';
COMMENT ON COLUMN reporting.dim_workspace.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.dim_workspace.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.dim_workspace.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.dim_workspace.first_seen_at IS 'Start of the earliest bucket that named it.';
COMMENT ON COLUMN reporting.dim_workspace.last_seen_at IS 'Start of the latest bucket that named it.';
COMMENT ON COLUMN reporting.dim_workspace.is_deleted IS 'Whether the platform lists it as deleted; its past usage stays.';
COMMENT ON COLUMN reporting.dim_workspace.unlisted_since IS 'Since when it is gone from the platform''s listing without being deleted: look into it.';
COMMENT ON VIEW reporting.fct_usage_api_key_daily IS 'Grain: UTC day x workspace x API key, days with usage; a day x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.api_key_short_key IS 'Short form of the API key, which is its identity; (none) where there was none; null where the period is not loaded.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.is_final IS 'Whether the figure is settled and its status good: later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.coverage_status IS 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.fetched_at IS 'When the platform was asked for it, by the clock of this database.';
COMMENT ON VIEW reporting.fct_usage_api_key_hourly IS 'Grain: UTC hour x workspace x API key, hours with usage; an hour x workspace that is not loaded is one row with null id and null traces.';
COMMENT ON COLUMN reporting.fct_usage_api_key_hourly.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.fct_usage_api_key_hourly.usage_hour IS 'Start of the UTC hour.';
COMMENT ON COLUMN reporting.fct_usage_api_key_hourly.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_api_key_hourly.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_api_key_hourly.api_key_short_key IS 'Short form of the API key, which is its identity; (none) where there was none; null where the period is not loaded.';
COMMENT ON COLUMN reporting.fct_usage_api_key_hourly.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_api_key_hourly.is_final IS 'Whether the figure is settled and its status good: later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_api_key_hourly.coverage_status IS 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.';
COMMENT ON COLUMN reporting.fct_usage_api_key_hourly.fetched_at IS 'When the platform was asked for it, by the clock of this database.';
COMMENT ON VIEW reporting.fct_usage_project_daily IS 'Grain: UTC day x workspace x project, days with usage; a day x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.project_id IS 'The platform''s id of the project; (none) where it gave none; null where the period is not loaded.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.project_name IS 'Current name of the project; not unique.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.is_final IS 'Whether the figure is settled and its status good: later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.coverage_status IS 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.fetched_at IS 'When the platform was asked for it, by the clock of this database.';
COMMENT ON VIEW reporting.fct_usage_project_hourly IS 'Grain: UTC hour x workspace x project, hours with usage; an hour x workspace that is not loaded is one row with null id and null traces.';
COMMENT ON COLUMN reporting.fct_usage_project_hourly.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.fct_usage_project_hourly.usage_hour IS 'Start of the UTC hour.';
COMMENT ON COLUMN reporting.fct_usage_project_hourly.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_project_hourly.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_project_hourly.project_id IS 'The platform''s id of the project; (none) where it gave none; null where the period is not loaded.';
COMMENT ON COLUMN reporting.fct_usage_project_hourly.project_name IS 'Current name of the project; not unique.';
COMMENT ON COLUMN reporting.fct_usage_project_hourly.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_project_hourly.is_final IS 'Whether the figure is settled and its status good: later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_project_hourly.coverage_status IS 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.';
COMMENT ON COLUMN reporting.fct_usage_project_hourly.fetched_at IS 'When the platform was asked for it, by the clock of this database.';
COMMENT ON VIEW reporting.fct_usage_user_daily IS 'Grain: UTC day x workspace x user, days with usage; a day x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.user_id IS 'The platform''s id of the user; (none) where it gave none; null where the period is not loaded.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.user_email IS 'Current e-mail address of the user, as USAGE_USER_EMAIL lets it in.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.is_final IS 'Whether the figure is settled and its status good: later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.coverage_status IS 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.fetched_at IS 'When the platform was asked for it, by the clock of this database.';
COMMENT ON VIEW reporting.fct_usage_user_hourly IS 'Grain: UTC hour x workspace x user, hours with usage; an hour x workspace that is not loaded is one row with null id and null traces.';
COMMENT ON COLUMN reporting.fct_usage_user_hourly.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.fct_usage_user_hourly.usage_hour IS 'Start of the UTC hour.';
COMMENT ON COLUMN reporting.fct_usage_user_hourly.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_user_hourly.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_user_hourly.user_id IS 'The platform''s id of the user; (none) where it gave none; null where the period is not loaded.';
COMMENT ON COLUMN reporting.fct_usage_user_hourly.user_email IS 'Current e-mail address of the user, as USAGE_USER_EMAIL lets it in.';
COMMENT ON COLUMN reporting.fct_usage_user_hourly.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_user_hourly.is_final IS 'Whether the figure is settled and its status good: later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_user_hourly.coverage_status IS 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.';
COMMENT ON COLUMN reporting.fct_usage_user_hourly.fetched_at IS 'When the platform was asked for it, by the clock of this database.';
COMMENT ON VIEW reporting.fct_usage_workspace_daily IS 'Grain: UTC day x workspace, every day from the data start to today. Traces add up over days and workspaces. Null traces: not loaded, which is not zero.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.is_final IS 'Whether the figure is settled and its status good: later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.coverage_status IS 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.fetched_at IS 'When the platform was asked for it, by the clock of this database.';
COMMENT ON VIEW reporting.fct_usage_workspace_hourly IS 'Grain: UTC hour x workspace, every hour that is kept up to date or was loaded. Traces add up over hours and workspaces. Null traces: not loaded, which is not zero.';
COMMENT ON COLUMN reporting.fct_usage_workspace_hourly.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.fct_usage_workspace_hourly.usage_hour IS 'Start of the UTC hour.';
COMMENT ON COLUMN reporting.fct_usage_workspace_hourly.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_workspace_hourly.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_workspace_hourly.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_workspace_hourly.is_final IS 'Whether the figure is settled and its status good: later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_workspace_hourly.coverage_status IS 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.';
COMMENT ON COLUMN reporting.fct_usage_workspace_hourly.fetched_at IS 'When the platform was asked for it, by the clock of this database.';
COMMENT ON VIEW reporting.usage_coverage_daily IS 'Grain: UTC day x workspace x grouping x stride: whether its figures can be used. Expected are days from the data start on, and hours for as long as they are kept up to date.';
COMMENT ON COLUMN reporting.usage_coverage_daily.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.usage_coverage_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.usage_coverage_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.usage_coverage_daily.group_by IS 'Grouping: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting.usage_coverage_daily.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting.usage_coverage_daily.status IS 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.';
COMMENT ON VIEW reporting.usage_reconciliation IS 'Grain: one difference between what is stored and the platform''s CSV export (key: source_id, group_by, stride, period_start, workspace_id, dimension_id).';
COMMENT ON COLUMN reporting.usage_reconciliation.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.usage_reconciliation.group_by IS 'Grouping: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting.usage_reconciliation.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting.usage_reconciliation.period_start IS 'Start of the time bucket.';
COMMENT ON COLUMN reporting.usage_reconciliation.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.usage_reconciliation.dimension_id IS 'The platform''s id in this grouping; (none) where it gave none.';
COMMENT ON COLUMN reporting.usage_reconciliation.stored_traces IS 'Count that is stored; null: not there.';
COMMENT ON COLUMN reporting.usage_reconciliation.export_traces IS 'Count in the CSV export; null: not there.';
COMMENT ON COLUMN reporting.usage_reconciliation.kind IS 'missing_in_store, missing_in_export or traces_differ.';
COMMENT ON COLUMN reporting.usage_reconciliation.state IS 'open, or closed once a later reconciliation did not find it.';
COMMENT ON COLUMN reporting.usage_reconciliation.found_at IS 'When it was first found.';
COMMENT ON VIEW reporting.usage_record IS 'NEVER SUM without one group_by and one stride: each is another view of the same traces. Grain: one stored record, at its own stride (key: source_id, group_by, stride, period_start, workspace_id, dimension_id).';
COMMENT ON COLUMN reporting.usage_record.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.usage_record.group_by IS 'Grouping: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting.usage_record.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting.usage_record.period_start IS 'Start of the time bucket.';
COMMENT ON COLUMN reporting.usage_record.period_end IS 'End of the time bucket, not included.';
COMMENT ON COLUMN reporting.usage_record.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.usage_record.dimension_id IS 'The platform''s id in this grouping; (none) where it gave none.';
COMMENT ON COLUMN reporting.usage_record.dimension_name IS 'Current name in this grouping.';
COMMENT ON COLUMN reporting.usage_record.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.usage_record.is_settled IS 'Whether it was fetched at least USAGE_SETTLE_AFTER after its bucket ended.';
COMMENT ON COLUMN reporting.usage_record.fetched_at IS 'When the platform was asked for it, by the clock of this database.';
COMMENT ON VIEW reporting.usage_restatement IS 'Grain: one change of a settled count (key: source_id, group_by, stride, period_start, workspace_id, dimension_id, restated_at).';
COMMENT ON COLUMN reporting.usage_restatement.source_id IS 'Slug of the platform organisation that usage is read from; default with one source.';
COMMENT ON COLUMN reporting.usage_restatement.group_by IS 'Grouping: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting.usage_restatement.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting.usage_restatement.period_start IS 'Start of the time bucket.';
COMMENT ON COLUMN reporting.usage_restatement.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.usage_restatement.dimension_id IS 'The platform''s id in this grouping; (none) where it gave none.';
COMMENT ON COLUMN reporting.usage_restatement.old_traces IS 'Count before; null: not there.';
COMMENT ON COLUMN reporting.usage_restatement.new_traces IS 'Count after; null: not there.';
COMMENT ON COLUMN reporting.usage_restatement.restated_at IS 'When the change was stored.';
COMMENT ON TABLE usage.dated_record IS 'Records of the strides day, week, month and year; which one, the scope of the series tells. Never sum across scopes of different strides.';