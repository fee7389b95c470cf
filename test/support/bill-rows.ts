import type { BillPart } from "../../src/features/costs/bill-terms.store.ts";
import type { Bench } from "./source.ts";

const LINE =
  "concat_ws(' ', kind, line_id, subject, window_name, month_start, value, remark) FROM usage.statement_line";
const ROWS: Readonly<Record<BillPart, string>> = {
  provider_totals:
    "concat_ws(' ', month_start, metric_id, workspace, value, outcome) FROM usage.provider_total",
  usage_limits: "concat_ws(' ', workspace, limit_type, limit_value, is_rejecting) FROM usage.usage_limit",
  billing_period: `x.text FROM (SELECT concat_ws(' ', period_end, plan_tier, plan_started_on, plan_ends_on) FROM reporting_detail.dim_billing_period
     UNION ALL SELECT ${LINE} WHERE kind = 'fleet_limit') x (text)`,
  resource_tags: "concat_ws(' ', workspace_id, external_id, tag_key, tag_value) FROM usage.resource_tag",
  names:
    "concat_ws(' ', dimension, external_id, name) FROM usage.entity_name JOIN usage.entity USING (entity_id) WHERE dimension IN ('api_key', 'sandbox')",
  all_workspaces: "concat_ws(' ', month_start, workspace, name, traces) FROM usage.unloaded_workspace",
  audit_log: "concat_ws(' ', external_id, operation, changed_at, user_id) FROM usage.logged_change",
  members: `${LINE} WHERE kind = 'members'`,
  gateway_spend: `${LINE} WHERE kind = 'gateway_spend'`,
  engine_units: `${LINE} WHERE kind IN ('engine_units', 'engine_enforced_limit')`,
  engine_limit: `${LINE} WHERE kind = 'engine_limit'`,
};
export const PARTS = Object.keys(ROWS) as BillPart[];

export async function billRows({ sql }: Bench) {
  const rows = {} as Record<BillPart, string[]>;
  for (const part of PARTS)
    rows[part] = (await sql<{ line: string }>(`SELECT ${ROWS[part].replace(" FROM", " AS line FROM")}`))
      .map(({ line }) => line)
      .sort();
  return rows;
}
