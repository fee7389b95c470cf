import { expect, test } from "vitest";
import { monthAt, monthBefore } from "../../../../src/core/domain/months/month.ts";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { readBill } from "../../../../src/features/costs/read-bill.ts";
import { statementName, statementValue } from "../../../../src/features/costs/statement.ts";
import { statementLines } from "../../../../src/features/costs/statement-lines.store.ts";
import { now } from "../../../support/clock.ts";
import { type Bench, setup } from "../../../support/source.ts";

const bench = (standin = {}) =>
  setup({ workspaces: [0], days: 4, hourlyForMs: HOUR_MS, standin: { engine: "on", ...standin } });
const read = async (of: Bench, baseUrl = of.standin.url, isPatient = false) =>
  readBill(await of.open({ baseUrl }), { reach: "month", isPatient });
const linesOf = async (of: Bench, at = now()) =>
  (await statementLines(of.store.db, { source: "default", monthStart: monthAt(at).start })).map(
    (line) => `${statementName(line)}: ${statementValue(line)}`,
  );

test("a later reading of a day replaces its lines, and other days and kinds stay", async () => {
  const of = await bench();
  await read(of);
  await of.sql("UPDATE usage.statement_line SET taken_on = taken_on - 1");
  const { statement } = of.standin;
  statement.policies.splice(0, 1);
  statement.fleetLimit = -1;
  statement.engineLimit = null;
  await read(of);
  await read(of);
  const counts = await of.sql<{ line: string }>(
    `SELECT concat_ws(' ', kind, (now() AT TIME ZONE 'UTC')::date - taken_on, count(*)) AS line FROM usage.statement_line
     WHERE kind IN ('members', 'gateway_spend') GROUP BY kind, taken_on ORDER BY 1`,
  );
  expect(counts.map(({ line }) => line)).toEqual([
    "gateway_spend 0 1",
    "gateway_spend 1 2",
    "members 0 1",
    "members 1 1",
  ]);
  const lines = await linesOf(of);
  expect(lines.filter((line) => line.startsWith("Spend"))).toHaveLength(1);
  expect(lines).toContain("Fleet limit, month: no limit");
  expect(lines).toContain("Engine limit of an administrator, month: no limit");
});

test("runs and nodes of deployments are compared with the provider's metrics of that name", async () => {
  const days =
    Math.floor(now() / DAY_MS) - Date.parse(monthBefore(monthAt(now() - 4 * DAY_MS)).start) / DAY_MS + 1;
  const start = new Date(now() - days * DAY_MS).toISOString().slice(0, 10);
  const of = await setup({
    days,
    workspaces: [0, 1],
    hourlyForMs: HOUR_MS,
    standin: { contract: "day-granular", deploymentStart: start },
  });
  const how = { settings: { meters: ["traces", "deployments"] } } as const;
  await of.sync(how);
  const totals = async () => {
    await readBill(await of.open(how), { reach: "month", isPatient: false });
    return of.sql<{ line: string }>(
      `SELECT DISTINCT concat_ws(' ', meter, outcome) AS line FROM reporting_detail.usage_provider_total
       WHERE meter IN ('agent_runs', 'nodes_executed') AND workspace_id = ANY ($1) ORDER BY 1`,
      [of.workspaceIds],
    );
  };
  expect((await totals()).map(({ line }) => line)).toEqual(["agent_runs equal", "nodes_executed equal"]);
  const month = monthBefore(monthAt(now() - 4 * DAY_MS));
  of.standin.bill.drifts.push({
    metric: "runs",
    workspaceId: of.workspaceIds[0] as string,
    at: Date.parse(month.start) + DAY_MS,
    delta: 5,
  });
  expect((await totals()).map(({ line }) => line)).toContain("agent_runs differs");
  expect(
    await of.sql(
      "SELECT measure, other_amount - stored_amount = 5 AS five FROM reporting_detail.usage_reconciliation WHERE kind = 'provider_total'",
    ),
  ).toEqual([{ measure: "agent_runs", five: true }]);
});
