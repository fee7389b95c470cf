import { expect, test } from "vitest";
import { type Actor, recordAction } from "../../../src/core/store/work/operator-actions.ts";
import { forgetSource } from "../../../src/features/catalog/forget.store.ts";
import { listActions } from "../../support/actions.ts";
import { createSource, setupStore } from "./setup.ts";

const ADA: Actor = { name: "ada", role: "operator", via: "page" };
const BOB: Actor = { name: null, role: "operator", via: "command" };

test("actions are recorded with who gave them and how they ended, and outlive their source", async () => {
  const bundle = await setupStore();
  const { store } = bundle;
  const sourceId = await createSource(bundle, { workspaceIds: [], dataStart: Date.parse("2026-03-01") });
  await recordAction(store.db, ADA, { sourceId, action: "backfill.start", detail: "backfill 1" });
  await recordAction(store.db, BOB, { sourceId: null, action: "prices.import", detail: "prices.csv" });
  await recordAction(store.db, ADA, {
    sourceId,
    action: "month.close",
    detail: "2026-03",
    outcome: "refused",
  });

  expect(await listActions(store.db, { most: 9 })).toMatchObject([
    { action: "month.close", source: "default", outcome: "refused", actor: "ada", via: "page" },
    { action: "prices.import", source: null, outcome: "done", actor: null, via: "command" },
    { action: "backfill.start", detail: "backfill 1" },
  ]);
  await forgetSource(store, { sourceId, slug: "default", withRecords: true, dryRun: false, by: ADA });
  const kept = await listActions(store.db, { most: 9 });
  expect(kept.map(({ action, source }) => [action, source])).toEqual([
    ["source.forget", null],
    ["month.close", null],
    ["prices.import", null],
    ["backfill.start", null],
  ]);
});

test("an action takes any text of a person as one line, and is undone with its transaction", async () => {
  const { store } = await setupStore();
  const name = "eve\u0000\n\u202eadmin";
  const detail = `first\r\n\u009b31m${"😀".repeat(2000)}`;
  await recordAction(store.db, { ...ADA, name }, { sourceId: null, action: "odd.text", detail });
  const undone = store.transaction(async ({ db }) => {
    await recordAction(db, ADA, { sourceId: null, action: "never.done", detail: "" });
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  const [action, ...others] = await listActions(store.db, { most: 9 });
  expect(others).toEqual([]);
  expect(action?.actor).toBe("eve\\u0000\\u000a\\u202eadmin");
  expect(action?.detail).toMatch(/^first\\u000d\\u000a\\u009b31m😀+…$/u);
  expect([...(action?.detail ?? "")]).toHaveLength(1000);
});
