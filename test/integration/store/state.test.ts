import { expect, test } from "vitest";
import { checkState } from "../../../src/app/doctor/check-state.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { checkCharges, recomputeCharges } from "../../../src/core/store/months/charges.ts";
import { loadRows } from "../../support/store.ts";
import { createSource, FIRST_DAY, setupStore } from "./setup.ts";
import { expectTrueState } from "./state.ts";

test("a writer that leaves the state as it was is found, whatever it changes", async () => {
  const bundle = await setupStore({ isStateTrue: false });
  const { reader } = bundle;
  const sourceId = await createSource(bundle, {
    workspaceIds: ["00000000-0000-4000-8000-000000000001"],
    dataStart: FIRST_DAY,
  });
  const at = (days: number) => new Date(FIRST_DAY + days * DAY_MS).toISOString();
  const create = async () => {
    await reader.query("DELETE FROM usage.coverage; DELETE FROM usage.failure");
    await reader.query(`
      INSERT INTO usage.coverage SELECT scope_id, '${at(0)}', '${at(4)}', true, 1, now(), '{}' FROM usage.scope;
      INSERT INTO usage.failure
        SELECT scope_id, '${at(1)}', '${at(2)}', 'failed', 'network', '', 1, 1, now(), now() FROM usage.scope`);
    expect(await expectTrueState(reader)).toBeGreaterThan(100);
  };
  for (const change of [
    `INSERT INTO usage.coverage SELECT scope_id, '${at(4)}', '${at(5)}', true, 1, now(), '{}' FROM usage.scope`,
    `UPDATE usage.coverage SET period_end = '${at(3)}'`,
    "UPDATE usage.coverage SET final = false",
    "DELETE FROM usage.coverage",
    `INSERT INTO usage.failure SELECT scope_id, '${at(3)}', '${at(4)}', 'unverified', 'network', '', 1, 1, now(), now() FROM usage.scope`,
    "UPDATE usage.failure SET state = 'unverified'",
    "DELETE FROM usage.failure",
  ]) {
    await create();
    await reader.query(
      "ALTER TABLE usage.coverage DISABLE TRIGGER USER; ALTER TABLE usage.failure DISABLE TRIGGER USER",
    );
    await reader.query(change);
    await reader.query(
      "ALTER TABLE usage.coverage ENABLE TRIGGER USER; ALTER TABLE usage.failure ENABLE TRIGGER USER",
    );
    await expect(expectTrueState(reader), change).rejects.toThrow();
    const { wrong, first } = await checkState(bundle.store.db, sourceId);
    expect(wrong, change).toBeGreaterThan(0);
    expect(first, change).toMatchObject({ stride: expect.any(String), at: expect.stringMatching(/Z$/) });
  }
  await create();
  await reader.query("UPDATE usage.coverage SET final = false");
  await expectTrueState(reader);
  expect(await checkState(bundle.store.db, sourceId)).toEqual({ scopes: 12, wrong: 0, first: undefined });
});

test("a charge that somebody changed by hand is found, and computing all anew mends it", async () => {
  const bundle = await setupStore();
  const { reader, store } = bundle;
  const workspaceId = "00000000-0000-4000-8000-000000000001";
  const sourceId = await createSource(bundle, { workspaceIds: [workspaceId], dataStart: FIRST_DAY });
  const window = { stride: "day" as const, start: FIRST_DAY, end: FIRST_DAY + 4 * DAY_MS };
  const day = new Date(FIRST_DAY).toISOString().slice(0, 10);
  await loadRows(store, {
    sourceId,
    workspaceId,
    groupBy: "workspace",
    window,
    rows: [[day, workspaceId, 7]],
  });
  expect(await checkCharges(store.db, sourceId)).toEqual({ wrong: 0, first: undefined });
  for (const change of [
    "DELETE FROM usage.charge WHERE tier = 1",
    "UPDATE usage.charge SET quantity = quantity + 1",
    "UPDATE usage.charge SET is_final = NOT is_final",
  ]) {
    await reader.query(change);
    expect(await checkCharges(store.db, sourceId), change).toMatchObject({
      first: { workspaceId, day, sku: "all" },
    });
    await store.transaction(({ db }) => recomputeCharges(db));
    expect(await checkCharges(store.db, sourceId), change).toEqual({ wrong: 0, first: undefined });
  }
});
