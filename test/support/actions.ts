import { sql } from "kysely";
import type { Database } from "../../src/core/store/db/database.ts";
import type { Actor, NewAction } from "../../src/core/store/work/operator-actions.ts";

type ListedAction = Pick<NewAction, "action" | "detail"> & {
  readonly source: string | null;
  readonly actor: string | null;
  readonly role: Actor["role"];
  readonly via: Actor["via"];
  readonly outcome: string;
};

export async function listActions(db: Database, { most }: { most: number }): Promise<ListedAction[]> {
  const { rows } = await sql<ListedAction>`
    select s.slug as source, a.action, a.detail, a.actor, a.role, a.via, a.outcome
    from usage.operator_action a left join usage.source s using (source_id)
    order by a.at desc, a.action_id desc limit ${most}
  `.execute(db);
  return rows;
}
