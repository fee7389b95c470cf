import { strFromU8, strToU8, unzipSync, zipSync } from "fflate";
import { beforeAll, describe, expect, test } from "vitest";
import writeWorkbook from "write-excel-file/node";
import { amountText } from "../../../../src/core/domain/usage/amount.ts";
import type { Reading } from "../../../../src/features/invoice/finish-invoice.ts";
import { type HowToRead, readInvoices } from "../../../../src/features/invoice/read-file.ts";
import { type PdfText, pdfOf } from "../../../../src/features/standin/engine/pdf.ts";
import { type Standin, startStandin } from "../../../../src/features/standin/server.ts";
import { PICTURE_LINES, PICTURE_TABLE, pictureCsv, shortLines } from "../../../support/invoices.ts";

async function read(bytes: Uint8Array | string, how: Partial<HowToRead> = {}) {
  const file = { name: "invoice", bytes: typeof bytes === "string" ? Buffer.from(bytes) : bytes };
  const { form, readings } = await readInvoices(file, { fields: {}, workspaces: [], ...how });
  expect(readings).toHaveLength(1);
  return { form, ...(readings[0] as Reading) };
}

async function problemsOf(...given: Parameters<typeof read>): Promise<string[]> {
  const error = (await read(...given).then(
    ({ invoice }) => new Error(`it was read: ${shortLines(invoice).join("\n")}`),
    (failure: unknown) => failure,
  )) as Error;
  expect(error).toMatchObject({ code: "file_invalid" });
  return error.message.split("\n  ").slice(1);
}

/** The picture as somebody copies it from a page: cells between tabs. */
const COPIED = PICTURE_TABLE.map((cells) => cells.join("\t"));
const [HEAD, TABLE] = [COPIED.slice(0, 5), COPIED.slice(5)];
const copied = (table = TABLE, head = HEAD) => [...head, ...table].join("\n");

describe("a copied table", () => {
  test("is read by its heads: sums, tiers, workspace, period, tax", async () => {
    const { form, invoice, fields, differences } = await read(copied());
    expect([form, shortLines(invoice), differences]).toEqual(["text", PICTURE_LINES, []]);
    expect(invoice).toMatchObject({
      number: "INV-1",
      issuer: "LangChain, Inc.",
      account: "Acme",
      currency: "USD",
      issuedOn: "2026-11-01",
      dueOn: "2026-12-01",
    });
    expect([amountText(invoice.subtotal ?? 0n), amountText(invoice.total)]).toEqual(["203.6", "242.28"]);
    expect(fields.map(({ field, place, row }) => `${field} ${place} ${row}`)).toContain(
      "issued_on line 2 Date of issue: November 1, 2026",
    );
    expect(invoice.lines[2]).toMatchObject({
      place: "line 11",
      sourceText: "Tier 2 (> 10000) 108,963 $0.0005 $54.48",
    });
  });

  test("with blanks or | between its cells", async () => {
    const blanks = copied()
      .replaceAll(
        /^(.*?)\t(.*?)\t(.*?)\t(.*)$/gm,
        (_, text, quantity, price, amount) =>
          `${text.padEnd(52)}${quantity.padStart(10)}  ${price.padStart(10)}  ${amount.padStart(12)}`,
      )
      .replaceAll("\t", "   ");
    const markdown = copied().replaceAll(
      /^(.*\t.*\t.*\t.*)$/gm,
      (_, row) => `| ${row.replaceAll("\t", " | ")} |`,
    );
    const typed = copied().replaceAll("\t", " | ");
    for (const given of [blanks, markdown, typed])
      expect(shortLines((await read(given)).invoice)).toEqual(PICTURE_LINES);
  });

  test("a period below its line, a workspace by its name with its sum, a line after the subtotal", async () => {
    const { invoice, differences } = await read(
      copied([
        "Description\tQty\tUnit price\tAmount",
        "Production\t\t\t$54.48",
        "LangSmith Traces\t\t\t$54.48",
        "Tier 1 (0 - 10000)\t10,000\t$0\t$0.00",
        "Tier 2 (> 10000)\t108,963\t$0.0005\t$54.48",
        "Oct 1 – Nov 1, 2026",
        "Plus seats\t2\t$39.00\t$78.00",
        "Nov 1 – Dec 1, 2026",
        "Subtotal\t\t\t$132.48",
        "Discount\t\t\t-$32.48",
        "Total excluding tax\t\t\t$100.00",
        "VAT (19% on $100.00)\t\t\t$19.00",
        "Total\t\t\t$119.00",
        "Applied balance\t\t\t-$9.00",
        "Amount due\t\t\t$110.00 USD",
      ]),
      { workspaces: ["production"] },
    );
    expect(shortLines(invoice)).toEqual([
      "sum | usage | LangSmith Traces | - | - | 54.48 | 2026-10-01 | 2026-11-01 | Production",
      "part of 0 | usage | Tier 1 (0 - 10000) | 10000 | 0 | 0 | 2026-10-01 | 2026-11-01 | Production",
      "part of 0 | usage | Tier 2 (> 10000) | 108963 | 0.0005 | 54.48 | 2026-10-01 | 2026-11-01 | Production",
      "line | seat | Plus seats | 2 | 39 | 78 | 2026-11-01 | 2026-12-01 | -",
      "line | discount | Discount | - | - | -32.48 | - | - | -",
      "line | tax | VAT (19% on $100.00) | - | - | 19 | - | - | -",
    ]);
    // The sum of the workspace has the seats too, in this layout.
    expect(differences).toEqual([
      'line 7, "Production $54.48": 54.48 is written, and its parts add up to 132.48 (difference -78.00)',
    ]);
    expect([amountText(invoice.subtotal ?? 0n), amountText(invoice.total)]).toEqual(["100", "119"]);
  });

  test("a credit note is stored with a minus, and names the invoice that it corrects", async () => {
    const { invoice, notes } = await read(
      copied(
        ["Description\tAmount", "Credit for traces\t$5.00", "Total\t$5.00 USD"],
        ["Credit note", "Credit note number\tCN-1", "Original invoice\tINV-1", "Issuer: L"],
      ),
    );
    expect([invoice.number, invoice.corrects, amountText(invoice.total), shortLines(invoice)]).toEqual([
      "CN-1",
      "INV-1",
      "-5",
      ["line | credit | Credit for traces | - | - | -5 | - | - | -"],
    ]);
    expect(notes).toEqual(["It is a credit note, so its amounts are stored with a minus."]);
  });

  test.each<[string, (rows: string[]) => string[], RegExp]>([
    ["without heads", (rows) => rows.slice(1), /^no row has the heads of a table/],
    ["without a total", (rows) => rows.slice(0, -2), /^no row has the total, so lines may be missing$/],
    [
      "a row without an amount",
      (rows) => rows.toSpliced(9, 0, "Something else"),
      /^line 15: "Something else" is no line with an amount/,
    ],
    [
      "two cells in one column",
      (rows) => rows.with(3, "Traces\t\t\t$1\t$2"),
      /^line 9: "\$1" and "\$2" are in one column$/,
    ],
    [
      "an amount after the total",
      (rows) => [...rows, "Late fee\t$1.00"],
      /^line 19: "Late fee \$1\.00" is an amount after the total$/,
    ],
    [
      "a second table",
      (rows) => [...rows, rows[0] ?? ""],
      /^line 19: a second table begins after the total$/,
    ],
    ["a receipt", (rows) => [...rows, "Receipt number\t1"], /^line 19: it is a receipt/],
    [
      "another currency",
      (rows) => [...rows, "Charged\t€200.00"],
      /the currency is EUR, and USD|is an amount after/,
    ],
    ["an unknown head", (rows) => rows.with(0, "Description\tQty\tMystery\tAmount"), /^no row has the heads/],
  ])("is refused: %s", async (_, change, why) => {
    const problems = await problemsOf(copied(change([...TABLE])));
    expect(problems.join("\n")).toMatch(new RegExp(why.source, "m"));
  });

  test("sums that the rows do not add up to are named", async () => {
    const wrong = copied().replace("$203.60", "$203.61");
    expect((await read(wrong)).differences).toEqual([
      'line 15, "Subtotal $203.61": 203.61 is written, and its parts add up to 203.60 (difference 0.01)',
      "line 15, subtotal: 203.61 is written, and its parts add up to 203.60 (difference 0.01)",
    ]);
  });
});

describe("a workbook", () => {
  const csvRows = () =>
    pictureCsv()
      .trim()
      .split("\n")
      .map((line) =>
        [...line.matchAll(/("(?:[^"]*)"|[^,]*)(?:,|$)/g)]
          .slice(0, 15)
          .map(([, cell = ""]) => cell.replaceAll('"', "")),
      );
  const workbook = async (rows = csvRows()) =>
    writeWorkbook([
      {
        sheet: "Invoice",
        data: rows.map((row) =>
          row.map((cell) =>
            /^-?\d+(\.\d+)?$/.test(cell)
              ? { type: Number, value: Number(cell) }
              : { type: String, value: cell },
          ),
        ),
      },
    ]).toBuffer();
  const changed = async (change: (xml: string) => string) => {
    const parts = unzipSync(await workbook());
    const sheet = parts["xl/worksheets/sheet1.xml"] as Uint8Array;
    return zipSync({ ...parts, "xl/worksheets/sheet1.xml": strToU8(change(strFromU8(sheet))) });
  };

  test("with our columns is read to the last digit", async () => {
    const { form, invoice, differences } = await read(await workbook());
    expect([form, shortLines(invoice), differences]).toEqual(["xlsx", PICTURE_LINES, []]);
    expect(invoice.lines[2]?.place).toBe("row 4");
    // Excel writes floats with 17 digits.
    const floats = await changed((xml) =>
      xml
        .replace("<v>0.0005</v>", "<v>5.0000000000000001E-4</v>")
        .replaceAll("<v>54.48</v>", "<v>54.479999999999997</v>"),
    );
    expect(shortLines((await read(floats)).invoice)).toEqual(PICTURE_LINES);
  });

  test("is refused with a formula, an error, numbers that it cut, or several sheets", async () => {
    expect(
      await problemsOf(await changed((xml) => xml.replace("<v>54.48</v>", "<f>SUM(L3:L4)</f><v>54.48</v>"))),
    ).toEqual(["cell L2 has a formula or an error, and its value may be old. Paste the values"]);
    expect(
      (await problemsOf(await changed((xml) => xml.replace(/<c r="L2"([^>]*)>/, '<c r="L2" t="e">'))))[0],
    ).toMatch(/^cell L2 has/);
    expect(
      await problemsOf(await changed((xml) => xml.replace("<v>54.48</v>", "<v>1.2345678901234568E+29</v>"))),
    ).toEqual(["1.2345678901234568E+29 has more digits than a workbook keeps. Write it as text"]);
    const sheet = (name: string) => ({ sheet: name, data: [[{ type: String, value: "x" }]] });
    expect(await problemsOf(await writeWorkbook([sheet("a"), sheet("b")]).toBuffer())).toEqual([
      "it has 2 sheets with cells. Keep the one of the invoice",
    ]);
    expect((await problemsOf(Buffer.from("PK\x03\x04 no workbook")))[0]).toMatch(
      /^it is not a whole workbook/,
    );
  });
});

describe("a PDF", () => {
  const page = (rows: readonly (readonly [x: number, text: string][])[]): PdfText[] =>
    rows.flatMap((cells, n) => cells.map(([x, text]) => ({ x, y: 780 - 20 * n, text })));
  const small = (extra: readonly (readonly [number, string][])[] = []) =>
    pdfOf([
      page([
        [
          [40, "Invoice number"],
          [150, "7"],
        ],
        [
          [40, "Issuer"],
          [150, "L"],
        ],
        [
          [40, "Description"],
          [400, "Amount"],
        ],
        [
          [40, "Traces (a)"],
          [400, "$5.00"],
        ],
        ...extra,
        [
          [40, "Total"],
          [400, "$5.00 USD"],
        ],
      ]),
    ]);

  let standin: Standin;
  beforeAll(async () => {
    standin = await startStandin({
      seed: 3,
      dataStart: "2026-10-01",
      deploymentStart: "2026-10-01",
      contract: "day-granular",
      sandboxes: "on",
      now: () => Date.parse("2026-11-05T00:00Z"),
    });
    return () => standin.close();
  });
  const issued = async (month = "2026-10") =>
    (await fetch(`${standin.url}/__standin/invoices/${month}`)).bytes();

  test("of the stand-in agrees with its ledger, tier by tier, and has what was planted", async () => {
    const [first] = standin.organisation.workspaces.map(({ id }) => id).sort();
    const before = await read(await issued());
    expect([before.form, before.differences]).toEqual(["pdf", []]);
    expect(before.invoice).toMatchObject({
      number: "STANDIN-2026-10-0001",
      account: standin.organisation.id,
      issuedOn: "2026-11-01",
      terms: "Net 30",
      currency: "USD",
    });
    const ledger = (id: string, tier: "longlived" | null) =>
      standin.organisation.streams
        .filter(({ project }) => project.workspace.id === id)
        .reduce(
          (sum, stream) =>
            sum +
            (standin.ledger.counts(stream, [Date.parse("2026-10-01"), Date.parse("2026-11-01")], tier)[0] ??
              0),
          0,
        );
    const counted = (reading: Reading, id: string | undefined, text: string) => {
      const { lines } = reading.invoice;
      const at = lines.findIndex((line) => line.isSum && line.workspace === id && line.text === text);
      return Number(
        amountText(
          lines
            .filter(({ partOf }) => partOf === at)
            .reduce((sum, { quantity }) => sum + (quantity ?? 0n), 0n),
        ),
      );
    };
    const upgrades = "LangSmith Traces (Extended Data Retention Upgrades)";
    for (const { id } of standin.organisation.workspaces) {
      expect([counted(before, id, "LangSmith Traces"), counted(before, id, upgrades)]).toEqual([
        ledger(id, null),
        ledger(id, "longlived"),
      ]);
    }
    Object.assign(standin.invoices.planted, {
      overcharge: { workspaceId: first, cents: 1234 },
      creditCents: 5_000,
      seatFrom: 14,
    });
    const after = await read(await issued());
    expect(after.differences).toEqual([]);
    const kinds = after.invoice.lines
      .filter(({ kind }) => kind !== "usage")
      .map(({ kind, text, periodStart, amount }) => [
        kind,
        text,
        periodStart,
        kind === "tax" ? "" : amountText(amount),
      ]);
    expect(kinds).toEqual([
      ["seat", "Plus seats", "2026-11-01", "195"],
      ["seat", "Plus seats (prorated)", "2026-10-14", "22.65"],
      ["credit", "Service credit", null, "-50"],
      ["tax", "Tax (19%)", null, ""],
    ]);
    const sumOf = (reading: Reading) =>
      reading.invoice.lines.find((line) => line.isSum && line.workspace === first)?.amount ?? 0n;
    expect(amountText(sumOf(after) - sumOf(before))).toBe("12.34");
    expect((await fetch(`${standin.url}/__standin/invoices/2026-13`)).status).toBe(404);
  });

  test("with the published picture is read tier by tier", async () => {
    const rows = PICTURE_TABLE.map((cells) =>
      cells.flatMap((text, n): [number, string][] => {
        const x = cells.length < 4 ? 40 + 110 * n : ([40, 320, 400, 480][n] ?? 0);
        return text === "" ? [] : [[x, text]];
      }),
    );
    const { invoice, differences } = await read(pdfOf([page(rows)]));
    expect([shortLines(invoice), differences]).toEqual([PICTURE_LINES, []]);
    expect(invoice.lines[2]?.place).toBe("page 1, row 11");
  });

  test("is refused: scanned, locked, cut, or with a row that is not known", async () => {
    expect(await problemsOf(pdfOf([page([[[40, "Invoice number"]]]), []]))).toEqual([
      "page 2: it has no text. A scan cannot be read: type it, or ask for a PDF with text",
    ]);
    const locked = small().replace(
      "/Root 1 0 R",
      "/Root 1 0 R /ID [<00><00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -1 /O <" +
        "00".repeat(32) +
        "> /U <" +
        "11".repeat(32) +
        "> >>",
    );
    expect(await problemsOf(locked)).toEqual(["it is locked with a password. Save it without one"]);
    expect((await problemsOf(small().slice(0, 200)))[0]).toMatch(/^it is not a whole PDF/);
    expect(await problemsOf(small([[[40, "Unknown row"]]]))).toEqual([
      'page 1, row 5: "Unknown row" is no line with an amount, and no heading that is known. If it names a workspace, write it as `Workspace: NAME`',
    ]);
    expect(shortLines((await read(small())).invoice)).toEqual([
      "line | adjustment | Traces (a) | - | - | 5 | - | - | -",
    ]);
  });
});
