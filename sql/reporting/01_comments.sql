-- What a BI tool shows beside each column. Each file calls this right after its views: pairs of a column and its
-- comment. A column that means the same in most views is commented here.
CREATE OR REPLACE PROCEDURE usage.comment_columns(views regclass[], VARIADIC own text[] DEFAULT '{}')
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  one record;
BEGIN
  FOR one IN
    WITH shared (name, comment) AS (
      VALUES
        ('source_id',
          'Slug of the source, the platform organization that usage is read from: default with a single source.'),
        ('workspace_id', 'The platform''s id of the workspace.'),
        ('workspace_name', 'Current name of the workspace.'),
        ('project_id',
          'The platform''s id of the project; (none) where the platform gave none, and \(none) for an id of that '
          'spelling; null where the period is not loaded.'),
        ('project_name', 'Current name of the project; not unique.'),
        ('user_id',
          'The platform''s id of the user; (none) where the platform gave none, and \(none) for an id of that '
          'spelling; null where the period is not loaded.'),
        ('api_key_short_key',
          'Short form of the API key, which identifies it; (none) where the platform gave none, and \(none) for a '
          'key of that spelling; null where the period is not loaded.'),
        ('api_key_name',
          'Current description of the API key in the platform''s lists of keys; not unique. Null where no list could be '
          'read or the description has an e-mail address.'),
        ('group_by', 'Dimension of the count: workspace, project, user, api_key.'),
        ('dimension_id',
          'The platform''s id in this dimension; (none) where the platform gave none, and \(none) for an id of that '
          'spelling.'),
        ('dimension_name', 'Current name in this dimension. Null for users: their addresses are in dim_user.'),
        ('stride', 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).'),
        ('usage_date', 'UTC day.'),
        ('month_start', 'First day of the month.'),
        ('days_in_month', 'Days of the calendar month: 28 to 31.'),
        ('is_final',
          'Whether the figure is final: it was fetched late enough and no failure overlaps it. Later changes are '
          'kept as restatements.'),
        ('first_seen_at', 'Start of the earliest bucket that named it.'),
        ('last_seen_at', 'Start of the latest bucket that named it.'),
        ('period_start', 'Start of the time bucket.'),
        ('period_end', 'End of the time bucket, not included.'),
        ('traces',
          'Number of traces. Adds up over time and over the view''s own key, never across dimensions or strides. '
          'Null: not loaded.'),
        ('longlived_traces',
          'Traces of them that are kept long. Adds up as traces do, over the ids of this view: an id that has '
          'long-lived traces and no traces in the period has no row. Null: they or the traces are not loaded.'),
        ('shortlived_traces',
          'Traces of them that are kept for 14 days: traces less longlived_traces. Adds up as traces do. Null: one of '
          'both is not loaded, or tiers_status is inconsistent.'),
        ('tiers_status',
          'How both tiers are loaded, in the words of coverage_status: that of the worse of traces and long-lived '
          'traces; empty: no short-lived ones. Before all of them inconsistent: more long-lived traces than traces, so '
          'the short-lived ones are not known; one was requested before the other, or the platform contradicts '
          'itself. Null: tiers are not loaded (USAGE_METERS).'),
        ('coverage_status',
          'The first that applies. Not to be used: not_available (the server has no such figures), failed (the last '
          'response could not be used), missing (not loaded yet), unverified (no record, and nothing proves access). '
          'To be used: provisional (may still change), empty (final, and zero), ok (final).'),
        ('status',
          'The first that applies. Not to be used: not_available (the server has no such figures), failed (the last '
          'response could not be used), missing (not loaded yet), unverified (no record, and nothing proves access). '
          'To be used: provisional (may still change), empty (final, and zero), ok (final).'),
        ('trace_tier',
          'Retention tier of the traces: longlived, or shortlived, which is all traces less the long-lived ones.'),
        ('fetched_at', 'When it was requested from the platform, by the clock of this database.'),
        ('measure',
          'What the SKU counts: traces (all of them), longlived or shortlived traces; of deployments '
          'nodes_executed, agent_runs or agent_uptime_seconds; of sandboxes lcu or lsu.'),
        ('quantity',
          'What is charged at this price, in units of measure. Adds up over days, workspaces and volume tiers '
          'within one sku.'),
        ('is_reconciled',
          'Whether this day of this dimension and workspace was compared with a whole CSV export of the platform, '
          'without a difference left from it or from a total, and has not changed since. With is_final: close lists '
          'nothing about this day.'),
        ('reconciled_at',
          'When that export was requested, by the clock of this database; of hours the oldest of those needed. '
          'Null: not reconciled.'),
        ('totals_matched_at',
          'When a total of the platform was requested that holds the day and equals the sum of the stored days, '
          'none of which has changed since. Null: no such total, or a difference is left on the day. A total proves '
          'its sum, an export each row.'),
        ('proved_at', 'The later of reconciled_at and totals_matched_at; null: neither proves the day.'),
        ('is_month_over', 'Whether the calendar month has ended (UTC).'),
        ('closed_at', 'When the period was closed.'),
        ('sku', 'SKU of the imported price.'),
        ('unit_price', 'The imported unit price.'),
        ('currency', 'ISO 4217 code of the imported price. Never add up over currencies.'),
        ('estimated_cost',
          'Estimate from imported prices, without taxes and discounts. Adds up within one currency, and within one '
          'dimension.'),
        ('price_id',
          'Number of the imported price, as in dim_price. The price of a closed month may be gone from there.'),
        ('volume_tier', 'Step of the price that these traces fall into, from 1; 0: the price has no volume tiers.'),
        ('is_closed',
          'Whether the month is closed: then it keeps the cost that it was closed with. Later changes are '
          'adjustments in fct_close_cost.'),
        ('is_invoiced',
          'Whether an invoice of the platform counts by this measure on that day. False: what the runs, nodes or '
          'uptime of deployments cost since October 2026, which the platform charges by other units. Never compare '
          'that with an invoice.'),
        ('usage_kind',
          'Kind of usage: traces, langsmith_deployments (the platform''s words), sandboxes or evaluators.'),
        ('BillingPeriodEnd', 'End of the UTC calendar month, not included.'),
        ('BillingPeriodStart', 'Start of the UTC calendar month.'),
        ('InvoiceIssuerName', 'Who invoices the usage: USAGE_INVOICE_ISSUER_NAME, or the provider.'),
        ('x_BillingMonth', 'First day of the billing period, a UTC calendar month.'),
        ('read_at', 'When the platform was last asked.'),
        ('owner', 'Who pays: an owner of the owner file, or (unallocated) where no rule of it matches.'),
        ('cost_center', 'Cost centre of the owner, as the rule names it; (none) where it names none.')
    ),
    own_comment AS (
      SELECT own[n] AS name, own[n + 1] AS comment FROM generate_series(1, cardinality(own), 2) n
    ),
    view_column AS (
      SELECT a.attrelid::regclass AS view, a.attname::text AS name
      FROM pg_attribute a
      WHERE a.attrelid = ANY (views) AND a.attnum > 0
    )
    SELECT v.view, coalesce(v.name, o.name) AS name, coalesce(o.comment, s.comment) AS comment
    FROM view_column v
    FULL JOIN own_comment o USING (name)
    LEFT JOIN shared s ON s.name = v.name
  LOOP
    IF one.view IS NULL THEN
      RAISE EXCEPTION 'No view of % has column %.', views, one.name;
    END IF;
    IF one.comment IS NULL THEN
      RAISE EXCEPTION 'Column % of % has no comment.', one.name, one.view;
    END IF;
    EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', one.view, one.name, one.comment);
  END LOOP;
END
$$;
