import { sql } from "kysely";
import { NO_ID } from "../../domain/usage/record.ts";
import type { RunRule } from "../../domain/usage/run-rule.ts";
import type { Store } from "../db/database.ts";

interface NamedRules {
  readonly sourceId: number;
  /** A response may name a rule in each of its weeks. The last entry counts. */
  readonly rules: readonly RunRule[];
  readonly fetchNumber: number;
}

/** Keeps the newest state of each rule. Responses may come in any order and repeatedly. */
export async function learnRunRules(
  store: Store,
  { sourceId, rules, fetchNumber }: NamedRules,
): Promise<void> {
  const last = new Map(
    rules.filter((rule) => rule.runRuleId !== NO_ID).map((rule) => [rule.runRuleId, rule]),
  );
  if (last.size === 0) return;
  await store.statement((db) =>
    sql`
      insert into usage.run_rule as known
        (entity_id, evaluator_id, evaluator_name, project_id, project_name, dataset_id, dataset_name, weekly_limit_usd, fetch_number)
      select e.entity_id, nullif(r."evaluatorId", ''), r."evaluatorName", nullif(r."projectId", ''), r."projectName",
             nullif(r."datasetId", ''), r."datasetName", usage.amount_of('spend_usd', r."weeklyLimit"), ${fetchNumber}
      from jsonb_to_recordset(${JSON.stringify([...last.values()])}::jsonb) r (
        "runRuleId" text, "evaluatorId" text, "evaluatorName" text, "projectId" text, "projectName" text, "datasetId" text,
        "datasetName" text, "weeklyLimit" bigint
      )
      join usage.entity e on e.source_id = ${sourceId} and e.dimension = 'run_rule' and e.external_id = r."runRuleId"
      order by e.entity_id
      on conflict (entity_id) do update
      set evaluator_id = excluded.evaluator_id, evaluator_name = excluded.evaluator_name, project_id = excluded.project_id,
          project_name = excluded.project_name, dataset_id = excluded.dataset_id, dataset_name = excluded.dataset_name,
          weekly_limit_usd = excluded.weekly_limit_usd, fetch_number = excluded.fetch_number
      where excluded.fetch_number > known.fetch_number
    `.execute(db),
  );
}
