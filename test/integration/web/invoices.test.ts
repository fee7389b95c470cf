import { expect, test } from "vitest";
import { readInvoices } from "../../../src/features/invoice/invoices.store.ts";
import { PICTURE_LINES, pictureCsv, shortLines } from "../../support/invoices.ts";
import { setupPages, setupViewer } from "../../support/pages.ts";
import { setupSource } from "../../support/reporting.ts";

const FORM = "/invoices/new";
const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };

async function setupForm() {
  const { store, url: databaseUrl } = await setupSource();
  const pages = await setupPages({ databaseUrl, standin, store });
  const shown = await pages.get(FORM);
  const cookie = String(shown.headers["set-cookie"]).split(";")[0] ?? "";
  const unescaped = (value: string) =>
    value.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
  const fieldsIn = (text: string) =>
    Object.fromEntries(
      [...text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(
        ([, field = "", value = ""]) => [field, unescaped(value)],
      ),
    );
  const send = async (fields: Record<string, string | File>) => {
    const body = new FormData();
    for (const [field, value] of Object.entries(fields)) body.set(field, value);
    const response = await fetch(`${pages.url}${FORM}`, {
      method: "POST",
      body,
      headers: { cookie },
      redirect: "manual",
    });
    return {
      status: response.status,
      location: response.headers.get("location"),
      text: await response.text(),
    };
  };
  return { store, databaseUrl, pages, send, fieldsIn, csrf: fieldsIn(shown.text)._csrf ?? "" };
}

test("an uploaded file is shown beside its rows, and stored once it is confirmed", async () => {
  const { store, pages, send, fieldsIn, csrf } = await setupForm();
  const upload = new File([pictureCsv()], "october <b>.csv");
  const preview = await send({ _csrf: csrf, source: "default", upload });
  expect([preview.status, await readInvoices(store.db)]).toEqual([200, []]);
  expect(preview.text).toContain("Tier 2 (&gt; 10000) | yes | 108963 | 0.0005 | 54.48");
  const stored = await send(fieldsIn(preview.text));
  expect([stored.status, stored.location]).toEqual([303, "/invoices"]);
  const [invoice] = await readInvoices(store.db);
  expect([invoice?.fileName, shortLines(invoice ?? { lines: [] })]).toEqual([
    "october <b>.csv",
    PICTURE_LINES,
  ]);
  expect((await pages.read("/invoices")).table("Invoices")).toHaveLength(1);
  expect((await send({ _csrf: csrf, upload })).text).toContain(
    "It is stored already, with the same figures.",
  );
  const { rows } = await store.transaction(({ client }) =>
    client.query("SELECT action, outcome, via FROM usage.operator_action"),
  );
  expect(rows).toEqual([{ action: "invoice.import", outcome: "done", via: "page" }]);
});

test("a pasted table needs what it does not say, and text of the file is no markup", async () => {
  const { send, csrf } = await setupForm();
  const pasted = "Description | Amount\n<script>x</script> | $5.00\nTotal | $5.00".replace(
    /^.*$/gm,
    "| $& |",
  );
  const refused = await send({ _csrf: csrf, pasted });
  expect([refused.status, refused.text]).toEqual([
    400,
    expect.stringContaining("$ stands for several currencies"),
  ]);
  const shown = await send({ _csrf: csrf, pasted, issuer: "L", number: "7", currency: "USD" });
  expect([shown.status, shown.text]).toEqual([
    200,
    expect.stringContaining("&lt;script&gt;x&lt;/script&gt;"),
  ]);
  expect(shown.text).not.toContain("<script>x");
});

test("an invoice is typed line by line", async () => {
  const { store, send, fieldsIn, csrf } = await setupForm();
  const about = { _csrf: csrf, issuer: "L", number: "7", currency: "USD", issued_on: "2026-11-01" };
  let pasted = "";
  for (const [text, amount] of [
    ["Plus seats, 5", "195"],
    ["Credit", "-50.00"],
  ] as const) {
    const shown = await send({ ...about, pasted, text, amount, add: "yes" });
    const [, kept = ""] = /<textarea name="pasted"[^>]*>([^<]*)</.exec(shown.text) ?? [];
    pasted = kept.replaceAll("&quot;", '"');
  }
  const stored = await send(fieldsIn((await send({ ...about, pasted })).text));
  expect([stored.status, (await readInvoices(store.db)).map(shortLines)]).toEqual([
    303,
    [
      [
        "line | seat | Plus seats, 5 | - | - | 195 | - | - | -",
        "line | credit | Credit | - | - | -50 | - | - | -",
      ],
    ],
  ]);
});

test("sums that do not add up need a reason, and a stranger's form, a viewer and a large file change nothing", async () => {
  const { store, databaseUrl, send, fieldsIn, csrf } = await setupForm();
  const upload = new File([pictureCsv().replace("242.28", "242.30")], "october.csv");
  const preview = await send({ _csrf: csrf, upload });
  const refused = await send(fieldsIn(preview.text));
  expect([refused.status, refused.text]).toEqual([409, expect.stringContaining("does not add up")]);
  expect((await send({ upload })).status).toBe(403);
  expect(
    (await send({ _csrf: csrf, upload: new File([new Uint8Array(3 * 1024 * 1024)], "large.pdf") })).status,
  ).toBe(413);
  const viewer = await setupViewer({ databaseUrl, standin, store });
  expect((await viewer.get(FORM)).status).toBe(403);
  expect((await viewer.post(FORM, { pasted: "x" })).status).toBe(403);
  expect(await readInvoices(store.db)).toEqual([]);
  expect((await send({ ...fieldsIn(preview.text), accept_difference: "rounded" })).status).toBe(303);
  expect((await readInvoices(store.db)).map((one) => one.acceptedDifference)).toEqual(["rounded"]);
});
