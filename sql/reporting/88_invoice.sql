-- Invoices beside our bill (src/features/invoice).

-- Current versions of invoices, each with its newest match and its last settlement.
CREATE OR REPLACE VIEW usage.compared_invoice AS
SELECT i.invoice_id, i.source_id, i.issuer, i.number, i.status, i.issued_on, i.due_on, i.terms, i.account,
       i.purchase_order, i.currency, i.corrects_number, i.total, i.imported_at, s.slug, m.match_id, m.bill, m.remainder, t.settled_at, t.reason
FROM usage.invoice i
JOIN usage.source s USING (source_id)
LEFT JOIN LATERAL (
  SELECT * FROM usage.invoice_match m WHERE m.invoice_id = i.invoice_id
  ORDER BY m.confirmed_at DESC, m.match_id DESC LIMIT 1
) m ON true
LEFT JOIN LATERAL (
  SELECT * FROM usage.invoice_settlement t WHERE t.invoice_id = i.invoice_id ORDER BY t.settlement_id DESC LIMIT 1
) t ON true
WHERE i.replaced_at IS NULL;

-- Names of workspaces, also of those that no sync loads.
CREATE OR REPLACE VIEW usage.invoice_workspace AS
SELECT source_id, workspace_id AS workspace, workspace_name AS name FROM usage.shown_workspace
UNION ALL
SELECT u.source_id, u.workspace, max(u.name) FROM usage.unloaded_workspace u
WHERE NOT EXISTS (SELECT FROM usage.shown_workspace w WHERE w.source_id = u.source_id AND w.workspace_id = u.workspace)
GROUP BY u.source_id, u.workspace;

CREATE OR REPLACE VIEW reporting_detail.invoice_comparison AS
SELECT i.slug AS source_id, i.issuer, i.number AS invoice_number, c.place AS cause_number, i.status, i.issued_on,
       i.currency, i.total AS invoice_total, i.bill AS bill_total, (i.total - i.bill)::numeric(38, 10) AS difference, c.cause, c.why,
       c.amount, c.sku, c.period_start AS cause_start, c.period_end AS cause_end, c.workspace AS cause_workspace,
       c.quantity::numeric(38, 10) AS quantity, c.line_number, i.settled_at, i.reason AS settlement_reason
FROM usage.compared_invoice i
JOIN usage.invoice_cause c USING (match_id);
COMMENT ON VIEW reporting_detail.invoice_comparison IS
  'Why an invoice differs from our bill of the same usage. Grain: invoice x cause, of the newest comparison (key: '
  'source_id, issuer, invoice_number, cause_number). The amounts of an invoice add up to its difference, to the last '
  'digit. An invoice that was never compared, or is equal to the bill, has no row.';
CALL usage.comment_columns('{reporting_detail.invoice_comparison}',
  'issuer', 'Who issued the invoice.',
  'invoice_number', 'Number of the invoice.',
  'cause_number', 'Place of the cause in the order in which causes are worked out, from 1.',
  'status', 'Whether the invoice is open (a draft), issued or voided.',
  'issued_on', 'Day of issue.',
  'currency', 'ISO 4217 code of the invoice. Never add amounts of different currencies.',
  'invoice_total', 'Total of the invoice, with tax. The same in each row of an invoice: never add up.',
  'bill_total',
    'Our bill of the usage that the invoice charges, exact. The same in each row of an invoice: never add up.',
  'difference', 'invoice_total less bill_total. The same in each row of an invoice: never add up.',
  'cause',
    'What the amount comes from: rounding, period (another period), changes (after the day of issue), upgrades, '
    'days_open (days that are not loaded or not final), unread_workspace (one that no sync loads), counted_over '
    '(volume tiers of the organization or of each workspace), price, not_reported (usage that no API reports), seat, '
    'credit, tax, adjustment, or unexplained.',
  'why', 'What is unexplained. Null: the amount is explained.',
  'amount', 'How much higher the invoice is because of the cause. Negative: lower. Adds up to difference.',
  'sku', 'SKU of our bill. Null: the cause is no usage.',
  'cause_start', 'First day of the usage. Null: the cause has no period.',
  'cause_end', 'Day after the last day of the usage.',
  'cause_workspace',
    'The platform''s id of the workspace, or the invoice''s word for one that is not known here. Null: all workspaces.',
  'quantity', 'How much more usage the invoice has because of the cause. Null: the same usage.',
  'line_number', 'Line of the invoice. Null: the cause is not about one line.',
  'settled_at', 'When the invoice was last settled. Null: nobody has settled it.',
  'settlement_reason', 'Why what is unexplained was accepted.'
);

CREATE OR REPLACE VIEW reporting_detail.fct_invoice_line AS
SELECT i.slug AS source_id, i.issuer, i.number AS invoice_number, l.line_number, i.status, i.issued_on, i.currency,
       l.kind, u.line_text AS sum_text, l.line_text, l.quantity, l.unit, l.unit_price, l.amount, m.measure, m.sku,
       coalesce(m.period_start, l.period_start) AS line_start, coalesce(m.period_end, l.period_end) AS line_end,
       l.workspace AS invoice_workspace, m.workspace AS matched_workspace, m.state, m.why,
       m.quantity_here::numeric(38, 10) AS quantity_here, m.unit_price_here, m.cost_here
FROM usage.compared_invoice i
JOIN usage.invoice_line l USING (invoice_id)
LEFT JOIN usage.invoice_line u ON u.invoice_id = l.invoice_id AND u.line_number = l.part_of
LEFT JOIN usage.invoice_match_line m ON m.match_id = i.match_id AND m.line_number = l.line_number
WHERE NOT l.is_sum;
COMMENT ON VIEW reporting_detail.fct_invoice_line IS
  'What an invoice charges, line by line, beside our bill. Grain: invoice x line, without sum rows (key: source_id, '
  'issuer, invoice_number, line_number). Amounts add up within one currency; they are the invoice''s, not an estimate.';
CALL usage.comment_columns('{reporting_detail.fct_invoice_line}',
  'issuer', 'Who issued the invoice.',
  'invoice_number', 'Number of the invoice.',
  'line_number', 'Place of the line on the invoice, from 1.',
  'status', 'Whether the invoice is open (a draft), issued or voided. A voided invoice charges nothing.',
  'issued_on', 'Day of issue.',
  'currency', 'ISO 4217 code of the invoice. Never add amounts of different currencies.',
  'kind', 'What the line charges: usage, seat, commitment, drawdown, credit, discount, tax or adjustment.',
  'sum_text', 'Text of the sum row that the line is a part of. Null: it is a line of its own.',
  'line_text', 'Text of the line.',
  'quantity', 'Quantity on the invoice, in unit. Null: the invoice does not write it.',
  'unit', 'Unit of quantity as the invoice writes it.',
  'unit_price', 'Price of one unit on the invoice. Null: the invoice does not write it.',
  'amount', 'Amount of the line in currency.',
  'measure', 'What the line counts here. Null: it is not compared.',
  'sku', 'SKU of our bill that the line is compared with. Null: it is not compared.',
  'line_start', 'First day that the line charges. Null: not known.',
  'line_end', 'Day after the last day that the line charges.',
  'invoice_workspace', 'Workspace as the invoice writes it. Null: the whole organization.',
  'matched_workspace',
    'The platform''s id of the workspace, or the invoice''s word for one that is not known here. Null: the whole '
    'organization.',
  'state',
    'Result of the newest comparison: agrees, within_tolerance, quantity_differs, price_differs, only_on_invoice or '
    'not_comparable. Null: never compared.',
  'why', 'Why the line is not comparable.',
  'quantity_here', 'Quantity on our bill. Null: our bill has no such line.',
  'unit_price_here', 'Price on our bill. Null: our bill has no such line.',
  'cost_here', 'Exact cost on our bill. Adds up within one currency. Null: our bill has no such line.'
);

-- Digits after the point of a currency's smallest unit, by ISO 4217, as minorDigits in src/core/domain/usage/amount.ts.
CREATE OR REPLACE FUNCTION usage.minor_digits(currency text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE
    WHEN currency = ANY ('{BIF,CLP,DJF,GNF,ISK,JPY,KMF,KRW,PYG,RWF,UGX,UYI,VND,VUV,XAF,XOF,XPF}') THEN 0
    WHEN currency = ANY ('{BHD,IQD,JOD,KWD,LYD,OMR,TND}') THEN 3
    ELSE 2
  END
$$;

-- Says who pays which line of an invoice, in whole units of its currency. All parts are the rounded total: each is
-- rounded down, and the units that are left go to those that lost the most. A function, because the costs of the
-- owners are read for the months of one invoice.
CREATE OR REPLACE FUNCTION usage.invoice_parts(invoice integer)
RETURNS TABLE (line_number integer, owner text, cost_center text, amount numeric)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  WITH compared AS MATERIALIZED (
    SELECT *, 10 ^ usage.minor_digits(currency)::numeric AS units FROM usage.compared_invoice WHERE invoice_id = invoice
  ),
  charged AS MATERIALIZED (
    SELECT l.line_number, l.amount, m.sku, m.billed_start, m.billed_end, coalesce(m.workspace, '') AS workspace,
           coalesce(m.divide, 'usage') AS divide
    FROM compared i
    JOIN usage.invoice_line l USING (invoice_id)
    LEFT JOIN usage.invoice_match_line m ON m.match_id = i.match_id AND m.line_number = l.line_number
    WHERE NOT l.is_sum
  ),
  line AS (
    SELECT * FROM charged
    UNION ALL
    -- The part of the total that no line has.
    SELECT 0, i.total - coalesce((SELECT sum(c.amount) FROM charged c), 0), NULL, NULL, NULL, '', 'usage'
    FROM compared i
  ),
  period AS (
    SELECT DISTINCT billed_start, billed_end FROM charged WHERE billed_start IS NOT NULL
    UNION ALL
    SELECT (usage.month_of(issued_on) - interval '1 month')::date, usage.month_of(issued_on) FROM compared
    WHERE NOT EXISTS (SELECT FROM charged WHERE billed_start IS NOT NULL)
  ),
  used AS MATERIALIZED (
    SELECT p.billed_start, p.billed_end, c.sku, coalesce(c.workspace_id, '') AS workspace, c.owner, c.cost_center,
           sum(greatest(c.cost, 0)) AS cost, sum(greatest(c.quantity, 0)) AS quantity
    FROM compared i
    CROSS JOIN period p
    JOIN usage.owned_cost c
      ON c.slug = i.slug AND c.usage_date >= p.billed_start AND c.usage_date < p.billed_end
    GROUP BY GROUPING SETS (
      (p.billed_start, p.billed_end, c.sku, c.workspace_id, c.owner, c.cost_center),
      (p.billed_start, p.billed_end, c.sku, c.owner, c.cost_center)
    )
  ),
  payee AS (
    SELECT owner, cost_center, sum(cost) AS weight FROM used WHERE workspace = '' GROUP BY owner, cost_center
    HAVING sum(cost) > 0
  ),
  weighed AS (
    -- Usage without costs is divided by its quantity.
    SELECT l.line_number, u.owner, u.cost_center,
           CASE WHEN bool_or(u.cost > 0) OVER (PARTITION BY l.line_number) THEN u.cost ELSE u.quantity END AS weight
    FROM line l
    JOIN used u USING (billed_start, billed_end, sku, workspace)
    WHERE l.divide = 'usage'
    UNION ALL
    SELECT l.line_number, p.owner, p.cost_center, CASE l.divide WHEN 'even' THEN 1 ELSE p.weight END
    FROM line l
    CROSS JOIN payee p
    WHERE l.divide = 'even' OR (l.divide = 'usage' AND l.sku IS NULL)
    UNION ALL
    SELECT l.line_number, s.part[1], coalesce(p.cost_center, '(none)'), s.part[2]::numeric
    FROM line l
    CROSS JOIN LATERAL regexp_matches(l.divide, '\s*([^;]+?)\s*=\s*([0-9.]+)', 'g') s (part)
    LEFT JOIN (SELECT owner, min(cost_center) AS cost_center FROM payee GROUP BY owner) p ON p.owner = s.part[1]
  ),
  shared AS (
    SELECT l.line_number, coalesce(w.owner, '(unallocated)') AS owner, coalesce(w.cost_center, '(none)') AS cost_center,
           l.amount, coalesce(w.weight, 1) AS weight,
           sum(coalesce(w.weight, 1)) OVER (line ORDER BY w.owner, w.cost_center) AS ends,
           sum(coalesce(w.weight, 1)) OVER line AS whole
    FROM line l
    LEFT JOIN weighed w ON w.line_number = l.line_number AND w.weight > 0
    WHERE l.amount <> 0
    WINDOW line AS (PARTITION BY l.line_number)
  ),
  part AS (
    SELECT s.line_number, s.owner, s.cost_center, i.units,
           (round(s.amount * s.ends / s.whole, 10) - round(s.amount * (s.ends - s.weight) / s.whole, 10)) * i.units
             AS exact,
           round(i.total, usage.minor_digits(i.currency)) * i.units AS total
    FROM shared s
    CROSS JOIN compared i
  )
  SELECT r.line_number, r.owner, r.cost_center, (floor(r.exact) + (r.place <= r.left_over)::integer) / r.units
  FROM (
    SELECT *, row_number() OVER (ORDER BY floor(exact) - exact, line_number, owner, cost_center) AS place,
           total - sum(floor(exact)) OVER () AS left_over
    FROM part
  ) r
  WHERE floor(r.exact) + (r.place <= r.left_over)::integer <> 0
$$;

CREATE OR REPLACE VIEW reporting_detail.fct_invoice_owner AS
SELECT i.slug AS source_id, i.issuer, i.number AS invoice_number, i.status, i.issued_on, i.currency, p.owner,
       p.cost_center, p.line_number,
       CASE WHEN p.line_number = 0 THEN 'Total less all lines' ELSE concat_ws(', ', u.line_text, l.line_text) END
         AS line_text,
       l.kind, p.amount::numeric(38, 10) AS amount, i.settled_at
FROM usage.compared_invoice i
CROSS JOIN LATERAL usage.invoice_parts(i.invoice_id) p
LEFT JOIN usage.invoice_line l ON l.invoice_id = i.invoice_id AND l.line_number = p.line_number
LEFT JOIN usage.invoice_line u ON u.invoice_id = i.invoice_id AND u.line_number = l.part_of
WHERE i.status <> 'voided' AND i.match_id IS NOT NULL;
COMMENT ON VIEW reporting_detail.fct_invoice_owner IS
  'Who pays each line of an invoice. Grain: invoice x line x owner x cost centre (key: source_id, issuer, '
  'invoice_number, line_number, owner, cost_center). The amounts of an invoice add up to its total, to the cent. Lines '
  'of usage are divided by what the owners'' usage costs, others by the rules of invoices, by the newest comparison. '
  'Name the invoice in a filter: each is computed. Voided invoices, and those that were never compared, have no row.';
CALL usage.comment_columns('{reporting_detail.fct_invoice_owner}',
  'issuer', 'Who issued the invoice.',
  'invoice_number', 'Number of the invoice.',
  'status', 'Whether the invoice is open (a draft) or issued.',
  'issued_on', 'Day of issue.',
  'currency', 'ISO 4217 code of the invoice. Never add amounts of different currencies.',
  'line_number', 'Place of the line on the invoice, from 1. 0: the part of the total that no line has.',
  'line_text', 'Text of the line, after that of its sum row.',
  'kind', 'What the line charges: usage, seat, commitment, drawdown, credit, discount, tax or adjustment.',
  'amount', 'What the owner pays of the line, in whole cents of currency. Adds up to the total of the invoice.',
  'settled_at', 'When the invoice was last settled. Null: nobody has settled it.'
);

-- It follows the working drafts of FOCUS 1.4 of February to May 2026: nobody compared it with the released text.
CREATE OR REPLACE VIEW reporting_detail.focus_1_4_invoice_detail AS
SELECT l.amount AS "BilledCost", coalesce(i.account, p.account_id) AS "BillingAccountId",
       i.currency AS "BillingCurrency",
       (d.month_start + interval '1 month') AT TIME ZONE 'UTC' AS "BillingPeriodEnd",
       d.month_start::timestamp AT TIME ZONE 'UTC' AS "BillingPeriodStart",
       CASE l.kind WHEN 'usage' THEN 'Usage' WHEN 'tax' THEN 'Tax' WHEN 'seat' THEN 'Purchase'
            WHEN 'commitment' THEN 'Purchase' WHEN 'adjustment' THEN 'Adjustment' ELSE 'Credit' END
         AS "ChargeCategory",
       i.imported_at AS "InvoiceDetailCreated", concat_ws(', ', u.line_text, l.line_text) AS "InvoiceDetailDescription",
       jsonb_strip_nulls(jsonb_build_object(
         'x_SubAccountId', m.workspace, 'x_SkuId', m.sku, 'x_ChargePeriodStart', l.period_start,
         'x_ChargePeriodEnd', l.period_end
       ))::text AS "InvoiceDetailGrain",
       i.number || '-' || l.line_number AS "InvoiceDetailId", i.imported_at AS "InvoiceDetailLastUpdated",
       i.number AS "InvoiceId", i.issued_on::timestamp AT TIME ZONE 'UTC' AS "InvoiceIssueDate",
       initcap(i.status) AS "InvoiceIssueStatus", i.issuer AS "InvoiceIssuerName", i.currency AS "PaymentCurrency",
       l.amount AS "PaymentCurrencyBilledCost",
       i.number || '-' || l.line_number AS "PaymentCurrencyInvoiceDetailId",
       i.due_on::timestamp AT TIME ZONE 'UTC' AS "PaymentDueDate", coalesce(i.terms, 'Not stated') AS "PaymentTerms",
       i.purchase_order AS "PurchaseOrderNumber", coalesce(i.corrects_number, i.number) AS "ReferenceInvoiceId",
       i.slug AS "x_SourceId"
FROM usage.compared_invoice i
JOIN usage.provider p USING (source_id)
JOIN usage.invoice_line l USING (invoice_id)
LEFT JOIN usage.invoice_line u ON u.invoice_id = l.invoice_id AND u.line_number = l.part_of
LEFT JOIN usage.invoice_match_line m ON m.match_id = i.match_id AND m.line_number = l.line_number
CROSS JOIN LATERAL (
  SELECT usage.month_of(coalesce(i.issued_on, (i.imported_at AT TIME ZONE 'UTC')::date)) AS month_start
) d
WHERE NOT l.is_sum;
COMMENT ON VIEW reporting_detail.focus_1_4_invoice_detail IS
  'What invoices charge, in the columns of FOCUS 1.4 InvoiceDetail. Grain: invoice x line, without sum rows (key: '
  'x_SourceId, InvoiceIssuerName, InvoiceDetailId). The billing period is the month of issue. These are invoiced '
  'amounts, with tax and credits.';
CALL usage.comment_columns('{reporting_detail.focus_1_4_invoice_detail}',
  'BilledCost', 'Amount of the line in BillingCurrency.',
  'BillingAccountId', 'The account on the invoice; otherwise the platform''s id of the organization.',
  'BillingCurrency', 'ISO 4217 code of the invoice.',
  'BillingPeriodEnd', 'Start of the month after the month of issue, UTC.',
  'BillingPeriodStart', 'Start of the month of issue, UTC.',
  'ChargeCategory', 'Usage, Purchase (seats and commitments), Tax, Credit (also discounts and drawdowns) or Adjustment.',
  'InvoiceDetailCreated', 'When the invoice was imported.',
  'InvoiceDetailDescription', 'Text of the line, after that of its sum row.',
  'InvoiceDetailGrain', 'JSON: workspace, SKU and period of the line, as far as they are known.',
  'InvoiceDetailId', 'Number of the invoice and place of the line.',
  'InvoiceDetailLastUpdated', 'When this version of the invoice was imported.',
  'InvoiceId', 'Number of the invoice.',
  'InvoiceIssueDate', 'Day of issue, UTC.',
  'InvoiceIssueStatus', 'Open, Issued or Voided.',
  'InvoiceIssuerName', 'Who issued the invoice.',
  'PaymentCurrency', 'The same as BillingCurrency.',
  'PaymentCurrencyBilledCost', 'The same as BilledCost.',
  'PaymentCurrencyInvoiceDetailId', 'The same as InvoiceDetailId.',
  'PaymentDueDate', 'Day on which the invoice is due. Null: the invoice does not write it.',
  'PaymentTerms', 'Terms of payment. Not stated: the invoice does not write them.',
  'PurchaseOrderNumber', 'Number of the purchase order. Null: the invoice does not write it.',
  'ReferenceInvoiceId', 'Number of the invoice that this one corrects; otherwise its own.',
  'x_SourceId', 'Slug of the source.'
);
