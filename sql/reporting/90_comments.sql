-- What a BI tool shows beside each view and column. The view's begins with its grain.
DO $$
DECLARE
  view_comments CONSTANT jsonb := jsonb_build_object(
    'fct_usage_workspace_daily', 'Grain: UTC day x workspace (key: source_id, usage_date, workspace_id), every day from the data start to today. Traces add up over days and workspaces. Null traces: not loaded, which is not zero.',
    'fct_usage_project_daily', 'Grain: UTC day x workspace x project (key: source_id, usage_date, workspace_id, project_id), days with usage; a day x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_user_daily', 'Grain: UTC day x workspace x user (key: source_id, usage_date, workspace_id, user_id), days with usage; a day x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_api_key_daily', 'Grain: UTC day x workspace x API key (key: source_id, usage_date, workspace_id, api_key_short_key), days with usage; a day x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_workspace_monthly', 'Grain: calendar month (UTC) x workspace (key: source_id, month_start, workspace_id), every month from the data start on. Traces add up over months and workspaces. Null traces: not every expected day is loaded. Expected is every day that has ended, and today from when it is loaded.',
    'fct_usage_project_monthly', 'Grain: calendar month (UTC) x workspace x project (key: source_id, month_start, workspace_id, project_id), months with usage; a month x workspace of which not every expected day is loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_user_monthly', 'Grain: calendar month (UTC) x workspace x user (key: source_id, month_start, workspace_id, user_id), months with usage; a month x workspace of which not every expected day is loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_api_key_monthly', 'Grain: calendar month (UTC) x workspace x API key (key: source_id, month_start, workspace_id, api_key_short_key), months with usage; a month x workspace of which not every expected day is loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_workspace_hourly', 'Grain: UTC hour x workspace (key: source_id, usage_hour, workspace_id), every hour that is kept up to date or was loaded. Traces add up over hours and workspaces. Null traces: not loaded, which is not zero.',
    'fct_usage_project_hourly', 'Grain: UTC hour x workspace x project (key: source_id, usage_hour, workspace_id, project_id), hours with usage; an hour x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_user_hourly', 'Grain: UTC hour x workspace x user (key: source_id, usage_hour, workspace_id, user_id), hours with usage; an hour x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'fct_usage_api_key_hourly', 'Grain: UTC hour x workspace x API key (key: source_id, usage_hour, workspace_id, api_key_short_key), hours with usage; an hour x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these; never add them to another grouping''s.',
    'usage_record', 'NEVER SUM without one group_by and one stride: each is another view of the same traces. Grain: one stored record, at its own stride (key: source_id, group_by, stride, period_start, workspace_id, dimension_id).',
    'usage_restatement', 'Grain: one change of a settled count (key: source_id, group_by, stride, period_start, workspace_id, dimension_id, restated_at).',
    'usage_reconciliation', 'Grain: one difference between what is stored and what else the platform says (key: source_id, kind, group_by, period_start, period_end, workspace_id, dimension_id).',
    'usage_unattributed_daily', 'Grain: UTC day x workspace x grouping (project, user, api_key) (key: source_id, usage_date, workspace_id, group_by). Never add up over groupings: each is another view of the same traces.',
    'usage_late_change', 'Grain: day of observation x grouping x stride x whether it was settled x class of ages (key: source_id, observed_on, group_by, stride, was_settled, age_hours): changes found although the answer before came after the bucket''s end. Never add up over groupings or strides.',
    'usage_month_close', 'Grain: closed calendar month x grouping x workspace x id (key: source_id, month_start, group_by, workspace_id, dimension_id). closed_traces never change; what came later is adjustment_traces, and both make up current_traces. Never add up over groupings.',
    'usage_coverage_daily', 'Grain: UTC day x workspace x grouping x stride (key: source_id, usage_date, workspace_id, group_by, stride): whether its figures can be used. Expected are days from the data start on, and hours for as long as they are kept up to date.',
    'data_freshness', 'Grain: source x grouping x stride (key: source_id, group_by, stride): how far usage is loaded and settled.',
    'backfill_status', 'Grain: backfill (key: source_id, backfill_id). Its counts are of slices, one request each; once they are pruned (USAGE_KEEP_HISTORY) they are 0.',
    'metering_probe', 'Grain: probe of the meter x grouping (key: source_id, probe_id, group_by): known traffic that was sent, and by how much the grouping''s figure rose. A probe without figures is one row with null grouping. Never add groupings up.',
    'focus_cost_usage_estimated', 'Grain: UTC day x workspace x SKU, days with usage on which a price is valid (key: x_SourceId, x_UsageDate, SubAccountId, SkuId). An ESTIMATE from the prices that were imported, not what is invoiced: taxes, discounts, free allowances and commitments are not in it. Columns of FOCUS 1.2. Costs add up over all of these within one BillingCurrency; quantities within one SkuId. Empty without prices.',
    'dim_date', 'Grain: UTC day (key: usage_date), from the earliest data start to today.',
    'dim_workspace', 'Grain: workspace (key: source_id, workspace_id).',
    'dim_project', 'Grain: project (key: source_id, project_id). Two projects may share a name: join by id.',
    'dim_user', 'Grain: user (key: source_id, user_id).',
    'dim_api_key', 'Grain: API key (key: source_id, api_key_short_key), by its short key.'
  );
  column_comments CONSTANT jsonb := jsonb_build_object(
    'source_id', 'Slug of the platform organisation that usage is read from; default with one source.',
    'usage_date', 'UTC day.',
    'usage_hour', 'Start of the UTC hour.',
    'workspace_id', 'The platform''s id of the workspace.',
    'workspace_name', 'Current name of the workspace.',
    'project_id', 'The platform''s id of the project; (none) where it gave none; null where the period is not loaded.',
    'project_name', 'Current name of the project; not unique.',
    'user_id', 'The platform''s id of the user; (none) where it gave none; null where the period is not loaded.',
    'user_email', 'Current e-mail address of the user, as USAGE_USER_EMAIL lets it in.',
    'api_key_short_key', 'Short form of the API key, which is its identity; (none) where there was none; null where the period is not loaded.',
    'traces', 'Number of traces. Adds up over time and over the view''s own key, never across groupings or strides. Null: not loaded.',
    'is_final', 'Whether the figure is settled and its status good: later changes are kept as restatements.',
    'coverage_status', 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.',
    'status', 'The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.',
    'fetched_at', 'When the platform was asked for it, by the clock of this database.',
    'group_by', 'Grouping: workspace, project, user or api_key.',
    'stride', 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).',
    'period_start', 'Start of the time bucket.',
    'period_end', 'End of the time bucket, not included.',
    'dimension_id', 'The platform''s id in this grouping; (none) where it gave none.',
    'dimension_name', 'Current name in this grouping.',
    'is_settled', 'Whether it was fetched at least USAGE_SETTLE_AFTER after its bucket ended.'
  ) || jsonb_build_object(
    -- A function takes a hundred arguments.
    'old_traces', 'Count before; null: not there. Does not add up: one bucket may change more than once.',
    'new_traces', 'Count after; null: not there. Does not add up: one bucket may change more than once.',
    'restated_at', 'When the change was stored.',
    'stored_traces', 'Count that is stored; null: not there. Does not add up: one bucket may differ from more than one total.',
    'export_traces', 'Count in the CSV export, or the total that the stored days should add up to; null: not there. Does not add up: one bucket may differ from more than one total.',
    'kind', 'Against the CSV export: missing_in_store, missing_in_export, traces_differ, bucket_end_differs, name_differs. Against totals: stride_total (days against a window of weeks, months or years), grouping_total (a grouping against the workspace).',
    'state', 'open: to be asked about again; platform_disagrees: asked twice, the platform contradicts itself; repaired: what was stored was stale, and was replaced; unattributed: the workspace has more than the grouping names; closed: a later look did not find it.',
    'workspace_traces', 'Traces of the workspace''s day by workspace; null: not loaded. Adds up over days and workspaces within one group_by.',
    'attributed_traces', 'Sum of the grouping''s traces on that day; null: not loaded. Adds up over days and workspaces within one group_by.',
    'unattributed_traces', 'What the grouping does not name; null unless both sides are final. Adds up over days and workspaces within one group_by.',
    'observed_on', 'UTC day on which the change was found.',
    'was_settled', 'Whether the count was settled when it changed.',
    'age_hours', 'Upper end of the class of ages, in hours since the end of the bucket.',
    'changes', 'Counts that changed. Adds up over days of observation and classes within one group_by and stride.',
    'traces_moved', 'Sum of the differences without their signs. Adds up over days of observation and classes within one group_by and stride.',
    'closed_traces', 'Traces of the month when it was closed. Adds up over months, workspaces and ids of one grouping.',
    'adjustment_traces', 'What was added or taken since the month was closed. Adds up as closed_traces do.',
    'current_traces', 'Traces of the month as they are stored today: closed and adjustments. Adds up as closed_traces do.',
    'closed_at', 'When the month was closed.',
    'export_says', 'Name or end of the bucket in the CSV export, where that differs; null for names of users.',
    'found_at', 'When it was first found.',
    'backfill_id', 'Number of the backfill, as the command line shows it.',
    'done', 'Slices loaded. Adds up over backfills.',
    'failed', 'Slices that failed; backfill show names them. Adds up over backfills.',
    'total', 'Slices in all, those that wait or were cancelled among them. Adds up over backfills.',
    'created_at', 'When it was asked for.',
    'finished_at', 'When it was done or cancelled; null before.',
    'loaded_until', 'End of the latest loaded bucket.',
    'settled_until', 'End of the latest settled bucket.',
    'lag_seconds', 'Seconds since the platform was last asked. Does not add up.',
    'first_seen_at', 'Start of the earliest bucket that named it.',
    'last_seen_at', 'Start of the latest bucket that named it.',
    'is_deleted', 'Whether the platform lists it as deleted; its past usage stays.',
    'unlisted_since', 'Since when it is gone from the platform''s listing without being deleted: look into it.',
    'iso_year', 'ISO 8601 year of the week.',
    'iso_week', 'ISO 8601 week of the year.',
    'iso_weekday', '1 is Monday, 7 is Sunday.',
    'month_start', 'First day of the month.',
    'days_expected', 'Days of the month from the data start on that have ended, and today from when it is loaded. Adds up over months of one workspace.',
    'days_loaded', 'Those of them that are loaded. Adds up over months of one workspace.',
    'is_complete', 'Whether every expected day is loaded; the month under way is complete up to its last ended day.',
    'year_start', 'First day of the year.'
  ) || jsonb_build_object(
    -- A function takes a hundred arguments at most.
    'probe_id', 'Number of the probe.',
    'expected_traces', 'Traces that the probe sent.',
    'billed_traces', 'By how much the figure of this grouping rose; in all groupings but project others'' traffic stands in it.',
    'others_added', 'By how much the figures of all other projects rose meanwhile: so much of the rise may be theirs. 0: the comparison is exact.',
    'others_removed', 'By how much the figures of other projects fell meanwhile.',
    'difference', 'Traces billed too many (or, negative, too few) whatever others did; 0: as expected.',
    'sent_at', 'When the last trace had been sent.',
    'billed_at', 'When the platform was asked whose answer first held all of it; null: it never did.',
    'delay_ms', 'Milliseconds from the last trace sent to the first answer that held all of it; billing took at most so long.',
    'code', 'Why it ended without a verdict, or what differs; null otherwise.',
    'message', 'The same in words.'
  ) || jsonb_build_object(
    'BilledCost', 'Estimate: unit price times traces, exactly. Adds up within one BillingCurrency.',
    'BillingAccountId', 'The platform''s id of the organisation; the source''s slug where it tells none.',
    'BillingAccountName', 'Name of the organisation; the source''s slug where the platform tells none.',
    'BillingAccountType', 'Organization.',
    'BillingCurrency', 'ISO 4217 code of the imported price. Never add up over currencies.',
    'BillingPeriodEnd', 'End of the UTC calendar month, not included.',
    'BillingPeriodStart', 'Start of the UTC calendar month.',
    'ChargeCategory', 'Usage.',
    'ChargeClass', 'Null: no correction of an earlier billing period. Changed counts change the estimate in place.',
    'ChargeDescription', 'The charge in words.',
    'ChargeFrequency', 'Usage-Based.',
    'ChargePeriodEnd', 'End of the UTC day, not included.',
    'ChargePeriodStart', 'Start of the UTC day.',
    'ConsumedQuantity', 'Traces. Adds up over days and workspaces within one SkuId: two SKUs charge the same traces.',
    'ConsumedUnit', 'Traces.',
    'ContractedCost', 'The same as BilledCost: ContractedUnitPrice times PricingQuantity.',
    'ContractedUnitPrice', 'The imported unit price.',
    'EffectiveCost', 'The same as BilledCost: nothing is paid in advance.',
    'InvoiceId', 'Null: an estimate is on no invoice.',
    'InvoiceIssuerName', 'Host that answers for the platform''s billing.',
    'ListCost', 'The same as BilledCost: no list prices are known beside the imported ones.',
    'ListUnitPrice', 'The imported unit price: no list prices are known beside it.',
    'PricingCategory', 'Standard.',
    'PricingQuantity', 'Traces. Adds up as ConsumedQuantity does.',
    'PricingUnit', 'Traces.',
    'ProviderName', 'Host that answers for the platform''s billing.',
    'PublisherName', 'Host that answers for the platform''s billing.',
    'ServiceCategory', 'AI and Machine Learning.',
    'ServiceName', 'Agent platform traces.',
    'ServiceSubcategory', 'AI Platforms.',
    'SkuId', 'SKU of the imported price.',
    'SkuMeter', 'Traces.',
    'SkuPriceId', 'Number of the imported price: one unit price each.',
    'SubAccountId', 'The platform''s id of the workspace.',
    'SubAccountName', 'Current name of the workspace.',
    'SubAccountType', 'Workspace.',
    'Tags', 'JSON object as text; the platform''s usage has no tags.',
    'ServiceProviderName', 'ProviderName, as FOCUS 1.3 calls it.',
    'HostProviderName', 'Host that answers for the platform''s billing (FOCUS 1.3).',
    'x_SourceId', 'Slug of the platform organisation that usage is read from; default with one source.',
    'x_UsageDate', 'UTC day of the charge, for filters and joins with the other views.',
    'x_IsFinal', 'Whether the day''s traces are settled and their status good. False: provisional, the estimate may still change.',
    'x_CoverageStatus', 'Of the day''s traces, the first that applies: failed, unverified, provisional, ok.'
  );
  -- Where a column's name means something else in one view.
  exceptions CONSTANT jsonb := jsonb_build_object(
    'metering_probe.state', 'sending, waiting, matched, differs or inconclusive.',
    'metering_probe.started_at', 'When the probe began.',
    'metering_probe.finished_at', 'When it had its verdict; null before.',
    'masked.user_email', 'The start of the user''s id in the place of the address; null where no address is known.',
    'masked.dimension_name', 'Current name in this grouping; of a user the start of the id.',
    'backfill_status.state', 'running, paused, cancelled or done.',
    'backfill_status.period_start', 'Start of the range asked for.',
    'fct_usage_workspace_monthly.is_final', 'Whether the month is over and each of its days is settled with a good status: later changes are kept as restatements.',
    'fct_usage_project_monthly.is_final', 'Whether the month is over and each of its days is settled with a good status: later changes are kept as restatements.',
    'fct_usage_user_monthly.is_final', 'Whether the month is over and each of its days is settled with a good status: later changes are kept as restatements.',
    'fct_usage_api_key_monthly.is_final', 'Whether the month is over and each of its days is settled with a good status: later changes are kept as restatements.',
    'backfill_status.period_end', 'End of the range asked for, not included.'
  );
  masked CONSTANT text := ' Without e-mail addresses: a user is named by the start of the id.';
  base text;
  one record;
BEGIN
  FOR one IN
    SELECT c.relname AS view, a.attname AS "column"
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = 'reporting'::regnamespace AND c.relkind = 'v'
  LOOP
    -- The twin without addresses is the view it was made from, but for one column.
    base := regexp_replace(one.view, '_masked$', '');
    IF view_comments ? base THEN
      EXECUTE format(
        'COMMENT ON VIEW reporting.%I IS %L', one.view,
        (view_comments ->> base) || CASE WHEN base <> one.view THEN masked ELSE '' END
      );
      EXECUTE format(
        'COMMENT ON COLUMN reporting.%I.%I IS %L', one.view, one.column,
        coalesce(
          CASE WHEN base <> one.view THEN exceptions ->> ('masked.' || one.column) END,
          exceptions ->> (base || '.' || one.column), column_comments ->> one.column
        )
      );
    END IF;
  END LOOP;
END
$$;
