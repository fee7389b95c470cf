-- Sets the comment that a BI tool shows for each column. Each file calls this right after its views, with pairs of a
-- column and its comment. A column that means the same in most views is commented here.
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
          'Slug of the source, the platform organization that usage is read from. With a single source: default.'),
        ('workspace_id', 'The platform''s id of the workspace.'),
        ('workspace_name', 'Current name of the workspace.'),
        ('project_id',
          'The platform''s id of the project. (none): the platform gave no id. \(none): an id that is spelled (none). '
          'Null: the period is not loaded.'),
        ('project_name', 'Current name of the project; not unique.'),
        ('user_id',
          'The platform''s id of the user. (none): the platform gave no id. \(none): an id that is spelled (none). '
          'Null: the period is not loaded.'),
        ('api_key_short_key',
          'Short form of the API key, which identifies it. (none): the platform gave no key. \(none): a key that is '
          'spelled (none). Null: the period is not loaded.'),
        ('api_key_name',
          'Current description of the API key in the platform''s lists of keys; not unique. Null: no list could be '
          'read, or the description has an e-mail address.'),
        ('group_by', 'Dimension: workspace, project, user or api_key.'),
        ('dimension_id',
          'The platform''s id in this dimension. (none): the platform gave no id. \(none): an id that is spelled '
          '(none).'),
        ('dimension_name', 'Current name in this dimension. Null for users: their addresses are in dim_user.'),
        ('stride', 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).'),
        ('usage_date', 'UTC day.'),
        ('month_start', 'First day of the month.'),
        ('days_in_month', 'Days of the calendar month: 28 to 31.'),
        ('is_final',
          'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept '
          'as restatements.'),
        ('first_seen_at', 'Start of the earliest time bucket in which a response named it.'),
        ('last_seen_at', 'Start of the latest time bucket in which a response named it.'),
        ('period_start', 'Start of the time bucket.'),
        ('period_end', 'End of the time bucket, not included.'),
        ('traces',
          'Number of traces. Adds up over time and over the view''s own key, never across dimensions or strides. '
          'Null: not loaded.'),
        ('longlived_traces',
          'Long-lived traces among traces. They add up as traces do, over the ids of this view. An id with long-lived '
          'traces but no traces in the period has no row. Null: traces or long-lived traces are not loaded.'),
        ('shortlived_traces',
          'Short-lived traces among traces, kept for 14 days: traces less longlived_traces. They add up as traces do. '
          'Null: one of the two is not loaded, or tiers_status is inconsistent.'),
        ('tiers_status',
          'Whether both tiers can be used, in the words of coverage_status: the worse status of traces and long-lived '
          'traces. empty: there are no short-lived traces. inconsistent, before all others: there are more long-lived '
          'traces than traces, so the short-lived ones are not known. Either one was requested before the other, or '
          'the platform contradicts itself. Null: tiers are not loaded (USAGE_METERS).'),
        ('coverage_status',
          'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has '
          'no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no '
          'record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok '
          '(final).'),
        ('status',
          'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has '
          'no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no '
          'record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok '
          '(final).'),
        ('trace_tier',
          'Retention tier of the traces: longlived, or shortlived (all traces less the long-lived ones).'),
        ('fetched_at',
          'When the figures were requested from the platform, by the clock of this database. Null: not loaded.'),
        ('measure',
          'What the SKU counts: traces (all of them), longlived or shortlived traces; for deployments nodes_executed, '
          'agent_runs or agent_uptime_seconds; for sandboxes lcu, lsu, compute_standard_units or '
          'storage_standard_units.'),
        ('quantity',
          'Quantity that is charged at this price, in units of measure. Adds up over days, workspaces and volume tiers '
          'within one sku.'),
        ('is_reconciled',
          'Whether the day was compared with a complete CSV export of the platform, in this dimension and workspace, '
          'no difference from the export or a total remains, and the day has not changed since. If is_final is true '
          'too, close lists nothing about the day.'),
        ('reconciled_at',
          'When that export was requested, by the clock of this database. For hours: the oldest of the exports that '
          'they need. Null: not reconciled.'),
        ('totals_matched_at',
          'When a total of the platform was requested that includes the day and equals the sum of the stored days, '
          'none of which has changed since. Null: there is no such total, or the day still has a difference. A total '
          'proves the sum, an export proves each row.'),
        ('proved_at', 'The later of reconciled_at and totals_matched_at. Null: neither proves the day.'),
        ('is_month_over', 'Whether the calendar month has ended (UTC).'),
        ('closed_at', 'When the period was closed.'),
        ('sku', 'SKU of the imported price.'),
        ('unit_price', 'Imported price of one unit of measure, in currency.'),
        ('currency', 'ISO 4217 code of the imported price. Never add amounts of different currencies.'),
        ('estimated_cost',
          'Estimate in currency, from imported prices, without taxes and discounts. Adds up within one currency, and '
          'within one dimension.'),
        ('price_id',
          'Number of the imported price, as in dim_price. The price of a closed month may no longer be there.'),
        ('volume_tier', 'Step of the price that these traces fall into, from 1. 0: the price has no volume tiers.'),
        ('is_closed',
          'Whether the month is closed. A closed month keeps the cost that it was closed with. Later changes are '
          'adjustments in fct_close_cost.'),
        ('is_invoiced',
          'Whether an invoice of the platform charges by this measure on that day. False for runs, nodes and uptime of '
          'deployments since October 2026, which the platform charges by other units: never compare their cost with an '
          'invoice.'),
        ('usage_kind',
          'Kind of usage: traces, langsmith_deployments (the platform''s words), sandboxes or evaluators.'),
        ('BillingPeriodEnd', 'End of the UTC calendar month, not included.'),
        ('BillingPeriodStart', 'Start of the UTC calendar month.'),
        ('InvoiceIssuerName', 'Who invoices the usage: USAGE_INVOICE_ISSUER_NAME, or the provider.'),
        ('x_BillingMonth', 'First day of the billing period, a UTC calendar month.'),
        ('read_at', 'When this was last read from the platform.'),
        ('owner', 'Who pays: an owner of the owner file, or (unallocated) if no rule matches.'),
        ('cost_center', 'Cost centre of the owner, as the rule names it. (none): the rule names no cost centre.')
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
