-- The rules of the owner file that was applied last, as people wrote them: they decide who pays. They name the
-- platform's ids as texts, so that a rule may exist before its id does, and stays when the id is forgotten.

-- The file itself, so that it can be exported as it was. No row: no file is applied, and nothing has an owner.
CREATE TABLE usage.owner_file (
  is_only boolean NOT NULL DEFAULT true CONSTRAINT owner_file_pkey PRIMARY KEY,
  content text NOT NULL,
  -- The dimension whose ids divide the traces of a workspace.
  divide_by text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  -- When a file with other budgets than before was applied.
  budgets_changed_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT owner_file_one CHECK (is_only),
  CONSTRAINT owner_file_divide_by_known CHECK (divide_by IN ('project', 'user', 'api_key'))
);

-- The first rule that matches a day of an id decides.
CREATE TABLE usage.owner_rule (
  -- Its place in the file.
  rule_number integer NOT NULL CONSTRAINT owner_rule_pkey PRIMARY KEY,
  -- Its line in the file.
  line integer NOT NULL,
  -- Null: the rule is for every source, or every workspace.
  source text,
  workspace text,
  -- The rule matches one id of a dimension, names like a pattern in which * is any text, or a tag with one value or
  -- any. Null: everything there.
  dimension text,
  external_id text,
  name_pattern text,
  tag_key text,
  tag_value text,
  valid daterange NOT NULL,
  CONSTRAINT owner_rule_dimension_known CHECK (dimension IN ('project', 'user', 'api_key', 'deployment', 'sandbox')),
  CONSTRAINT owner_rule_id_of_dimension CHECK ((dimension IS NULL) = (external_id IS NULL)),
  CONSTRAINT owner_rule_about_one CHECK (num_nonnulls(external_id, name_pattern, tag_key) <= 1),
  CONSTRAINT owner_rule_tag_key CHECK (tag_value IS NULL OR tag_key IS NOT NULL),
  CONSTRAINT owner_rule_validity CHECK (NOT isempty(valid))
);

-- The owners of a rule's matches, and their shares. The shares of a rule add up to 1: apply refuses others, with their
-- line.
CREATE TABLE usage.owner_share (
  rule_number integer NOT NULL CONSTRAINT owner_share_rule_number_fkey REFERENCES usage.owner_rule ON DELETE CASCADE,
  -- Null: the value of the rule's tag.
  owner text,
  cost_center text,
  share numeric(5, 4) NOT NULL,
  -- Owner and cost center may be null, so they are no key.
  share_number bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT owner_share_pkey PRIMARY KEY,
  CONSTRAINT owner_share_range CHECK (share > 0 AND share <= 1),
  CONSTRAINT owner_share_once UNIQUE NULLS NOT DISTINCT (rule_number, owner, cost_center)
);

-- Budgets for a calendar month, or for a billing period of a source, from the same file: for an owner, a workspace, a
-- project, or everything.
CREATE TABLE usage.budget (
  -- Its place in the file.
  budget_number integer NOT NULL CONSTRAINT budget_pkey PRIMARY KEY,
  line integer NOT NULL,
  -- Null: every source.
  source text,
  -- The budget is for one of these. All null: for everything.
  owner text,
  workspace text,
  project text,
  -- ISO 4217; null: traces.
  currency text,
  amount numeric(28, 10) NOT NULL,
  -- Percentages of the amount at which a warning is sent.
  warn_at integer[] NOT NULL,
  per text NOT NULL DEFAULT 'month',
  CONSTRAINT budget_of_one CHECK (num_nonnulls(owner, workspace, project) <= 1),
  CONSTRAINT budget_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
  CONSTRAINT budget_amount_range CHECK (amount > 0),
  CONSTRAINT budget_per_known CHECK (per IN ('month', 'billing_period')),
  CONSTRAINT budget_per_source CHECK (per = 'month' OR source IS NOT NULL)
);

-- Routes of incidents to receivers, from the same file. The named setting holds the address or key, so no secret is
-- here.
CREATE TABLE usage.route (
  name text NOT NULL CONSTRAINT route_pkey PRIMARY KEY,
  line integer NOT NULL,
  type text NOT NULL,
  setting text NOT NULL,
  -- For mail only.
  sender text,
  recipients text[] NOT NULL,
  -- Incidents that the route gets. Null: with every owner or without one; of every kind; of every severity.
  owners text[],
  kinds text[],
  severities text[],
  -- The route of USAGE_ALERT_WEBHOOK_URL is in no file.
  CONSTRAINT route_name_form CHECK (name ~ '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$' AND length(name) <= 63
    AND name <> 'default'),
  CONSTRAINT route_type_known CHECK (type IN ('webhook', 'slack', 'teams', 'google_chat', 'pagerduty', 'email')),
  CONSTRAINT route_setting_form CHECK (setting ~ '^USAGE_ROUTE_[A-Z0-9_]*[A-Z0-9]$'),
  CONSTRAINT route_mail_ends CHECK ((type = 'email') = (sender IS NOT NULL)
    AND (type = 'email') = (cardinality(recipients) > 0))
);
