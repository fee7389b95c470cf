import { expect, test } from "vitest";
import { replaceOwners } from "../../src/features/owners/owners.store.ts";
import { BY_RESOURCE, COST, fill, setup } from "../reporting/focus/bench.ts";
import { breachesOf, factsOf } from "../support/focus.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";

const [WORKSPACE] = WORKSPACES;
const columns = factsOf("CostAndUsage").map(({ column }) => column);

const NEVER_FILLED = [
  "AvailabilityZone",
  "CapacityReservationId",
  "CapacityReservationStatus",
  "CommitmentDiscountCategory",
  "CommitmentDiscountId",
  "CommitmentDiscountName",
  "CommitmentDiscountQuantity",
  "CommitmentDiscountStatus",
  "CommitmentDiscountType",
  "CommitmentDiscountUnit",
  "CommitmentProgramEligibilityDetails",
  "ContractApplied",
  "InvoiceDetailId",
  "InvoiceId",
  "RegionId",
  "RegionName",
];
const FILLED_BY_RESOURCE = [
  "AllocatedMethodDetails",
  "AllocatedMethodId",
  "AllocatedResourceId",
  "AllocatedResourceName",
  "AllocatedTags",
  "ResourceId",
  "ResourceName",
  "ResourceType",
];

test("a column is null exactly where its condition does not hold", async () => {
  const bench = await setup();
  await fill(bench);
  const window = windowOf("day", "2026-04-30", "2026-05-01");
  const of = { sourceId: bench.sourceId, workspaceId: WORKSPACE, groupBy: "project" as const, window };
  await loadRows(bench.store, { ...of, rows: [["2026-04-30", "p", 3, "Search"]] });
  const shared = {
    source: null,
    workspace: null,
    of: { dimension: "project" as const, id: "p" },
    name: null,
  };
  const shares = ["a", "b"].map((owner) => ({ owner, costCenter: null, share: 5000 }));
  await bench.store.transaction(({ db }) =>
    replaceOwners(db, {
      content: "",
      divideBy: "project",
      budgets: [],
      routes: [],
      rules: [{ ...shared, line: 1, tag: null, from: null, to: null, shares }],
    }),
  );
  const nullsOf = async (table: string) => {
    const counts = columns.map((column) => `count("${column}")::integer AS "${column}"`);
    const { rows } = await bench.reader.query<Record<string, string>>(
      `SELECT ${counts.join(", ")} FROM ${table}`,
    );
    return columns.filter((column) => rows[0]?.[column] === "0").sort();
  };
  const never = [...NEVER_FILLED, "ChargeClass"];
  expect(await nullsOf(COST.table)).toEqual([...never, ...FILLED_BY_RESOURCE].sort());
  expect(await nullsOf(BY_RESOURCE.table)).toEqual(never.sort());
  expect(await breachesOf(bench.reader, { ...BY_RESOURCE, expected: columns })).toEqual([]);
  const { rows } = await bench.reader.query(`
    SELECT "ResourceType", "ResourceName", "PricingQuantity", "Tags", "AllocatedResourceId", "AllocatedTags", "AllocatedMethodDetails"
    FROM ${BY_RESOURCE.table} WHERE "SkuId" = 'traces' AND "x_UsageDate" = '2026-04-30' ORDER BY "AllocatedResourceId"`);
  const part = (owner: string) => {
    const tags = `{"usage-etl/owner": "${owner}"}`;
    return ["Project", "Search", "1.500000", tags, owner, tags, '{"Elements": [{"AllocatedRatio": 0.5000}]}'];
  };
  const rest = [null, null, "1.000000", "{}", null, null, null];
  expect(rows.map((row) => Object.values(row))).toEqual([part("a"), part("b"), rest]);
});
