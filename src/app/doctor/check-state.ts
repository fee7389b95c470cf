import { iso } from "../../core/store/db/expressions.ts";
import { type Database, query, type Row } from "../../core/store/db/query.ts";

export interface WrongState extends Row<"usage.scope", "groupBy" | "stride"> {
  readonly workspaceId: string;
  readonly at: string;
  readonly stored: string | null;
  readonly byRules: string | null;
}

export async function checkState(
  db: Database,
  sourceId: number,
): Promise<{ scopes: number; wrong: number; first: WrongState | undefined }> {
  const scopes = await db
    .selectFrom("usage.scope")
    .select("scope_id")
    .where("source_id", "=", sourceId)
    .execute();
  let wrong = 0;
  let first: WrongState | undefined;
  for (const { scope_id } of scopes) {
    const [found] = await query<WrongState & { all: number }>(db)`
      select e.external_id as "workspaceId", s.group_by as "groupBy", s.stride,
             ${iso("w.bucket_start")} as at, w.stored, w.by_rules as "byRules",
             (count(*) over ())::integer as all
      from usage.wrong_state(array[${scope_id}::integer]) w
      join usage.scope s using (scope_id)
      join usage.entity e on e.entity_id = s.workspace_id
      order by w.bucket_start limit 1
    `;
    if (found === undefined) continue;
    const { all, ...state } = found;
    wrong += all;
    first ??= state;
  }
  return { scopes: scopes.length, wrong, first };
}

export async function checkProof(
  db: Database,
  sourceId: number,
): Promise<{ wrong: number; first: Pick<WrongState, "workspaceId" | "groupBy"> | undefined }> {
  const wrong = await query<Pick<WrongState, "workspaceId" | "groupBy">>(db)`
    select e.external_id as "workspaceId", s.group_by as "groupBy"
    from usage.wrong_proof(array(select scope_id from usage.scope where source_id = ${sourceId})) scope_id
    join usage.scope s using (scope_id)
    join usage.entity e on e.entity_id = s.workspace_id
    order by scope_id
  `;
  return { wrong: wrong.length, first: wrong[0] };
}
