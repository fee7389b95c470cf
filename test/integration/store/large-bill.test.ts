import { sql } from "kysely";
import { expect, test } from "vitest";
import { monthAt } from "../../../src/core/domain/months/month.ts";
import { drawFetchToken } from "../../../src/core/store/work/fetch-ledger.ts";
import { keepUsageLimits } from "../../../src/features/costs/bill-terms.store.ts";
import { keepProviderTotals } from "../../../src/features/costs/provider-totals.store.ts";
import { setupSource } from "../../support/reporting.ts";

const MANY = 65_536;

test("limits and provider totals of any number of workspaces are stored", async () => {
  const { store, sourceId } = await setupSource();
  const ids = Array.from({ length: MANY / 4 }, (_, n) => `workspace ${n}`);
  const limit = { limitType: "monthly_traces", value: 5, isRejecting: false };
  await keepUsageLimits(store, { sourceId, limits: ids.map((workspaceId) => ({ ...limit, workspaceId })) });
  const total = {
    metricId: "other",
    metricName: "Other",
    meter: null,
    value: 1.5,
    unusable: "unknown_metric",
  } as const;
  await keepProviderTotals(store, {
    sourceId,
    month: monthAt(Date.parse("2026-03-01")),
    fetchToken: await drawFetchToken(store.db),
    totals: ids.map((workspaceId) => ({ ...total, workspaceId })),
  });
  const { rows } = await sql`
    select (select count(*) from usage.usage_limit where limit_value = 5)::integer as limits,
           (select sum(value) from usage.provider_total)::float8 as totals
  `.execute(store.db);
  expect(rows).toEqual([{ limits: ids.length, totals: ids.length * 1.5 }]);
});
