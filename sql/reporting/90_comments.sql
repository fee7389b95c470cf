-- What a BI tool shows beside each column. The comment of a view stands beside the view. A column has one comment in all
-- views; `of` names the view in which it means something else, or `masked` for all twins without addresses.
DO $do$
DECLARE
  one record;
BEGIN
  FOR one IN
    WITH words (name, comment, of) AS (
      VALUES
        -- The source, the dimensions and time.
        ('source_id', $$Slug of the source, the platform organization that usage is read from: default with a single source.$$, ''),
        ('workspace_id', $$The platform's id of the workspace.$$, ''),
        ('workspace_name', $$Current name of the workspace.$$, ''),
        ('project_id', $$The platform's id of the project; (none) where the platform gave none, and \(none) for an id of that spelling; null where the period is not loaded.$$, ''),
        ('project_name', $$Current name of the project; not unique.$$, ''),
        ('user_id', $$The platform's id of the user; (none) where the platform gave none, and \(none) for an id of that spelling; null where the period is not loaded.$$, ''),
        ('user_email', $$Current e-mail address of the user, stored as USAGE_USER_EMAIL says.$$, ''),
        ('user_email', $$The start of the user's id instead of the address; null where no address is known.$$, 'masked'),
        ('api_key_short_key', $$Short form of the API key, which identifies it; (none) where the platform gave none, and \(none) for a key of that spelling; null where the period is not loaded.$$, ''),
        ('group_by', $$Dimension of the count: $$ || array_to_string(ARRAY[
          -- each dimension
          '{dimension}',
          -- end
          NULL
        ], ', ') || '.', ''),
        ('dimension_id', $$The platform's id in this dimension; (none) where the platform gave none, and \(none) for an id of that spelling.$$, ''),
        ('dimension_name', $$Current name in this dimension.$$, ''),
        ('dimension_name', $$Current name in this dimension; for a user the start of the id.$$, 'masked'),
        ('stride', $$Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).$$, ''),
        ('usage_date', $$UTC day.$$, ''),
        ('usage_hour', $$Start of the UTC hour.$$, ''),
        ('month_start', $$First day of the month.$$, ''),
        ('year_start', $$First day of the year.$$, ''),
        ('iso_year', $$ISO 8601 year of the week.$$, ''),
        ('iso_week', $$ISO 8601 week of the year.$$, ''),
        ('iso_weekday', $$1 is Monday, 7 is Sunday.$$, ''),
        ('period_start', $$Start of the time bucket.$$, ''),
        ('period_end', $$End of the time bucket, not included.$$, ''),
        ('period_start', $$Start of the requested range.$$, 'backfill_status'),
        ('period_end', $$End of the requested range, not included.$$, 'backfill_status'),
        ('first_seen_at', $$Start of the earliest bucket that named it.$$, ''),
        ('last_seen_at', $$Start of the latest bucket that named it.$$, ''),
        ('is_deleted', $$Whether the platform lists it as deleted. Its past usage stays.$$, ''),
        ('unlisted_since', $$Since when the platform's listing lacks it although it was not deleted. Check the access of the key.$$, ''),
        -- Figures and how far they can be trusted.
        ('traces', $$Number of traces. Adds up over time and over the view's own key, never across dimensions or strides. Null: not loaded.$$, ''),
        ('is_final', $$Whether the figure is final: it was fetched late enough and no failure overlaps it. Later changes are kept as restatements.$$, ''),
        ('coverage_status', $$The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.$$, ''),
        ('status', $$The first that applies: not_available, failed, missing, unverified, provisional, empty, ok.$$, ''),
        ('is_settled', $$Whether it is final: it was fetched at least USAGE_SETTLE_AFTER after the UTC day of its bucket ended, or it was final before.$$, ''),
        ('fetched_at', $$When it was requested from the platform, by the clock of this database.$$, ''),
        ('loaded_until', $$End of the latest loaded bucket.$$, ''),
        ('settled_until', $$End of the latest final bucket.$$, ''),
        ('lag_seconds', $$Seconds since the last request to the platform. Does not add up.$$, ''),
        -- Months.
        ('days_expected', $$Days of the month that are expected: from the data start on, every day that has ended, and today once it is loaded. Adds up over months of one workspace.$$, ''),
        ('days_loaded', $$Expected days that are loaded. Adds up over months of one workspace.$$, ''),
        ('is_complete', $$Whether every expected day is loaded. The current month is complete up to its last ended day.$$, ''),
        ('is_final', $$Whether the month is over and each of its days is final. Later changes are kept as restatements.$$, 'monthly'),
        ('closed_traces', $$Traces of the month when it was closed. Adds up over months, workspaces and ids of one dimension.$$, ''),
        ('adjustment_traces', $$Traces added or removed since the month was closed. Adds up as closed_traces do.$$, ''),
        ('current_traces', $$Traces of the month as stored today: closed_traces plus adjustment_traces. Adds up as closed_traces do.$$, ''),
        ('closed_at', $$When the month was closed.$$, ''),
        ('closed_traces', $$Traces of the workspace when the month was closed. Adds up over months and workspaces. Null: left out.$$, 'usage_month_close_workspace'),
        ('closed_traces', $$Traces that this price applied to when the month was closed. Adds up within one sku.$$, 'usage_month_close_cost'),
        ('is_left_out', $$Whether the workspace was left out when the month was closed: its totals are not in the close.$$, ''),
        ('settle_after_seconds', $$USAGE_SETTLE_AFTER when the month was closed. Null: closed by a release that did not keep it.$$, ''),
        ('accepted_disagreements', $$Days x dimensions x workspaces of the close on which the platform contradicts itself. The same in each row of a month.$$, ''),
        ('sku', $$SKU of the imported price.$$, ''),
        ('unit_price', $$The imported unit price.$$, ''),
        ('currency', $$ISO 4217 code of the imported price. Never add up over currencies.$$, ''),
        ('closed_cost', $$Estimate when the month was closed: unit price times traces. Adds up within one currency.$$, ''),
        ('adjustment_cost', $$What later prices and counts added or removed. Adds up within one currency.$$, ''),
        ('current_cost', $$Estimate of today: closed_cost plus adjustment_cost. Adds up within one currency.$$, ''),
        ('has_other_price', $$Whether another SKU has a price on that day. False: the traces of the day have no price at all.$$, ''),
        ('unpriced_skus', $$SKUs with a price for the workspace on other days only, with commas between. Null: no SKU has a price for it on any day.$$, ''),
        -- Changes and differences.
        ('old_traces', $$Count before the change; null: no record. Does not add up: one bucket may change more than once.$$, ''),
        ('new_traces', $$Count after the change; null: no record. Does not add up: one bucket may change more than once.$$, ''),
        ('restated_at', $$When the change was stored.$$, ''),
        ('stored_traces', $$Stored count; null: no record. Does not add up: one bucket may differ from more than one total.$$, ''),
        ('export_traces', $$Count in the CSV export, or the control total that the stored days should add up to; null: no record. Does not add up: one bucket may differ from more than one total.$$, ''),
        ('kind', $$Compared with the CSV export: missing_in_store, missing_in_export, traces_differ, bucket_end_differs, name_differs. Checked against totals: stride_total (days against a window of weeks, months or years), grouping_total (a dimension against the workspace).$$, ''),
        ('state', $$open: will be fetched again; platform_disagrees: fetched twice, the platform contradicts itself; repaired: the stored count was outdated and was replaced; unattributed: the workspace has more traces than the dimension attributes; closed: a later check did not find it; withdrawn: fetched again, and the platform agrees with what was stored: nothing was changed; not_configured: the workspace is no longer read; hours_dropped: the hour is no longer kept.$$, ''),
        ('export_says', $$Name or end of the bucket in the CSV export, where it differs; null for names of users.$$, ''),
        ('found_at', $$When it was first found.$$, ''),
        ('workspace_traces', $$Traces of the day by workspace; null: not loaded. Adds up over days and workspaces within one group_by.$$, ''),
        ('attributed_traces', $$Traces of the day whose records carry an id in the dimension; null: not loaded. Adds up over days and workspaces within one group_by.$$, ''),
        ('unattributed_traces', $$Traces of the day without an id in the dimension: records without one, and what no record names. Null unless both counts are final. Adds up over days and workspaces within one group_by.$$, ''),
        ('observed_on', $$UTC day on which the change was found.$$, ''),
        ('was_settled', $$Whether the count was final when it changed.$$, ''),
        ('age_hours', $$Upper end of the class of ages, in hours since the end of the bucket.$$, ''),
        ('changes', $$Counts that changed. Adds up over days of observation and classes within one group_by and stride.$$, ''),
        ('traces_moved', $$Sum of the absolute differences. Adds up over days of observation and classes within one group_by and stride.$$, ''),
        -- Backfills.
        ('backfill_id', $$Number of the backfill, as the command line shows it.$$, ''),
        ('state', $$running, paused, cancelled or done.$$, 'backfill_status'),
        ('done', $$Fetch tasks that are loaded. Adds up over backfills.$$, ''),
        ('failed', $$Fetch tasks that failed; `backfill show` lists them. Adds up over backfills.$$, ''),
        ('total', $$All fetch tasks, waiting and cancelled ones included. Adds up over backfills.$$, ''),
        ('created_at', $$When the backfill was requested.$$, ''),
        ('finished_at', $$When it was done or cancelled; null before.$$, ''),
        -- Meter probes.
        ('probe_id', $$Number of the probe.$$, ''),
        ('state', $$sending, waiting, matched, late (billed right, but later than the limit), differs or inconclusive.$$, 'metering_probe'),
        ('expected_traces', $$Traces that the probe sent.$$, ''),
        ('billed_traces', $$By how much the figure of this dimension rose. In all dimensions but project it includes the traffic of others.$$, ''),
        ('others_added', $$By how much the figures of all other projects rose meanwhile: up to so much of the rise may be theirs. 0: the comparison is exact. Else whom the traces were billed to is not decided.$$, ''),
        ('others_removed', $$By how much the figures of other projects fell meanwhile.$$, ''),
        ('difference', $$Traces billed in excess (negative: too few), in all or to the expected id, whatever others did; 0: as expected.$$, ''),
        ('expected_id', $$The id that the traces must be billed to; null where it is not known.$$, ''),
        ('risen_ids', $$Ids whose figure changed, with the change; at most ten. Others' traffic is among them.$$, ''),
        ('started_at', $$When the probe began.$$, ''),
        ('sent_at', $$When the last trace had been sent.$$, ''),
        ('first_billed_at', $$When an answer first held some of the traces; null: none did.$$, ''),
        ('billed_at', $$When an answer first held all of the traces, and they stayed since; null: none did.$$, ''),
        ('finished_at', $$When the probe had its verdict; null before.$$, 'metering_probe'),
        ('delay_ms', $$Milliseconds from the last trace sent to billed_at. Billing took at most so long.$$, ''),
        ('first_delay_ms', $$Milliseconds from the last trace sent to first_billed_at.$$, ''),
        ('late_after_ms', $$Limit of delay_ms, in milliseconds; null: there is none.$$, ''),
        ('code', $$Why the probe ended without a verdict, or what differs; null otherwise.$$, ''),
        ('message', $$The code in words.$$, ''),
        -- FOCUS.
        ('BilledCost', $$Estimate: unit price times traces, exactly. Adds up within one BillingCurrency.$$, ''),
        ('BillingAccountId', $$The platform's id of the organization; the slug of the source if the platform gives none.$$, ''),
        ('BillingAccountName', $$Name of the organization; the slug of the source if the platform gives none.$$, ''),
        ('BillingAccountType', $$Organization.$$, ''),
        ('BillingCurrency', $$ISO 4217 code of the imported price. Never add up over currencies.$$, ''),
        ('BillingPeriodEnd', $$End of the UTC calendar month, not included.$$, ''),
        ('BillingPeriodStart', $$Start of the UTC calendar month.$$, ''),
        ('ChargeCategory', $$Usage.$$, ''),
        ('ChargeClass', $$Null: not a correction of an earlier billing period. A changed count changes the estimate in place.$$, ''),
        ('ChargeDescription', $$The charge in words.$$, ''),
        ('ChargeFrequency', $$Usage-Based.$$, ''),
        ('ChargePeriodEnd', $$End of the UTC day, not included.$$, ''),
        ('ChargePeriodStart', $$Start of the UTC day.$$, ''),
        ('ConsumedQuantity', $$Traces. Adds up over days and workspaces within one SkuId: two SKUs charge the same traces.$$, ''),
        ('ConsumedUnit', $$Traces.$$, ''),
        ('ContractedCost', $$Same as BilledCost: ContractedUnitPrice times PricingQuantity.$$, ''),
        ('ContractedUnitPrice', $$The imported unit price.$$, ''),
        ('EffectiveCost', $$Same as BilledCost: nothing is paid in advance.$$, ''),
        ('InvoiceId', $$Null: an estimate is on no invoice.$$, ''),
        ('InvoiceIssuerName', $$Host of the platform's billing API.$$, ''),
        ('ListCost', $$Same as BilledCost: only imported prices are known, no list prices.$$, ''),
        ('ListUnitPrice', $$The imported unit price: no list prices are known.$$, ''),
        ('PricingCategory', $$Standard.$$, ''),
        ('PricingQuantity', $$Traces. Adds up as ConsumedQuantity does.$$, ''),
        ('PricingUnit', $$Traces.$$, ''),
        ('ProviderName', $$Host of the platform's billing API.$$, ''),
        ('PublisherName', $$Host of the platform's billing API.$$, ''),
        ('ServiceCategory', $$AI and Machine Learning.$$, ''),
        ('ServiceName', $$Agent platform traces.$$, ''),
        ('ServiceSubcategory', $$AI Platforms.$$, ''),
        ('SkuId', $$SKU of the imported price.$$, ''),
        ('SkuMeter', $$Traces.$$, ''),
        ('SkuPriceId', $$Number of the imported price, and of the volume tier where it has tiers: one unit price each.$$, ''),
        ('SubAccountId', $$The platform's id of the workspace.$$, ''),
        ('SubAccountName', $$Current name of the workspace.$$, ''),
        ('SubAccountType', $$Workspace.$$, ''),
        ('Tags', $$JSON object as text; the platform's usage has no tags.$$, ''),
        ('ServiceProviderName', $$ProviderName, as FOCUS 1.3 calls it.$$, ''),
        ('HostProviderName', $$Host of the platform's billing API (FOCUS 1.3).$$, ''),
        ('x_SourceId', $$Slug of the source, the platform organization that usage is read from: default with a single source.$$, ''),
        ('x_UsageDate', $$UTC day of the charge, for filters and joins with the other views.$$, ''),
        ('x_IsFinal', $$Whether the traces of the day are final. False: provisional, the estimate may still change.$$, ''),
        ('x_CoverageStatus', $$Status of the day's traces, the first that applies: failed, unverified, provisional, ok.$$, '')
    )
    SELECT DISTINCT ON (c.oid, a.attnum) c.relname AS view, a.attname AS "column", words.comment
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    JOIN words ON words.name = a.attname AND (
      words.of = '' OR words.of = regexp_replace(c.relname, '_masked$', '')
      OR (words.of = 'masked' AND c.relname LIKE '%\_masked')
      OR (words.of = 'monthly' AND c.relname LIKE 'fct\_usage\_%\_monthly%')
    )
    -- A comment that names a key marks the views that are ours.
    WHERE c.relnamespace = 'reporting'::regnamespace AND c.relkind = 'v' AND obj_description(c.oid) LIKE '%(key: %'
    ORDER BY c.oid, a.attnum, words.of = ''
  LOOP
    EXECUTE format('COMMENT ON COLUMN reporting.%I.%I IS %L', one.view, one.column, one.comment);
  END LOOP;
END
$do$;
