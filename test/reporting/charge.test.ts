import fc from "fast-check";
import { expect, test } from "vitest";
import { registerWorkspaces } from "../../src/core/store/access/workspaces.ts";
import { failScopes } from "../../src/core/store/catalog/failures.ts";
import { ensureScopes, scopesOf } from "../../src/core/store/catalog/scopes.ts";
import { checkCharges } from "../../src/core/store/months/charges.ts";
import { drawFetchToken } from "../../src/core/store/work/fetch-ledger.ts";
import { anyPrices, anyUsage, clearUsage } from "../support/any-charges.ts";
import { ALL_DUE } from "../support/by-hand.ts";
import { createMonths, createPrices, dayOf, expectedCharges, type GivenPrice } from "../support/charges.ts";
import { seed } from "../support/drawn.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, untilLockWaits, windowOf } from "../support/store.ts";

const [WORKSPACE, OTHER] = WORKSPACES;

const CHARGES = `SELECT usage_date AS day, workspace_id AS workspace, sku, volume_tier AS tier, traces, estimated_cost AS cost, currency,
                        is_final AS final, coverage_status AS status
                 FROM reporting.fct_cost_workspace_daily ORDER BY 1, 2, 3, 4`;

test("charges equal an independent recomputation to the last digit, and every trace is charged once", async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  await fc.assert(
    fc.asyncProperty(anyUsage, anyPrices, async (given, priced) => {
      await clearUsage(client);
      await createMonths(bench, given);
      await createPrices(bench.store, priced);
      const { rows } = await client.query<Record<string, string>>(CHARGES);
      const charges = rows.map((row) =>
        [row.day, row.workspace, row.sku, row.tier, row.traces, row.cost, row.currency].join(" "),
      );
      expect(charges).toEqual(expectedCharges(given, priced));
      const { rows: lost } = await client.query(`
        SELECT usage_date, workspace_id, c.sku FROM reporting.fct_cost_workspace_daily c
        JOIN reporting.fct_usage_workspace_daily u USING (usage_date, workspace_id)
        GROUP BY usage_date, workspace_id, c.sku, u.traces HAVING sum(c.traces) <> u.traces`);
      expect(lost).toEqual([]);
    }),
    { seed: seed(), numRuns: 15, endOnFailure: true },
  );
});

test("a day that is not loaded makes the charges of later days of its month provisional, where they depend on it", async () => {
  const bench = await setupSource();
  const tiers = (countedOver: "source" | "workspace"): GivenPrice[] => [
    { unitPrice: "0", countedOver },
    { unitPrice: "2", fromQuantity: 100 },
  ];
  const days = { 3: 1, 5: 1, 31: 1 };
  await createMonths(bench, { [WORKSPACE]: { 4: 1, ...days }, [OTHER]: days }, { [OTHER]: [4] });
  const client = await connectPlain(bench.url);
  const read = async () => {
    const { rows } = await client.query<Record<string, string>>(CHARGES);
    return rows.map((row) => `${row.day?.slice(5)} ${row.workspace?.slice(-1)} ${row.final} ${row.status}`);
  };
  const before = ["03-04 1 t ok", "03-04 2 t ok", "03-05 1 t ok"];
  const april = ["04-01 1 t ok", "04-01 2 t ok"];
  await createPrices(bench.store, tiers("source"));
  expect(await read()).toEqual([...before, "03-06 1 f provisional", "03-06 2 f provisional", ...april]);
  await createPrices(bench.store, tiers("workspace"));
  expect(await read()).toEqual([...before, "03-06 1 t ok", "03-06 2 f provisional", ...april]);
});

test("a change of prices says how many charges it computed and changed, and the same prices again change none", async () => {
  const bench = await setupSource();
  await createMonths(bench, { [WORKSPACE]: { 0: 60, 31: 30 }, [OTHER]: { 0: 70 } });
  const tiers = (second: string): GivenPrice[] => [
    { unitPrice: "1" },
    { unitPrice: second, fromQuantity: 100 },
  ];
  expect(await createPrices(bench.store, tiers("2"))).toMatchObject({ charges: 4, chargesChanged: 4 });
  expect(await createPrices(bench.store, tiers("2"))).toMatchObject({ charges: 4, chargesChanged: 0 });
  expect(await createPrices(bench.store, tiers("3"))).toMatchObject({ charges: 4, chargesChanged: 4 });
  expect(await createPrices(bench.store, [])).toMatchObject({ charges: 0, chargesChanged: 4 });
});

test("a workspace that begins to be asked for another meter takes away that later days of a tier are final", async () => {
  const bench = await setupSource();
  const window = windowOf("day", dayOf(0), dayOf(31));
  const given = { ...bench, groupBy: "workspace" as const, window };
  for (const workspaceId of WORKSPACES)
    await loadRows(bench.store, {
      ...given,
      meter: "longlived",
      workspaceId,
      rows: [[dayOf(3), workspaceId, 60]],
    });
  const price = { sku: "long", measure: "longlived" as const, unitPrice: "1" };
  await createPrices(bench.store, [price, { ...price, fromQuantity: 100 }]);
  const client = await connectPlain(bench.url);
  const final = async () =>
    (await client.query("SELECT bool_and(is_final)::text AS final FROM usage.charge")).rows[0].final;
  expect(await final()).toBe("true");
  const { db } = bench.store;
  await registerWorkspaces(db, { sourceId: bench.sourceId, workspaceIds: [...WORKSPACES, "w3"] });
  expect(await final()).toBe("true");
  await ensureScopes(db, {
    sourceId: bench.sourceId,
    meter: "longlived",
    groupings: ["workspace"],
    strides: ["day"],
  });
  expect(await checkCharges(db, bench.sourceId)).toMatchObject({ wrong: 0 });
  expect(await final()).toBe("false");
});

test("hours that complete a day while another transaction takes its own figure away are charged", async () => {
  const bench = await setupSource();
  const day = { ...bench, groupBy: "workspace" as const, workspaceId: WORKSPACE };
  await createPrices(bench.store, [{ unitPrice: "1" }]);
  const scopeIds = await scopesOf(bench.store.db, {
    sourceId: bench.sourceId,
    groupBy: "workspace",
    stride: "day",
    workspaceIds: [WORKSPACE],
  });
  const period = windowOf("day", dayOf(3), dayOf(4));
  const failure = { scopeIds, period, code: "server_error", message: "test" } as const;
  await failScopes(bench.store, {
    ...failure,
    state: "unverified",
    fetchToken: await drawFetchToken(bench.store.db),
  });
  const client = await connectPlain(bench.url);
  await client.query("BEGIN; UPDATE usage.failure SET state = 'failed'; SET CONSTRAINTS ALL IMMEDIATE");
  const loading = loadRows(bench.store, {
    ...day,
    window: windowOf("hour", dayOf(3), dayOf(4)),
    rows: [[`${dayOf(3)}T05:00Z`, WORKSPACE, 7]],
  });
  await untilLockWaits(bench.store);
  await client.query("COMMIT");
  await loading;
  expect(await checkCharges(bench.store.db, bench.sourceId)).toMatchObject({ wrong: 0 });
  expect((await client.query("SELECT quantity FROM usage.charge")).rows).toEqual([{ quantity: "7" }]);
});

test("two transactions that fill one volume tier at once leave what both together say", async () => {
  const bench = await setupSource();
  await createMonths(bench, { [WORKSPACE]: { 0: 60 }, [OTHER]: { 0: 70 } });
  await createPrices(bench.store, [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 100 }]);
  const [one, other] = [await connectPlain(bench.url), await connectPlain(bench.url)];
  const more = (workspace: string) => `
    BEGIN; UPDATE usage.dated_record SET traces = traces + 50 WHERE series_id = (
      SELECT series_id FROM usage.series JOIN usage.scope USING (scope_id) JOIN usage.entity w ON w.entity_id = workspace_id
      WHERE group_by = 'workspace' AND stride = 'day' AND w.external_id = '${workspace}' LIMIT 1
    ); ${ALL_DUE}`;
  await one.query(more(WORKSPACE));
  await other.query(more(OTHER));
  // Neither sees the other's count, so the one that stores later has to wait for the first and to look again.
  await one.query("SET CONSTRAINTS ALL IMMEDIATE");
  const waiting = other.query("COMMIT");
  await untilLockWaits(bench.store);
  await one.query("COMMIT");
  await waiting;
  const { rows } = await one.query<Record<string, string>>(CHARGES);
  expect(rows.map((row) => `${row.workspace?.slice(-1)} ${row.tier} ${row.traces}`)).toEqual([
    "1 1 100",
    "1 2 10",
    "2 2 120",
  ]);
});
