import { parseOwners } from "../../src/cli/commands/files/owner-file.ts";
import { replaceOwners } from "../../src/store/bill/owners.ts";
import type { Store } from "../../src/store/db/database.ts";

/** Puts the rules, budgets and routes of an owner file in force, as `owners apply` does. */
export async function setOwners(store: Store, content: string): Promise<void> {
  await store.transaction(({ db }) => replaceOwners(db, parseOwners("owners.yaml", content)));
}
