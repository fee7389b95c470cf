import { sql } from "kysely";
import { counted } from "../../core/base/printable.ts";
import type { Store } from "../../core/store/db/database.ts";
import { type Actor, recordAction } from "../../core/store/work/operator-actions.ts";
import { type RouteOfNobody, routesOfNobody } from "./alert-routes.store.ts";
import type { OwnerFile } from "./owner.ts";
import { division, type OwnerChange, ownerChanges } from "./owner-changes.store.ts";
import {
  idleBudgets,
  idleRules,
  lockOwners,
  type NameForId,
  namesForIds,
  replaceOwners,
} from "./owners.store.ts";

export interface OwnersOutcome {
  readonly rules: number;
  readonly changes: readonly OwnerChange[];
  readonly idle: readonly number[];
  readonly idleBudgets: readonly number[];
  readonly routesOfNobody: readonly RouteOfNobody[];
  readonly namesForIds: readonly NameForId[];
}

/**
 * Replaces all stored rules by those of an owner file, and returns the changes. `by`: for the audit record. Without `by`, all
 * is rolled back, so a plan does what an apply would do.
 */
export async function applyOwners(
  store: Store,
  { name, owners, by }: { name: string; owners: OwnerFile; by: Actor | undefined },
): Promise<OwnersOutcome> {
  // One snapshot: otherwise a load meanwhile would look like a change of owners.
  return store.transaction(
    async ({ db }) => {
      await lockOwners(db);
      if (by === undefined) await sql`savepoint plan`.execute(db);
      const before = await division(db);
      await replaceOwners(db, owners);
      const changes = await ownerChanges(db, { before, after: await division(db) });
      const idle = await idleRules(db);
      const budgets = await idleBudgets(db);
      const nobody = await routesOfNobody(db);
      const names = await namesForIds(db);
      const rules = owners.rules.length;
      if (by === undefined) {
        await sql`rollback to savepoint plan`.execute(db);
      } else {
        await recordAction(db, by, {
          sourceId: null,
          action: "owners.apply",
          detail: `${name}: ${counted(rules, "rule")}`,
        });
      }
      return { rules, changes, idle, idleBudgets: budgets, routesOfNobody: nobody, namesForIds: names };
    },
    { isOneInstant: true },
  );
}
