import { expect, test } from "vitest";
import type { Store } from "../../../src/core/store/db/database.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import { setupSource } from "./setup.ts";

const workspaceId = "0b1c0000-0000-4000-8000-000000000001";
const rows = [["2026-03-01T00:00Z", "p1", 4]] as const;

test("a load that runs again because nobody knows whether it committed finds its fetch number, and says what it loaded", async () => {
  const dataStart = Date.parse("2026-02-01");
  const { store, sourceId } = await setupSource({ workspaceIds: [workspaceId], dataStart });
  const forgetful: Store = {
    ...store,
    transaction: async (work) => {
      await store.transaction(work);
      return store.transaction(work);
    },
  };
  const load = (through: Store) =>
    loadRows(through, {
      sourceId,
      workspaceId,
      rows,
      groupBy: "project",
      window: windowOf("day", "2026-03-01", "2026-03-03"),
    });
  expect(await load(forgetful)).toMatchObject({ outcome: "loaded", inserted: 1 });
  expect(await load(store)).toMatchObject({ outcome: "loaded", inserted: 0, unchanged: 1 });
});
