import type { Store } from "../../src/core/store/db/database.ts";
import { parseOwners } from "../../src/features/owners/owner-file.ts";
import { replaceOwners } from "../../src/features/owners/owners.store.ts";

/** Puts the rules, budgets and routes of an owner file in force, as `owners apply` does. */
export async function setOwners(store: Store, content: string): Promise<void> {
  await store.transaction(({ db }) => replaceOwners(db, parseOwners("owners.yaml", content)));
}
