import { parse } from "csv-parse/sync";
import { expect, test } from "vitest";
import { CLOSE_MARCH, createMonths, createPrices } from "../support/charges.ts";
import { usageEtl } from "../support/cli.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../support/store.ts";

const [WORKSPACE, OTHER] = WORKSPACES;

async function setupBill() {
  const bench = await setupSource();
  const reader = await connectPlain(bench.url, "usage_reader");
  const bill = async (month: string) => {
    const { rows } = await reader.query<Record<string, string | null>>(
      `SELECT line, service, measure, sku, trim_scale(unit_price) AS price, currency, to_char(corrected_month, 'YYYY-MM') AS corrected,
              trim_scale(quantity) AS quantity, trim_scale(estimated_cost) AS cost,
              concat_ws(' ', CASE WHEN is_final THEN 'final' END, CASE WHEN is_proved THEN 'proved' END, CASE WHEN is_closed THEN 'closed' END) AS state
       FROM reporting.usage_bill_monthly WHERE month_start = $1 ORDER BY line_number`,
      [`${month}-01`],
    );
    return rows.map((row) =>
      Object.values(row)
        .map((cell) => cell ?? "-")
        .join(" | ")
        .trim(),
    );
  };
  const exits: (number | null)[] = [];
  const command = async (...flags: string[]) => {
    const { code, stdout } = await usageEtl(["bill", ...flags], { DATABASE_URL: bench.url });
    exits.push(code);
    return stdout;
  };
  const printed = async (month: string) =>
    (await command(month))
      .trim()
      .split("\n")
      .map((line) => line.trim().replaceAll(/ {2,}/g, " | "));
  return { ...bench, bill, command, exits, printed, owner: await connectPlain(bench.url) };
}

test("a month is billed by price, and what has no price or is not loaded is a line without a cost", async () => {
  const bench = await setupBill();
  await createMonths(bench, { [WORKSPACE]: { 0: 6, 1: 7 }, [OTHER]: { 0: 3, 40: 2 } }, { [OTHER]: [4] });
  expect(await bench.bill("2026-03")).toEqual([
    "unpriced | traces | traces | - | - | - | - | 16 | - |",
    "not_loaded | traces | traces | - | - | - | - | - | - |",
  ]);

  await createPrices(bench.store, [
    { unitPrice: "1.5", from: "2026-03-02" },
    { unitPrice: "1", from: "2026-03-02", fromQuantity: 4 },
    { sku: "fee", unitPrice: "0.25", workspace: WORKSPACE },
  ]);
  expect(await bench.bill("2026-03")).toEqual([
    "charge | traces | traces | fee | 0.25 | USD | - | 13 | 3.25 |",
    "charge | traces | traces | traces | 1.5 | USD | - | 4 | 6 |",
    "charge | traces | traces | traces | 1 | USD | - | 3 | 3 |",
    "unpriced | traces | traces | traces | - | - | - | 6 | - |",
    "unpriced | traces | traces | - | - | - | - | 3 | - |",
    "not_loaded | traces | traces | - | - | - | - | - | - |",
  ]);
  expect(await bench.bill("2026-04")).toEqual([
    "charge | traces | traces | traces | 1.5 | USD | - | 2 | 3 | final",
  ]);
  const total = async () => (await bench.printed("2026-04")).find((line) => line.startsWith("Total: "));
  const whole = await total();
  expect(whole).toMatch(/^Total: 3.00 USD, final/);
  expect(bench.exits).toEqual([0]);

  await bench.owner.query(
    "INSERT INTO usage.unloaded_workspace SELECT source_id, '2026-04-01', 'elsewhere', 'Elsewhere', 1234, now() FROM usage.source",
  );
  expect(await total()).toBe(`${whole?.slice(0, -1)}, without workspaces that no sync loads.`);
  expect(await bench.command("2026-04")).toContain(
    "Not in this bill: 1,234 traces (about 1,235.00 USD at the prices of the month) of workspace Elsewhere",
  );
  expect(await bench.command("2026-04", "--by", "owner")).toContain("without workspaces that no sync loads");
  expect(bench.exits).toEqual([0, 4, 4, 4]);
});

test("lines of a price by volume say which part of the month they are for, also where the price is imported no more", async () => {
  const bench = await setupBill();
  await createMonths(bench, { [WORKSPACE]: { 0: 1500, 40: 2 }, [OTHER]: { 0: 1200, 40: 3 } });
  await createPrices(bench.store, [
    { unitPrice: "0" },
    { unitPrice: "0.2", fromQuantity: 1000 },
    { unitPrice: "0.1", fromQuantity: 2500 },
    { sku: "fee", unitPrice: "0.5", countedOver: "workspace" },
    { sku: "fee", unitPrice: "0.4", countedOver: "workspace", fromQuantity: 1200 },
  ]);
  const billed = [
    "Traces, first 1,200 of each workspace | fee | 2,400 traces | 0.5 | 1,200.00 USD",
    "Traces, above 1,200 of each workspace | fee | 300 traces | 0.4 | 120.00 USD",
    "Traces, first 1,000 | traces | 1,000 traces | 0 | 0.00 USD",
    "Traces, above 1,000 up to 2,500 | traces | 1,500 traces | 0.2 | 300.00 USD",
    "Traces, above 2,500 | traces | 200 traces | 0.1 | 20.00 USD",
  ];
  const shown = async (month: string) =>
    (await bench.printed(month))
      .slice(3)
      .filter((line) => line.includes(" | "))
      .map((line) => line.replace(/ \| [^|]*$/, ""));
  expect(await shown("2026-03")).toEqual(billed);
  const inFile = async (...flags: string[]) => {
    const rows: Record<string, string>[] = parse(await bench.command("2026-03", "--csv", ...flags), {
      columns: true,
    });
    const columns = [
      "row",
      "workspace_id",
      "what",
      "sku",
      "quantity",
      "unit",
      "currency",
      "cost",
      "estimated_cost",
    ];
    return rows.map((row) => columns.map((column) => row[column]).join(" | "));
  };
  expect(await inFile()).toEqual([
    "line |  | Traces, first 1,200 of each workspace | fee | 2400 | traces | USD | 1200 | 1200",
    "line |  | Traces, above 1,200 of each workspace | fee | 300 | traces | USD | 120 | 120",
    "line |  | Traces, first 1,000 | traces | 1000 | traces | USD | 0 | 0",
    "line |  | Traces, above 1,000 up to 2,500 | traces | 1500 | traces | USD | 300 | 300",
    "line |  | Traces, above 2,500 | traces | 200 | traces | USD | 20 | 20",
    "total |  | Total |  |  |  | USD | 1640 | 1640",
  ]);
  expect(await inFile("--by", "workspace")).toEqual([
    `line | ${WORKSPACE} | Traces, first 1,200 of each workspace | fee | 1200 | traces | USD | 600 | 600`,
    `line | ${WORKSPACE} | Traces, above 1,200 of each workspace | fee | 300 | traces | USD | 120 | 120`,
    `line | ${WORKSPACE} | Traces, first 1,000 | traces | 1000 | traces | USD | 0 | 0`,
    `line | ${WORKSPACE} | Traces, above 1,000 up to 2,500 | traces | 500 | traces | USD | 100 | 100`,
    `line | ${OTHER} | Traces, first 1,200 of each workspace | fee | 1200 | traces | USD | 600 | 600`,
    `line | ${OTHER} | Traces, above 1,000 up to 2,500 | traces | 1000 | traces | USD | 200 | 200`,
    `line | ${OTHER} | Traces, above 2,500 | traces | 200 | traces | USD | 20 | 20`,
    "total |  | Total |  |  |  | USD | 1640 | 1640",
  ]);

  await bench.owner.query(CLOSE_MARCH);
  expect(await shown("2026-03")).toEqual(billed);
  await createPrices(bench.store, [{ sku: "fee", unitPrice: "0.5" }]);
  expect(await shown("2026-03")).toEqual([
    "Traces, first tier | fee | 2,400 traces | 0.5 | 1,200.00 USD",
    "Traces, tier above 1,200 | fee | 300 traces | 0.4 | 120.00 USD",
    "Traces, first tier | traces | 1,000 traces | 0 | 0.00 USD",
    "Traces, tier above 1,000 | traces | 1,500 traces | 0.2 | 300.00 USD",
    "Traces, tier above 2,500 | traces | 200 traces | 0.1 | 20.00 USD",
  ]);
  expect((await shown("2026-04")).slice(0, 3)).toEqual([
    "Traces | fee | 5 traces | 0.5 | 2.50 USD",
    "Traces, tier above 1,200, correction of 2026-03 | fee | -300 traces | 0.4 | -120.00 USD",
    "Traces, correction of 2026-03 | fee | 300 traces | 0.5 | 150.00 USD",
  ]);
});

test("deployment usage is a line of each measure, until one of them is priced; from October 2026 on its units are named as not reported", async () => {
  const bench = await setupBill();
  await createMonths(bench, { [WORKSPACE]: {}, [OTHER]: {} });
  for (const workspaceId of WORKSPACES) {
    for (const month of ["2026-03", "2026-10"]) {
      const end = month === "2026-03" ? "2026-04-01" : "2026-11-01";
      await loadDeploymentRows(bench.store, {
        sourceId: bench.sourceId,
        workspaceId,
        groupBy: "workspace" as const,
        window: windowOf("day", `${month}-01`, end),
        rows: workspaceId === WORKSPACE ? [[`${month}-02`, WORKSPACE, [5, 2, 60]]] : [],
      });
    }
  }
  const used = [
    "unpriced | deployments | agent_runs | - | - | - | - | 2 | - | final",
    "unpriced | deployments | agent_uptime_seconds | - | - | - | - | 60 | - | final",
    "unpriced | deployments | nodes_executed | - | - | - | - | 5 | - | final",
  ];
  expect(await bench.bill("2026-03")).toEqual(used);
  expect((await bench.printed("2026-03")).slice(-2)).toEqual([
    "Total: not known.",
    "Import prices with `usage-etl prices import FILE`.",
  ]);
  const october = await bench.bill("2026-10");
  expect(october.filter((line) => line.startsWith("not_charged"))).toEqual(
    used.map((line) => line.replace("unpriced", "not_charged")),
  );
  const notReported = (lines: readonly string[]) => lines.filter((line) => line.startsWith("not_reported"));
  expect(notReported(october)).toEqual([
    "not_reported | deployments | deployment_lcu | - | - | - | - | - | - |",
    "not_reported | deployments | deployment_lsu | - | - | - | - | - | - |",
  ]);

  const add = (...line: string[]) => bench.command("add", "2026-10", ...line, "--reason", "invoice 4711");
  await add("Compute units of deployments", "120.5", "USD", "--for", "deployment_lcu");
  await add("Seats", "390.00", "USD");
  await add("Seats, a credit", "-39.00", "USD");
  await add("Seats", "39.001", "USD");
  expect(bench.exits.slice(-4)).toEqual([0, 0, 0, 2]);
  const billed = await bench.bill("2026-10");
  expect(notReported(billed)).toHaveLength(1);
  expect(billed.filter((line) => line.startsWith("added"))).toEqual([
    "added | other | - | - | - | USD | - | - | 390 | final",
    "added | other | - | - | - | USD | - | - | -39 | final",
    "added | deployments | deployment_lcu | - | - | USD | - | - | 120.5 | final",
  ]);
  const shown = await bench.printed("2026-10");
  expect(shown.filter((line) => line.startsWith("Seats"))).toEqual([
    "Seats | - | - | - | 390.00 USD | entered by hand",
    "Seats, a credit | - | - | - | -39.00 USD | entered by hand",
  ]);
  expect(shown).toContainEqual(
    "Total: 471.50 USD, without the lines that have no cost, with lines entered by hand.",
  );
  await add("Compute units of deployments, taken back", "-120.5", "USD", "--for", "deployment_lcu");
  expect(notReported(await bench.bill("2026-10"))).toHaveLength(2);
  await bench.command("add", "2020-01", "Seats", "390.00", "USD", "--reason", "a month without a bill");
  expect(bench.exits.slice(-2)).toEqual([0, 2]);
  const { rows: stored } = await bench.owner.query(
    "SELECT FROM usage.added_line WHERE month_start = '2020-01-01'",
  );
  expect(stored).toEqual([]);
  await createPrices(bench.store, [{ sku: "runs", measure: "agent_runs", unitPrice: "0.1" }]);
  expect(await bench.bill("2026-03")).toEqual([
    "charge | deployments | agent_runs | runs | 0.1 | USD | - | 2 | 0.2 | final",
  ]);
  expect((await bench.bill("2026-10"))[1]).toBe(
    "estimate | deployments | agent_runs | runs | 0.1 | USD | - | 2 | 0.2 | final",
  );
  for (const view of [
    "reporting.fct_cost_workspace_daily",
    "reporting_detail.fct_cost_by_id_daily WHERE group_by = 'deployment'",
  ]) {
    const marks = await bench.owner.query(
      `SELECT DISTINCT to_char(usage_date, 'YYYY-MM') AS month, is_invoiced FROM ${view} ORDER BY 1`,
    );
    expect(marks.rows, view).toEqual([
      { month: "2026-03", is_invoiced: "t" },
      { month: "2026-10", is_invoiced: "f" },
    ]);
  }
  const { rows } = await bench.owner.query<{ text: string }>(
    `SELECT "ChargeDescription" AS text FROM reporting_detail.focus_1_4_cost_and_usage ORDER BY "x_BillingMonth"`,
  );
  expect(rows.map(({ text }) => text.slice(0, 45))).toEqual([
    "Estimate: 2 agent runs of 00000000-0000-4000-",
    "Estimate, which no invoice has: 2 agent runs ",
  ]);
});

async function loadMarch(
  { store, sourceId }: Awaited<ReturnType<typeof setupBill>>,
  meter: "traces" | "longlived" | "deployments",
  counts: readonly [day: string, workspaceId: string, count: number][],
) {
  for (const workspaceId of WORKSPACES) {
    const given = {
      sourceId,
      workspaceId,
      groupBy: "workspace" as const,
      window: windowOf("day", "2026-03-01", "2026-04-01"),
    };
    const own = counts.filter(([, id]) => id === workspaceId);
    if (meter !== "deployments") await loadRows(store, { ...given, meter, rows: own });
    else
      await loadDeploymentRows(store, {
        ...given,
        rows: own.map(([day, id, count]) => [day, id, [count, count, count]] as const),
      });
  }
}

test("what a price of deployments or of long-lived traces leaves out on some days or in some workspaces is a line without a cost", async () => {
  const bench = await setupBill();
  await loadMarch(bench, "traces", [["2026-03-02", WORKSPACE, 10]]);
  await loadMarch(bench, "longlived", [
    ["2026-03-02", WORKSPACE, 3],
    ["2026-03-20", WORKSPACE, 4],
  ]);
  await loadMarch(bench, "traces", [
    ["2026-03-02", WORKSPACE, 10],
    ["2026-03-20", WORKSPACE, 10],
  ]);
  await loadMarch(bench, "deployments", [
    ["2026-03-02", WORKSPACE, 5],
    ["2026-03-02", OTHER, 7],
  ]);
  await createPrices(bench.store, [
    { unitPrice: "1" },
    { sku: "long", measure: "longlived", unitPrice: "2", to: "2026-03-15" },
    { sku: "runs", measure: "agent_runs", unitPrice: "1", workspace: WORKSPACE },
  ]);
  const bill = [
    "charge | traces | longlived | long | 2 | USD | - | 3 | 6 | final",
    "charge | traces | traces | traces | 1 | USD | - | 20 | 20 | final",
    "unpriced | traces | longlived | - | - | - | - | 4 | - | final",
    "charge | deployments | agent_runs | runs | 1 | USD | - | 5 | 5 | final",
    "unpriced | deployments | agent_runs | - | - | - | - | 7 | - | final",
  ];
  expect(await bench.bill("2026-03")).toEqual(bill);
  await bench.owner.query(CLOSE_MARCH);
  await createPrices(bench.store, [{ unitPrice: "1" }]);
  expect(await bench.bill("2026-03")).toEqual(bill.map((line) => `${line} closed`));
});

test("short-lived traces of a day on which the platform contradicts itself are not known", async () => {
  const bench = await setupBill();
  await loadMarch(bench, "traces", [["2026-03-02", WORKSPACE, 10]]);
  await loadMarch(bench, "longlived", [["2026-03-02", WORKSPACE, 12]]);
  await createPrices(bench.store, [{ sku: "short", measure: "shortlived", unitPrice: "1" }]);
  expect(await bench.bill("2026-03")).toEqual([
    "unpriced | traces | longlived | - | - | - | - | 12 | - | final",
    "inconsistent | traces | shortlived | - | - | - | - | - | - |",
  ]);
  expect((await bench.printed("2026-03")).slice(-3)).toEqual([
    "Short-lived traces | - | - | - | - | not known: more long-lived traces than traces on some days",
    "Total: not known.",
    "Import prices with `usage-etl prices import FILE`.",
  ]);
});
