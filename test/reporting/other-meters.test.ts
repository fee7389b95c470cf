import { expect, test } from "vitest";
import { monthAt } from "../../src/core/domain/months/month.ts";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { lostWorkspaces } from "../../src/core/store/access/withdrawn-zeros.ts";
import { failScopes } from "../../src/core/store/catalog/failures.ts";
import { scopesOf } from "../../src/core/store/catalog/scopes.ts";
import { learnMeter } from "../../src/core/store/catalog/source-meters.ts";
import { drawFetchToken } from "../../src/core/store/work/fetch-ledger.ts";
import { alertFacts } from "../../src/features/alerts/alert-facts.store.ts";
import { openDaysOf } from "../../src/features/close/open-days.store.ts";
import { totalsToClose } from "../../src/features/close/totals-to-close.store.ts";
import { unpricedUsage } from "../../src/features/costs/prices.store.ts";
import { coverageLines } from "../../src/features/coverage/coverage-lines.store.ts";
import { trustOfSources } from "../../src/features/coverage/trust.store.ts";
import { createPrices } from "../support/charges.ts";
import { client, setUpEachSource, sourceId, store } from "../support/each-source.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";

/** Views that were there before other kinds and tiers were loaded: what reads them still means traces of all tiers. */
const ABOUT_OTHERS =
  /_deployment|_other_usage_|^dim_resource|_by_kind_|_upgrade_|^dim_name|^usage_bill_|^usage_late_change/;

const [WORKSPACE] = WORKSPACES;
const MARCH = ["2026-03-01", "2026-04-01"] as const;
const DAY = "2026-03-02";
const ID = (last: string) => `00000000-0000-4000-8000-0000000000${last}`;

setUpEachSource();

const idOf = (groupBy: string) => (groupBy === "workspace" ? WORKSPACE : ID("0a"));

async function loadTraces(): Promise<void> {
  for (const groupBy of GROUPINGS) {
    for (const workspaceId of WORKSPACES) {
      const id = groupBy === "workspace" ? workspaceId : idOf(groupBy);
      const response = { sourceId, groupBy, workspaceId };
      const load = (window: ReturnType<typeof windowOf>, bucket: string, traces: number) =>
        loadRows(store, { ...response, window, rows: [[bucket, id, traces, "name"]] });
      await load(windowOf("day", ...MARCH), DAY, 50);
      await load(windowOf("day", DAY, "2026-03-03"), DAY, 60);
      await load(windowOf("week", "2026-02-26", "2026-04-02"), "2026-02-26", 60);
      await load(windowOf("hour", "2026-04-03T00:00Z", "2026-04-04T00:00Z"), "2026-04-03T07:00Z", 4);
    }
    await fail("traces", groupBy, ["2026-04-05", "2026-04-06"]);
  }
  await createPrices(store, [{ unitPrice: "0.5" }, { unitPrice: "0.4", fromQuantity: 20 }]);
}

async function fail(
  meter: "traces" | "longlived" | "deployments",
  groupBy: (typeof GROUPINGS)[number],
  days: readonly [string, string],
): Promise<void> {
  const scopeIds = await scopesOf(store.db, {
    sourceId,
    meter,
    groupBy,
    stride: "day",
    workspaceIds: WORKSPACES,
  });
  await failScopes(store, {
    scopeIds,
    period: windowOf("day", ...days),
    fetchToken: await drawFetchToken(store.db),
    state: "failed",
    code: "test",
    message: "test",
  });
}

async function loadOthers(): Promise<void> {
  await learnMeter(store.db, { sourceId, meter: "longlived", state: "counted", evidence: "test" });
  await learnMeter(store.db, {
    sourceId,
    meter: "deployments",
    state: "counted",
    evidence: "test",
    startsOn: "2026-02-20",
  });
  for (const groupBy of GROUPINGS) {
    const response = { sourceId, groupBy, workspaceId: WORKSPACE };
    const id = idOf(groupBy);
    for (const traces of [7, 9]) {
      for (const meter of ["longlived", "shortlived"] as const) {
        const window = windowOf("day", ...MARCH);
        const rows = [
          [DAY, id, traces, "name"],
          ["2026-03-31", id, 3, "name"],
        ] as const;
        await loadRows(store, { ...response, meter, window, rows });
      }
      await loadDeploymentRows(store, {
        ...response,
        window: windowOf("day", "2026-02-20", "2026-03-20"),
        rows: [[DAY, id, [traces, 1, 86_400], "name"]],
      });
    }
    await fail("longlived", groupBy, ["2026-03-05", "2026-03-20"]);
    await fail("deployments", groupBy, ["2026-03-05", "2026-03-20"]);
  }
}

/** All that is read of traces, as texts, but for how long ago something was. `asOf`: an instant that has passed. */
async function everything(asOf: string): Promise<Record<string, unknown>> {
  const { rows: views } = await client.query<{ name: string; columns: string }>(
    `SELECT c.relname AS name, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
     WHERE c.relnamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace) AND c.relkind = 'v'
       AND a.attname NOT IN ('lag_seconds', 'longlived_traces', 'shortlived_traces', 'tiers_status') GROUP BY 1`,
  );
  const read: Record<string, unknown> = {};
  const keep = async (name: string, text: string) => {
    read[name] = (await client.query(`SELECT x::text AS row FROM (${text}) x ORDER BY 1`)).rows;
  };
  for (const { name, columns } of views) {
    const own = name === "usage_restatement" ? " WHERE usage_kind = 'traces' AND trace_tier = 'all'" : "";
    if (!ABOUT_OTHERS.test(name)) await keep(name, `SELECT ${columns} FROM ${inSchema(name)}${own}`);
  }
  await keep("as of", `SELECT * FROM reporting_detail.usage_daily_as_of('${asOf}')`);
  const range = windowOf("day", ...MARCH);
  const { db } = store;
  read.coverage = await coverageLines(db, { byDay: true });
  read.trust = (await trustOfSources(db)).map((one) => ({ ...one, meters: undefined, otherGaps: undefined }));
  read.alerts = (await alertFacts(db, sourceId)).map((one) => ({
    ...one,
    finalChanges: one.finalChanges.filter(({ meter }) => meter === "traces"),
    secondsWithoutLoad: undefined,
    now: undefined,
    readAt: undefined,
  }));
  read.unpriced = await unpricedUsage(db, sourceId);
  read.zeros = await lostWorkspaces(db);
  const [checked] = await openDaysOf(db, { sourceId, ranges: [range] });
  read.required = checked?.required;
  read.toClose = await totalsToClose(db, {
    sourceId,
    period: monthAt(Date.parse(MARCH[0])),
    workspaces: (read.required as { entityId: number }[]).map((one) => one.entityId),
  });
  return read;
}

test("whatever is loaded of other kinds and tiers, what is shown of traces stays as it is", async () => {
  await loadTraces();
  const { rows } = await client.query("SELECT (clock_timestamp() - interval '1 second')::text AS at");
  const before = await everything(rows[0].at);
  await loadOthers();
  const after = await everything(rows[0].at);
  expect(Object.keys(after)).toEqual(Object.keys(before));
  for (const name of Object.keys(before)) expect(after[name], name).toEqual(before[name]);
});
