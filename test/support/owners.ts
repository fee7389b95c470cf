import type { Store } from "../../src/core/store/db/database.ts";
import { parseOwners } from "../../src/features/owners/owner-file.ts";
import { replaceOwners } from "../../src/features/owners/owners.store.ts";

export async function setOwners(store: Store, content: string): Promise<void> {
  await store.transaction(({ db }) => replaceOwners(db, parseOwners("owners.yaml", content)));
}
