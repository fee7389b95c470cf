import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { expect, test } from "vitest";
import type { FeatureJob, JobContext } from "../../jobs/job.ts";
import { openIncidents } from "../../src/features/alerts/conditions.ts";
import { invoiceJobs } from "../../src/features/invoice/explain.job.ts";
import { CLOSE_MARCH, createMonths, createPrices } from "../support/charges.ts";
import { usageEtl } from "../support/cli.ts";
import { pictureCsv } from "../support/invoices.ts";
import { setOwners } from "../support/owners.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { type GivenLine, insertInvoice } from "../support/stored-invoices.ts";
import { temporaryFile, temporaryFolder } from "../support/temporary.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const SUM = "LangSmith Traces";

interface Data {
  readonly bill: string;
  readonly difference: string;
  readonly remainder: string;
  readonly causes: readonly Record<string, string | null>[];
  readonly unexplained: readonly Record<string, string | null>[];
  readonly lines: readonly Record<string, string | number | null>[];
  readonly suggestions: readonly Record<string, string | null>[];
  readonly settlement: { readonly reason: string | null; readonly corrected: number } | null;
}

/** A source with prices by volume: 10 free traces of each workspace, then 0.005. */
async function setupInvoices() {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  await createMonths(bench, { [WORKSPACE]: { 0: 30, 40: 7 }, [OTHER]: { 1: 15 } });
  await createPrices(bench.store, [
    { unitPrice: "0", countedOver: "workspace" },
    { unitPrice: "0.005", fromQuantity: 10, countedOver: "workspace" },
  ]);
  const run = async (...words: string[]) => usageEtl(["invoice", ...words], { DATABASE_URL: bench.url });
  const explained = async (number: string) => {
    const { code, stdout } = await run("explain", number, "--json");
    return { code, ...(JSON.parse(stdout) as Data) };
  };
  return { ...bench, client, run, explained };
}

function tiers(workspace: string | null, free: number, charged: number, amount: string): GivenLine[] {
  const about = { sum: SUM, workspace };
  return [
    { ...about, text: "Tier 1 (0 - 10)", quantity: String(free), unitPrice: "0", amount: "0" },
    { ...about, text: "Tier 2 (> 10)", quantity: String(charged), unitPrice: "0.005", amount },
  ];
}

const AGREED = [...tiers(WORKSPACE, 10, 20, "0.1"), ...tiers(OTHER, 10, 5, "0.03")];

test("an invoice that agrees has no cause but its rounding, and the same inputs are one match", async () => {
  const { client, run, explained } = await setupInvoices();
  await insertInvoice(client, { number: "A-1", issuedOn: "2026-04-01", lines: AGREED });
  const first = await explained("A-1");
  // 5 x 0.005 is 0.025, which the invoice rounds half up.
  expect(first).toMatchObject({ code: 0, difference: "0.005", remainder: "0", unexplained: [] });
  expect(first.causes).toMatchObject([{ cause: "rounding", amount: "0.005" }]);
  expect(first.lines.map(({ state }) => state)).toEqual(["agrees", "agrees", "agrees", "agrees"]);
  expect(await explained("A-1")).toEqual(first);
  const matches = async () =>
    (
      await client.query(
        "SELECT invoice_id, remainder, jsonb_array_length(inputs -> 'lines') AS lines FROM usage.invoice_match",
      )
    ).rows;
  expect(await matches()).toEqual([{ invoice_id: "1", remainder: "0.0000000000", lines: "4" }]);
  // All amounts that are stored add up to the difference.
  const { rows } = await client.query(
    "SELECT m.total - m.bill = sum(c.amount) AS adds_up FROM usage.invoice_match m JOIN usage.invoice_cause c USING (match_id) GROUP BY match_id",
  );
  expect(rows).toEqual([{ adds_up: "t" }]);
  const { stdout } = await run("explain", "A-1", "--lines");
  expect(stdout).toContain(
    "0.13 USD; our bill of the same usage, 0.125 USD. The invoice is 0.005 USD higher.",
  );
  expect(stdout).toContain("Lines: 4 agrees.");
});

test("the workspace that nobody reads is why an invoice is 424.09 USD higher", async () => {
  const { client, run, explained, store } = await setupInvoices();
  await createPrices(store, [{ unitPrice: "0.004" }]);
  await client.query(
    "INSERT INTO usage.unloaded_workspace SELECT source_id, '2026-03-01', 'elsewhere', 'Elsewhere', 106023, now() FROM usage.source",
  );
  const line = (workspace: string, quantity: string, amount: string): GivenLine => ({
    ...{ text: SUM, workspace, quantity, unitPrice: "0.004", amount, period: ["2026-03-01", "2026-04-01"] },
  });
  const lines = [
    line(WORKSPACE, "30", "0.12"),
    line(OTHER, "15", "0.06"),
    line("Elsewhere", "106023", "424.09"),
  ];
  await insertInvoice(client, { number: "A-1", issuedOn: "2026-04-01", lines });
  const found = await explained("A-1");
  expect(found).toMatchObject({ code: 0, difference: "424.09", remainder: "0" });
  expect(found.causes).toMatchObject([
    { cause: "unread_workspace", workspaceId: "elsewhere", quantity: "106023", amount: "424.09" },
  ]);
  expect(found.lines.at(-1)).toMatchObject({ state: "only_on_invoice" });
  const { stdout } = await run("explain", "A-1");
  expect(stdout).toMatch(/a workspace that no sync loads +traces, Elsewhere +March 2026 +106,023 +424.09/);
  const unknown = await run("explain", "A-2");
  expect([unknown.code, unknown.stderr]).toEqual([
    2,
    expect.stringContaining("No invoice A-2 is stored. Did you mean A-1?"),
  ]);
});

test("the invoice of the published picture agrees with its usage, tier by tier", async () => {
  const bench = await setupInvoices();
  const window = windowOf("day", "2026-10-01", "2026-11-01");
  const given = { sourceId: bench.sourceId, groupBy: "workspace" as const, window };
  const used = { traces: 118_963, longlived: 43_137 };
  for (const meter of ["traces", "longlived"] as const) {
    const rows = [["2026-10-05", WORKSPACE, used[meter]] as const];
    await loadRows(bench.store, { ...given, meter, workspaceId: WORKSPACE, rows });
    await loadRows(bench.store, { ...given, meter, workspaceId: OTHER, rows: [] });
  }
  const price = (sku: string, unitPrice: string, fromQuantity: number) => ({
    ...{ sku, unitPrice, fromQuantity, countedOver: "workspace" as const },
    measure: sku as "traces" | "longlived",
  });
  await createPrices(bench.store, [
    ...[price("traces", "0", 0), price("traces", "0.0005", 10_000)],
    ...[price("longlived", "0", 0), price("longlived", "0.0045", 10_000)],
  ]);
  const imported = await bench.run("import", temporaryFile(pictureCsv(), "invoice.csv"), "--yes");
  expect(imported.code, imported.stderr).toBe(0);
  // It is compared when it is imported.
  const { rows: states } = await bench.client.query(
    "SELECT state, count(*) FROM reporting_detail.fct_invoice_line GROUP BY 1 ORDER BY 1",
  );
  expect(states).toEqual([
    { state: "agrees", count: "4" },
    { state: "not_comparable", count: "1" },
  ]);
  const found = await bench.explained("INV-1");
  expect(found).toMatchObject({
    code: 0,
    bill: "203.598",
    difference: "38.682",
    remainder: "0",
    unexplained: [],
  });
  expect(found.causes.map(({ cause, sku, amount }) => [cause, sku, amount])).toEqual([
    ...[
      ["rounding", "traces", "-0.0015"],
      ["rounding", "longlived", "0.0035"],
      ["tax", null, "38.68"],
    ],
  ]);
  expect(found.lines.map(({ state }) => state)).toEqual([
    ...["agrees", "agrees", "agrees", "agrees", "not_comparable"],
  ]);
});

test("every night the service compares issued invoices that nobody has settled again", async () => {
  const { client, run, sourceId, store } = await setupInvoices();
  const about = { lines: AGREED, issuedOn: "2026-04-01" };
  for (const number of ["A-1", "A-2"]) await insertInvoice(client, { ...about, number });
  await insertInvoice(client, { ...about, number: "A-3", status: "open" });
  expect((await run("settle", "A-2")).code).toBe(0);
  const [{ job }] = invoiceJobs() as [FeatureJob];
  const source = { known: async () => ({ store, sourceId }) };
  const context = { source, signal: new AbortController().signal } as unknown as JobContext;
  expect(await job.handle(context, {}, {} as never)).toEqual({ explained: 1 });
  const { rows } = await client.query(
    "SELECT DISTINCT invoice_number FROM reporting_detail.invoice_comparison ORDER BY 1",
  );
  expect(rows.map((row) => row.invoice_number)).toEqual(["A-1", "A-2"]);
});

test("each line has a state, and rules of a file decide what it charges and which difference is tolerated", async () => {
  const { client, run, explained } = await setupInvoices();
  const lines: GivenLine[] = [
    ...tiers(WORKSPACE, 10, 21, "0.11"),
    ...tiers("unheard", 10, 0, "0"),
    { text: "Traces of March", quantity: "45", amount: "3" },
    { text: "Base charge", kind: "seat", quantity: "2", amount: "78" },
  ];
  await insertInvoice(client, { number: "A-1", issuedOn: "2026-04-01", lines });
  const first = await explained("A-1");
  expect(first.code).toBe(4);
  const states = ({ lines }: Data) => lines.map(({ state, why }) => [state, why].filter(Boolean).join(" "));
  expect(states(first)).toEqual([
    ...["agrees", "quantity_differs", "only_on_invoice", "only_on_invoice"],
    ...["not_comparable no_rule", "not_comparable seat", "only_here", "only_here"],
  ]);
  // 45 traces are exactly what both workspaces have.
  expect(first.suggestions).toMatchObject([{ text: "Traces of March", measure: "traces", quantity: "45" }]);
  expect(first.unexplained.map(({ why, amount }) => `${why} ${amount}`).sort()).toEqual([
    ...["no_rule 3", "only_here -0.03", "usage 0.01"],
  ]);

  const file = join(temporaryFolder(), "rules.csv");
  writeFileSync(file, "text,measure,tolerance_amount\nLangSmith Traces,traces,0.01\ntraces of *,seat,\n");
  expect((await run("rules", file)).stdout).toContain("2 rules in force");
  const second = await explained("A-1");
  expect(states(second).slice(0, 6)).toEqual([
    ...["agrees", "within_tolerance", "only_on_invoice", "only_on_invoice"],
    ...["not_comparable seat", "not_comparable seat"],
  ]);
  // Only the workspace that the invoice leaves out is open.
  expect(second.unexplained.filter(({ isTolerated }) => !isTolerated)).toMatchObject([{ why: "only_here" }]);
  const { stdout } = await run("rules");
  expect(stdout.split("\n").slice(0, 3)).toEqual([
    "text,measure,sku,kind,unit,from,to,period,rounding,tolerance_amount,tolerance_percent,divide",
    "LangSmith Traces,traces,,,,,,previous_month,half_up,0.01,,",
    "traces of *,seat,,,,,,previous_month,half_up,,,",
  ]);
  writeFileSync(file, "text,measure,rounding\n,trace,up\n");
  const refused = await run("rules", file);
  expect(refused.code).toBe(2);
  for (const part of [
    'line 2, column "text"',
    'line 2, column "measure": "trace" is not one of',
    'column "rounding": "up"',
  ])
    expect(refused.stderr).toContain(part);
});

test("views show the newest comparison: causes add up to the difference, and lines to the total", async () => {
  const { client, url, run } = await setupInvoices();
  const lines = AGREED.map((line, at) => (at === 1 ? { ...line, amount: "12.44" } : line));
  const tax: GivenLine = { text: "Tax", kind: "tax", amount: "2.3" };
  await insertInvoice(client, { number: "A-1", issuedOn: "2026-04-01", lines: [...lines, tax] });
  await insertInvoice(client, {
    number: "A-2",
    issuedOn: "2026-05-01",
    corrects: "A-1",
    lines: [{ ...tax, amount: "-2.3" }],
  });
  // The first comparison is before the rules, the second one with another rounding.
  for (const number of ["A-1", "A-2"]) await run("explain", number);
  const file = temporaryFile("text,measure,rounding\nLangSmith Traces,traces,down\n", "rules.csv");
  await run("rules", file);
  await run("explain", "A-1");
  const reader = await connectPlain(url, "usage_reader");
  const { rows } = await reader.query(`
    SELECT invoice_number, trim_scale(max(difference)) AS difference, trim_scale(sum(amount)) AS amount, array_agg(cause ORDER BY cause_number)::text AS causes
    FROM reporting_detail.invoice_comparison GROUP BY 1 ORDER BY 1`);
  expect(rows).toEqual([
    {
      invoice_number: "A-1",
      difference: "14.645",
      amount: "14.645",
      causes: "{rounding,tax,unexplained,unexplained}",
    },
    { invoice_number: "A-2", difference: "-2.3", amount: "-2.3", causes: "{tax}" },
  ]);
  const { rows: sums } = await reader.query(`
    SELECT invoice_number, trim_scale(sum(amount)) AS amount, count(*) AS lines, string_agg(DISTINCT state, ' ' ORDER BY state) AS states
    FROM reporting_detail.fct_invoice_line GROUP BY 1 ORDER BY 1`);
  expect(sums).toEqual([
    { invoice_number: "A-1", amount: "14.77", lines: "5", states: "agrees not_comparable price_differs" },
    { invoice_number: "A-2", amount: "-2.3", lines: "1", states: "not_comparable" },
  ]);
  const { rows: focus } = await reader.query(`
    SELECT "InvoiceId" AS id, "ReferenceInvoiceId" AS of, "ChargeCategory" AS category, trim_scale("BilledCost") AS cost
    FROM reporting_detail.focus_1_4_invoice_detail WHERE "ChargeCategory" = 'Tax' ORDER BY 1`);
  expect(focus).toEqual([
    { id: "A-1", of: "A-1", category: "Tax", cost: "2.3" },
    { id: "A-2", of: "A-1", category: "Tax", cost: "-2.3" },
  ]);
});

test("an invoice is charged back to owners: the parts are its total, and the ledger balances", async () => {
  const { client, run, store } = await setupInvoices();
  await setOwners(
    store,
    `rules:
  - { workspace: ${WORKSPACE}, shares: [{ owner: search, cost_center: CC-1, share: 0.5 }, { owner: chat, share: 0.5 }] }
  - { workspace: ${OTHER}, owner: "=chat" }`,
  );
  const lines: GivenLine[] = [
    ...AGREED,
    { text: "LangSmith Plus Seats", kind: "seat", amount: "39" },
    { text: "Sales tax", kind: "tax", amount: "2.01" },
    { text: "Credit", kind: "credit", amount: "-1" },
  ];
  await insertInvoice(client, { number: "A-1", issuedOn: "2026-04-01", lines });
  const rules = temporaryFile("text,measure,divide\nsales tax,,finance=100\n*seats,seat,even\n", "rules.csv");
  expect((await run("rules", rules)).code).toBe(0);
  const { stdout } = await run("charge-back", "A-1", "--csv");
  const [, ...rows]: string[][] = parse(stdout);
  const sumOf = (which: (row: string[]) => boolean) =>
    rows.filter(which).reduce((sum, row) => sum + Math.round(Number(row[7]) * 100), 0);
  // 0.1 + 0.03 of usage, 39 of seats, 2.01 of tax, and a credit of 1.
  expect(sumOf(() => true)).toBe(4014);
  expect(rows.filter((row) => row[6] === "Sales tax").map((row) => [row[3], row[7]])).toEqual([
    ["finance", "2.01"],
  ]);
  expect(rows.filter((row) => row[6]?.endsWith("Seats")).map((row) => [row[3], row[7]])).toEqual([
    ...[
      ["'=chat", "13"],
      ["chat", "13"],
      ["search", "13"],
    ],
  ]);
  expect(sumOf((row) => row[6]?.endsWith("Tier 2 (> 10)") === true)).toBe(13);
  const accounts = temporaryFile("owner,account\n*,6000\nfinance,6900\n(payable),2000\n", "accounts.csv");
  const ledger = await run("charge-back", "A-1", "--ledger", accounts);
  const [head, ...entries]: string[][] = parse(ledger.stdout);
  expect(head).toEqual(["date", "account", "debit", "credit", "cost_center", "memo", "id"]);
  const total = (column: number) =>
    entries.reduce((sum, row) => sum + Math.round(Number(row[column]) * 100), 0);
  expect([total(2), total(3)]).toEqual([4014, 4014]);
  expect(entries.find((row) => row[1] === "6900")?.slice(0, 4)).toEqual(["2026-04-01", "6900", "2.01", ""]);
  expect(entries.at(-1)?.slice(1)).toEqual(["2000", "", "40.14", "", "LangChain, Inc. A-1", "A-1-5"]);
  const lacking = temporaryFile("owner,account\nfinance,6900\n", "accounts.csv");
  const refused = await run("charge-back", "A-1", "--ledger", lacking);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining("there is no line for (payable)"),
  ]);
});

test("an invoice is settled once, with a reason for what is not explained, and only corrected afterwards", async () => {
  const { client, run, explained, store } = await setupInvoices();
  await client.query(CLOSE_MARCH);
  const figures = async () =>
    (
      await client.query(
        "SELECT to_jsonb(b) AS bill FROM reporting.usage_bill_monthly b ORDER BY month_start, line_number",
      )
    ).rows;
  const before = await figures();
  const lines = AGREED.map((line, at) => (at === 1 ? { ...line, amount: "12.44" } : line));
  await insertInvoice(client, { number: "A-1", issuedOn: "2026-04-01", lines });
  await insertInvoice(client, { number: "A-2", issuedOn: "2026-05-01", status: "open", lines: [] });
  const settle = async (...words: string[]) => {
    const { code, stdout, stderr } = await run("settle", ...words);
    return [code, (stdout || stderr).trim().split("\n")[0]];
  };
  expect(await explained("A-1")).toMatchObject({ code: 4, remainder: "12.34", settlement: null });
  const alerts = async () => {
    const found = await openIncidents(store.db, {
      staleAfterMs: Number.MAX_SAFE_INTEGER,
      firstSource: "default",
    });
    return found.get("default")?.flatMap(({ kind }) => (kind.startsWith("invoice") ? [kind] : []));
  };
  // Both were issued months ago.
  const { rows: days } = await client.query(
    "SELECT extract(day FROM now() AT TIME ZONE 'UTC') > 10 AS is_late",
  );
  const late = days[0].is_late === "t" ? ["invoice_missing"] : [];
  expect(await alerts()).toEqual(["invoice_open", ...late]);
  expect((await run("explain", "A-1")).stdout).toMatch(
    /NOT EXPLAINED: the amount is not quantity times price +traces, \S+, line 3 .* 12.34/,
  );
  expect(await settle("A-1")).toEqual([
    2,
    expect.stringContaining("12.34 USD of invoice A-1 is not explained."),
  ]);
  expect(await settle("A-2")).toEqual([
    2,
    expect.stringContaining("Invoice A-2 is open. Only an issued invoice can be settled."),
  ]);
  const invoiced = async () =>
    (
      await client.query(
        `SELECT to_char("x_BillingMonth", 'MM') AS month, "InvoiceId" AS id, count(*) AS rows
         FROM reporting_detail.focus_1_4_cost_and_usage GROUP BY 1, 2 ORDER BY 1`,
      )
    ).rows.map(({ month, id, rows: count }) => `${month} ${id} ${count}`);
  expect(await invoiced()).toEqual(["03 null 4", "04 null 1"]);
  expect(await settle("A-1", "--reason", "credited in May")).toEqual([
    0,
    expect.stringContaining(": credited in May."),
  ]);
  expect(await invoiced()).toEqual(["03 A-1 4", "04 null 1"]);
  expect(await explained("A-1")).toMatchObject({
    code: 0,
    settlement: { reason: "credited in May", corrected: 0 },
  });
  await client.query(
    "UPDATE usage.invoice SET issued_on = (now() AT TIME ZONE 'UTC')::date WHERE number = 'A-2'",
  );
  expect(await alerts()).toEqual([]);
  // The same again changes nothing; another reason corrects it, and the first one stays.
  expect((await settle("A-1", "--reason", "credited in May"))[0]).toBe(0);
  expect((await settle("A-1", "--reason", "credited in June"))[0]).toBe(0);
  expect(await explained("A-1")).toMatchObject({ settlement: { reason: "credited in June", corrected: 1 } });
  const { rows } = await client.query("SELECT reason FROM usage.invoice_settlement ORDER BY settlement_id");
  expect(rows.map(({ reason }) => reason)).toEqual(["credited in May", "credited in June"]);
  expect(await figures()).toEqual(before);
});
