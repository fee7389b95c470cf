import { truncateSync } from "node:fs";
import { expect, test } from "vitest";
import type { Store } from "../../src/core/store/db/database.ts";
import { importInvoices, previewInvoices } from "../../src/features/invoice/import-invoice.ts";
import { readInvoices } from "../../src/features/invoice/invoices.store.ts";
import { usageEtl } from "../support/cli.ts";
import { PICTURE_LINES, PICTURE_TOTAL, pictureCsv, shortLines } from "../support/invoices.ts";
import { addSource, connect, setupSource, WORKSPACES } from "../support/reporting.ts";
import { temporaryFile } from "../support/temporary.ts";

const BY = { name: "ada", role: "operator", via: "command" } as const;

async function importText(
  store: Store,
  text: string,
  {
    replace = false,
    acceptDifference = undefined as string | undefined,
    source = "default",
    acceptAccount = false,
  } = {},
) {
  const file = { name: "invoice.csv", bytes: Buffer.from(text) };
  const preview = await previewInvoices(store.db, file, { source, fields: {}, acceptAccount });
  return importInvoices(store, preview, { replace, acceptDifference, by: BY });
}

test("an import keeps every field, line and byte, and importing it again changes nothing", async () => {
  const { store, url } = await setupSource();
  const csv = pictureCsv();
  expect(await importText(store, csv)).toHaveLength(1);
  const [stored, ...others] = await readInvoices(store.db);
  expect(others).toEqual([]);
  expect(shortLines(stored ?? { lines: [] })).toEqual(PICTURE_LINES);
  expect(stored).toMatchObject({
    total: PICTURE_TOTAL,
    source: "default",
    importedBy: "ada",
    fileForm: "csv",
    replacedAt: null,
  });
  const client = await connect(url);
  const { rows } = await client.query(
    "SELECT convert_from(file, 'UTF8') AS file, encode(sha256(file), 'hex') AS digest FROM usage.invoice",
  );
  expect(rows).toEqual([{ file: csv, digest: stored?.fileDigest }]);
  // The same figures from a file with other bytes.
  expect(await importText(store, csv)).toEqual([]);
  expect(await importText(store, csv.replaceAll("\n", "\r\n"))).toEqual([]);
  expect(await readInvoices(store.db, { withReplaced: true })).toEqual([stored]);
});

test("other figures under the same number need --replace, and the old version stays as history", async () => {
  const { store, url } = await setupSource();
  await importText(store, pictureCsv());
  const voided = pictureCsv()
    .replace(",kind,", ",status,kind,")
    .replaceAll(/^(INV-1,.*?Acme|,,,,,),/gm, "$1,void,")
    .replaceAll(/^,,,,,void,/gm, ",,,,,,,");
  await expect(importText(store, voided)).rejects.toMatchObject({ code: "invoice_stored" });
  expect(await readInvoices(store.db, { withReplaced: true })).toHaveLength(1);
  await importText(store, voided, { replace: true });
  const versions = await readInvoices(store.db, { number: "INV-1", withReplaced: true });
  expect(versions.map(({ status, replacedAt }) => [status, replacedAt === null])).toEqual([
    ["voided", true],
    ["issued", false],
  ]);
  expect((await readInvoices(store.db)).map(({ status }) => status)).toEqual(["voided"]);
  const client = await connect(url);
  const { rows } = await client.query(
    "SELECT detail FROM usage.operator_action WHERE action = 'invoice.import' ORDER BY 1",
  );
  expect(rows.map(({ detail }) => detail)).toEqual([
    "invoice INV-1 of LangChain, Inc., 242.28 USD, invoice.csv",
    "invoice INV-1 of LangChain, Inc., 242.28 USD, invoice.csv, replaced",
  ]);
});

test("sums that do not add up are stored only with a reason, and a file with two invoices is stored whole or not at all", async () => {
  const { store } = await setupSource();
  const wrong = pictureCsv().replace("total,,,,,242.28", "total,,,,,242.30");
  const two = `${wrong}INV-2,"LangChain, Inc.",,,USD,,,Seats,,2,39,78,,,\n`;
  await expect(importText(store, two)).rejects.toMatchObject({
    code: "invoice_differs",
    message:
      "invoice.csv does not add up:\n  line 10, total: 242.30 is written, and its parts add up to 242.28 (difference 0.02)",
  });
  expect(await readInvoices(store.db)).toEqual([]);
  await importText(store, two, { acceptDifference: "rounded up by the issuer" });
  expect(
    (await readInvoices(store.db)).map(({ number, acceptedDifference }) => [number, acceptedDifference]),
  ).toEqual([
    ["INV-1", "rounded up by the issuer"],
    ["INV-2", null],
  ]);
});

test("an invoice of another organization is refused", async () => {
  const { store, url } = await setupSource();
  const other = "00000000-0000-4000-8000-0000000000aa";
  await addSource(store, { slug: "other", workspaceIds: ["00000000-0000-4000-8000-000000000077"] });
  const client = await connect(url);
  await client.query(
    `UPDATE usage.source SET organization_id = CASE slug WHEN 'other' THEN '${other}' ELSE '00000000-0000-4000-8000-0000000000bb' END,
       organization_name = CASE slug WHEN 'other' THEN 'Other Ltd' ELSE 'Own Ltd' END`,
  );
  const of = (account: string) => pictureCsv().replace(",Acme,", `,${account},`);
  for (const account of [other, "other ltd", "00000000-0000-4000-8000-0000000000cc"]) {
    await expect(importText(store, of(account))).rejects.toMatchObject({ code: "invoice_account" });
    await expect(importText(store, of(account), { acceptAccount: true })).rejects.toMatchObject({
      code: "invoice_account",
    });
  }
  const moved = pictureCsv().replaceAll(WORKSPACES[0], "00000000-0000-4000-8000-000000000077");
  await expect(importText(store, moved)).rejects.toThrow(
    /line 2 charges workspace .* of source other, not default/,
  );
  await expect(importText(store, pictureCsv(), { source: "nowhere" })).rejects.toMatchObject({
    code: "source_unknown",
  });
  expect(await readInvoices(store.db)).toEqual([]);
  // A name that no earlier invoice has.
  await importText(store, of("Own Limited"));
  const next = of("Someone else").replace("INV-1", "INV-2");
  await expect(importText(store, next)).rejects.toThrow(
    "earlier invoices of source default have Own Limited",
  );
  await importText(store, next, { acceptAccount: true });
  await importText(store, of("OWN LTD").replace("INV-1", "INV-3"));
});

test("the command shows what it reads beside its rows, and stores it only after a yes", async () => {
  const { store, url } = await setupSource();
  const env = { DATABASE_URL: url };
  const file = temporaryFile(pictureCsv(), "invoice.csv");
  const asked = await usageEtl(["invoice", "import", file], env);
  expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining("[invoice_unconfirmed]")]);
  expect(asked.stdout).toContain(
    "Invoice INV-1 of LangChain, Inc.: 242.28 USD, 7 lines, read as csv. It is new.",
  );
  expect(asked.stdout).toContain("Tier 2 (> 10000) | yes | 108963 | 0.0005 | 54.48");
  expect(await readInvoices(store.db)).toEqual([]);
  const stored = await usageEtl(["invoice", "import", file, "--yes", "--json"], env);
  expect([stored.code, JSON.parse(stored.stdout)]).toMatchObject([
    0,
    { stored: true, invoices: [{ state: "new", invoice: { total: "242.28" } }] },
  ]);
  const again = await usageEtl(["invoice", "import", file], env);
  expect([again.code, again.stderr]).toEqual([0, "Nothing was changed.\n"]);
  expect((await usageEtl(["invoice", "list"], env)).stdout).toMatch(
    /default +INV-1 +LangChain, Inc\. +issued +2026-11-01 +242\.28 +USD +7/,
  );
  const shown = await usageEtl(["invoice", "show", "INV-1"], env);
  expect(shown.stdout).toContain("SHA-256");
  expect(shown.stdout).toContain("  Tier 2 (> 10000)");
  const unknown = await usageEtl(["invoice", "show", "INV1"], env);
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("Did you mean INV-1?")]);
  const large = temporaryFile("", "large.csv");
  truncateSync(large, 200 * 1024 * 1024);
  const tooLarge = await usageEtl(["invoice", "import", large], env);
  expect([tooLarge.code, tooLarge.stderr]).toEqual([2, expect.stringContaining("it has more than 20 MB")]);
  const other = await usageEtl(
    ["invoice", "import", temporaryFile("number,text,amount\n1,a,1\n"), "--field", "curency=USD"],
    env,
  );
  expect(other.stderr).toContain("Did you mean currency?");
});
