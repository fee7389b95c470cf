import { expect, test } from "vitest";
import { explainInvoice, invoiceNumbered } from "../../../src/features/invoice/explain-invoice.ts";
import { createMonths, createPrices } from "../../support/charges.ts";
import { overHttp, response } from "../../support/mcp.ts";
import { setupPages } from "../../support/pages.ts";
import { connectPlain, setupSource, WORKSPACES } from "../../support/reporting.ts";
import { insertInvoice } from "../../support/stored-invoices.ts";

const [WORKSPACE] = WORKSPACES;
const HOSTILE = "<b>Elsewhere</b>";

test("the page and the tool of AI clients name the same causes of a difference, and a name is text", async () => {
  const bench = await setupSource();
  await createMonths(bench, { [WORKSPACE]: { 0: 30 } });
  await createPrices(bench.store, [{ unitPrice: "0.004" }]);
  const client = await connectPlain(bench.url);
  await client.query(
    "INSERT INTO usage.unloaded_workspace SELECT source_id, '2026-03-01', 'elsewhere', $1, 106023, now() FROM usage.source",
    [HOSTILE],
  );
  const line = (workspace: string, quantity: string, amount: string) => ({
    ...{ text: "LangSmith Traces", workspace, quantity, unitPrice: "0.004", amount },
  });
  await insertInvoice(client, {
    number: "A 1",
    issuedOn: "2026-04-01",
    lines: [line(WORKSPACE, "30", "12.46"), line(HOSTILE, "106023", "424.09")],
  });
  const standin = { url: "http://billing.platform.test", apiKey: "key" };
  const pages = await setupPages({ databaseUrl: bench.url, store: bench.store, standin });
  expect((await pages.get("/invoices/explain?number=A+1")).text).toContain("was never compared");
  const invoice = await invoiceNumbered(bench.store.db, { number: "A 1" });
  await explainInvoice(bench.store, invoice);
  const page = await pages.read("/invoices/explain?number=A+1");
  expect(page.table("Causes").map((row) => [row.Why, row.What, row["Higher by, USD"]])).toEqual([
    ["a workspace that no sync loads", `traces, ${HOSTILE}`, "424.09"],
    ["NOT EXPLAINED: the amount is not quantity times price", `traces, ${WORKSPACE}, line 1`, "12.34"],
    ["Difference", undefined, "436.43"],
  ]);
  expect(page.table("Lines").map(({ State }) => State)).toEqual(["price differs", "only on the invoice"]);
  const { text } = await pages.get("/invoices/explain?number=A+1");
  expect(text).toContain("The invoice is 436.43 USD higher.");
  expect(text).toContain("usage-etl invoice settle &#39;A 1&#39; --reason TEXT");
  expect((await pages.get("/invoices/explain?number=A+2")).text).toContain(
    "No invoice A 2 is stored. Did you mean A 1?",
  );

  const statement = await pages.read("/invoices/statement?number=A+1");
  expect(statement.table("Statement").map((row) => [row.Owner, row["Amount, USD"]])).toEqual([
    ["(unallocated)", "436.55"],
    ["Total", "436.55"],
  ]);
  const workbook = await pages.get("/invoices/statement.xlsx?number=A+1");
  expect([workbook.status, workbook.headers["content-disposition"]]).toEqual([
    200,
    'attachment; filename="A_1-owners.xlsx"',
  ]);

  const mcp = await overHttp(pages.url);
  const found = await response(mcp, "explain_invoice", { number: "A 1" });
  expect(found).toMatchObject({
    total: "436.55",
    bill: "0.12",
    difference: "436.43",
    remainder: "12.34",
    settlement: null,
  });
  expect(found.causes.map(({ amount }: { amount: string }) => amount)).toEqual(["424.09", "12.34"]);

  // A remainder needs a reason and a confirmation.
  const settle = (fields: Record<string, string>) =>
    pages.post("/invoices/settle", { number: "A 1", ...fields }, { from: "/invoices/explain?number=A+1" });
  expect((await settle({ reason: "credited" })).status).toBe(400);
  const refused = await settle({ reason: " ", confirmed: "yes" });
  expect([refused.status, refused.text]).toEqual([
    409,
    expect.stringContaining("12.34 USD of invoice A 1 is not explained."),
  ]);
  expect((await settle({ reason: "credited", confirmed: "yes" })).status).toBe(303);
  const after = await pages.get("/invoices/explain?number=A+1");
  expect(after.text).toMatch(/Settled on \S+ by .*: credited\./);
});
