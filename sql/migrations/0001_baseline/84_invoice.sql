-- Invoices of the platform as somebody imported them, and what they were compared with.

-- One version of an invoice, as it was read from a file. A replaced version stays as history.
CREATE TABLE usage.invoice (
  invoice_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT invoice_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT invoice_source_id_fkey REFERENCES usage.source,
  issuer text NOT NULL,
  number text NOT NULL,
  status text NOT NULL CONSTRAINT invoice_status_known CHECK (status IN ('open', 'issued', 'voided')),
  issued_on date,
  due_on date,
  terms text,
  account text,
  purchase_order text,
  currency text NOT NULL,
  -- Number of the invoice that this one corrects. That invoice need not be imported.
  corrects_number text,
  -- Before tax. Null: the invoice does not write it.
  subtotal numeric(38, 10),
  total numeric(38, 10) NOT NULL,
  file_name text NOT NULL,
  file_form text NOT NULL
    CONSTRAINT invoice_file_form_known CHECK (file_form IN ('pdf', 'csv', 'xlsx', 'json', 'focus', 'text')),
  file bytea NOT NULL,
  -- SHA-256 of the file.
  file_digest bytea NOT NULL,
  -- Why sums that do not add up were accepted. Null: they add up.
  accepted_difference text,
  imported_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  imported_by text NOT NULL,
  -- Null: the version that counts.
  replaced_at timestamptz
);
CREATE UNIQUE INDEX invoice_current ON usage.invoice (source_id, issuer, number) WHERE replaced_at IS NULL;

CREATE TABLE usage.invoice_line (
  invoice_id integer NOT NULL CONSTRAINT invoice_line_invoice_id_fkey REFERENCES usage.invoice ON DELETE CASCADE,
  -- Place on the invoice, from 1.
  line_number integer NOT NULL,
  line_text text NOT NULL,
  -- A sum row is shown, and never added to the lines that are parts of it.
  is_sum boolean NOT NULL,
  -- Number of the sum row whose part this line is.
  part_of integer,
  kind text NOT NULL CONSTRAINT invoice_line_kind_known CHECK (
    kind IN ('usage', 'seat', 'commitment', 'drawdown', 'credit', 'discount', 'tax', 'adjustment')
  ),
  quantity numeric(38, 10),
  unit text,
  unit_price numeric(38, 10),
  amount numeric(38, 10) NOT NULL,
  -- Both null: the line has no period of its own. The end is not included.
  period_start date,
  period_end date,
  -- The workspace's id or name as the invoice writes it. Null: the whole organization.
  workspace text,
  -- Where the line is in the file, and its row as it was read.
  place text NOT NULL,
  source_text text NOT NULL,
  CONSTRAINT invoice_line_pkey PRIMARY KEY (invoice_id, line_number),
  CONSTRAINT invoice_line_part_of_fkey FOREIGN KEY (invoice_id, part_of) REFERENCES usage.invoice_line,
  CONSTRAINT invoice_line_sum_is_whole CHECK (NOT (is_sum AND part_of IS NOT NULL)),
  CONSTRAINT invoice_line_period_whole CHECK ((period_start IS NULL) = (period_end IS NULL) AND period_start < period_end)
);
