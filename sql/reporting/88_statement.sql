-- What the platform also reports, in no total.

CREATE OR REPLACE VIEW reporting_detail.provider_statement_line AS
SELECT s.slug AS source_id, l.taken_on, l.kind, l.line_id, k.name, l.subject, l.window_name, l.month_start,
       l.value::numeric(36, 18) AS value, k.unit, l.remark, k.endpoint, k.does_not_say,
       l.taken_on = max(l.taken_on) OVER (PARTITION BY l.source_id, l.kind, l.month_start) AS is_newest, l.read_at
FROM usage.statement_line l
JOIN usage.source s USING (source_id)
JOIN (
  VALUES
    ('members', 'Members', 'members', 'GET /api/v1/orgs/current/members/active',
      'How many seats are billed: that each active member is one is inferred. Invited members and prices are not in it.'),
    ('gateway_spend', 'Spend through the gateway', 'USD',
      'GET /api/v1/platform/gateway-policies?policy_type=spend_cap',
      'Spend without a policy, windows that have ended, and what is invoiced. Policies overlap, so never add them.'),
    ('engine_units', 'Engine units', 'LCU', 'GET /issues-agent/lcu-spend',
      'Rows without a rate, and what is invoiced. Never add them to units of sandboxes.'),
    ('engine_enforced_limit', 'Engine limit that applies', 'LCU', 'GET /issues-agent/lcu-spend', 'What was used.'),
    ('engine_limit', 'Engine limit of an administrator', 'LCU', 'GET /api/v1/orgs/current',
      'What was used. A limit of the plan may be lower.'),
    ('fleet_limit', 'Fleet limit', 'LCU', 'GET /api/v1/orgs/current/billing', 'What was used.')
) k (kind, name, unit, endpoint, does_not_say) USING (kind);
COMMENT ON VIEW reporting_detail.provider_statement_line IS
  'What the platform also reports, in NO total: members, spend through its gateway, units and limits of Engine and '
  'Fleet. Grain: UTC day of a reading x kind x what it is about (key: source_id, taken_on, kind, line_id). Each row is '
  'a SNAPSHOT of that night. Never add values, except engine_units of one day over line_id. A day without a row was '
  'not read: that is not zero.';
CALL usage.comment_columns('{reporting_detail.provider_statement_line}',
  'taken_on', 'UTC day on which the platform was asked.',
  'kind',
    'What the line is: members, gateway_spend, engine_units, engine_enforced_limit, engine_limit or fleet_limit.',
  'line_id',
    'The platform''s ids: of the policy, or of the workspace and project. An entry without an id has its place in '
    'parentheses. Empty: the organization.',
  'name', 'The kind in words.',
  'subject', 'Whom the line is about, in the platform''s words and ids. Null: the organization.',
  'window_name',
    'The window under way that the value counts, in the platform''s word. Null: none, or it is not named. A policy with '
    'several windows lists them all, since the platform does not say which one it counted.',
  'month_start', 'First day of the calendar month (UTC) that the line belongs to.',
  'value', 'The platform''s number, in unit. Null: unknown or, if remark says so, no limit. Never zero.',
  'unit', 'Unit of value: members, USD or LCU.',
  'remark', 'What is special: no limit, an unknown value, or a refused one with its place in the response.',
  'endpoint', 'The request whose response gave the line.',
  'does_not_say', 'What the line does not say.',
  'is_newest', 'Whether the line is of the newest reading of its kind for the month.'
);
