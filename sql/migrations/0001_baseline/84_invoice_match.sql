-- What invoices were compared with, and what explains their differences (src/features/invoice).

-- Rules of the applied file, in their order. Those that the program ships follow them.
CREATE TABLE usage.invoice_rule (
  rule_number integer NOT NULL CONSTRAINT invoice_rule_pkey PRIMARY KEY,
  -- The text of a line or of its sum row. * stands for any text.
  line_text text NOT NULL CONSTRAINT invoice_rule_line_text_form CHECK (line_text ~ '\S'),
  -- Null: of any kind, or unit.
  kind text CONSTRAINT invoice_rule_kind_known CHECK (
    kind IN ('usage', 'seat', 'commitment', 'drawdown', 'credit', 'discount', 'tax', 'adjustment')
  ),
  unit text,
  -- For lines whose period begins on one of these days. The end is not included.
  valid_from date,
  valid_to date,
  -- The month of a line without a period.
  period text NOT NULL CONSTRAINT invoice_rule_period_known CHECK (period IN ('previous_month', 'month_of_issue')),
  -- Null: the kind of the line says what it charges.
  measure text,
  -- Null: the one SKU that has a price for the measure.
  sku text,
  rounding text NOT NULL CONSTRAINT invoice_rule_rounding_known CHECK (rounding IN ('half_up', 'down', 'none')),
  -- A difference up to the greater of both is within tolerance.
  tolerance_amount numeric(38, 10) CONSTRAINT invoice_rule_tolerance_amount_range CHECK (tolerance_amount >= 0),
  tolerance_percent numeric(9, 6) CONSTRAINT invoice_rule_tolerance_percent_range CHECK (tolerance_percent >= 0),
  -- How charge back divides the line: usage, even, or shares such as search=60;chat=40. Null: usage.
  divide text,
  CONSTRAINT invoice_rule_validity_order CHECK (valid_from < valid_to)
);

-- One comparison of an invoice with our bill, with all that it follows from. The same inputs give the same match, so
-- they are stored once.
CREATE TABLE usage.invoice_match (
  match_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT invoice_match_pkey PRIMARY KEY,
  invoice_id integer NOT NULL CONSTRAINT invoice_match_invoice_id_fkey REFERENCES usage.invoice ON DELETE CASCADE,
  inputs jsonb NOT NULL,
  -- SHA-256 of the inputs.
  inputs_digest bytea NOT NULL,
  total numeric(38, 10) NOT NULL,
  -- Our bill of the usage that the invoice charges, exact.
  bill numeric(38, 10) NOT NULL,
  -- The part of total - bill that no cause explains.
  remainder numeric(38, 10) NOT NULL,
  matched_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The last time that these were the inputs: the newest match of an invoice is the one that counts.
  confirmed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT invoice_match_once UNIQUE (invoice_id, inputs_digest)
);

-- A line of the invoice beside that of our bill, or a line that only our bill has.
CREATE TABLE usage.invoice_match_line (
  match_id integer NOT NULL CONSTRAINT invoice_match_line_match_id_fkey REFERENCES usage.invoice_match ON DELETE CASCADE,
  place integer NOT NULL,
  -- Null: only our bill has it.
  line_number integer,
  state text NOT NULL CONSTRAINT invoice_match_line_state_known CHECK (
    state IN (
      'agrees', 'within_tolerance', 'quantity_differs', 'price_differs', 'only_on_invoice', 'only_here',
      'not_comparable'
    )
  ),
  -- Why the line is not comparable.
  why text,
  measure text,
  sku text,
  period_start date,
  period_end date,
  -- Days of our bill that the line is compared with: whole months.
  billed_start date,
  billed_end date,
  -- How the line is charged back (docs/costs.md). Null: by usage.
  divide text,
  -- The platform's id, or the invoice's word for a workspace that is not known here. Null: the whole organization.
  workspace text,
  quantity_here numeric,
  unit_price_here numeric(38, 10),
  cost_here numeric(38, 10),
  CONSTRAINT invoice_match_line_pkey PRIMARY KEY (match_id, place),
  CONSTRAINT invoice_match_line_why_when CHECK ((state = 'not_comparable') = (why IS NOT NULL))
);

-- Why the invoice differs from our bill. All amounts of a match add up to total - bill.
CREATE TABLE usage.invoice_cause (
  match_id integer NOT NULL CONSTRAINT invoice_cause_match_id_fkey REFERENCES usage.invoice_match ON DELETE CASCADE,
  place integer NOT NULL,
  -- unexplained: a part of the remainder.
  cause text NOT NULL CONSTRAINT invoice_cause_known CHECK (
    cause IN (
      'rounding', 'period', 'changes', 'upgrades', 'days_open', 'unread_workspace', 'counted_over', 'price',
      'not_reported', 'seat', 'credit', 'tax', 'adjustment', 'unexplained'
    )
  ),
  -- What is unexplained.
  why text,
  -- How much higher the invoice is.
  amount numeric(38, 10) NOT NULL,
  sku text,
  period_start date,
  period_end date,
  workspace text,
  -- How much more usage the invoice has.
  quantity numeric,
  line_number integer,
  days_not_loaded integer,
  days_not_final integer,
  -- Unexplained, and within the tolerance of its rule.
  is_tolerated boolean NOT NULL,
  CONSTRAINT invoice_cause_pkey PRIMARY KEY (match_id, place),
  CONSTRAINT invoice_cause_why_when CHECK ((cause = 'unexplained') = (why IS NOT NULL))
);

-- Who settled an invoice, by which match, and why its remainder was accepted. A row is never changed or removed: a
-- later one corrects it. Only a source that is forgotten takes its invoices with it.
CREATE TABLE usage.invoice_settlement (
  settlement_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT invoice_settlement_pkey PRIMARY KEY,
  invoice_id integer NOT NULL
    CONSTRAINT invoice_settlement_invoice_id_fkey REFERENCES usage.invoice ON DELETE CASCADE,
  match_id integer NOT NULL
    CONSTRAINT invoice_settlement_match_id_fkey REFERENCES usage.invoice_match ON DELETE CASCADE,
  reason text CONSTRAINT invoice_settlement_reason_form CHECK (reason ~ '\S'),
  settled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  settled_by text NOT NULL
);
