import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { amountOf, amountText } from "../../../../src/core/domain/usage/amount.ts";
import type { Reading } from "../../../../src/features/invoice/finish-invoice.ts";
import { type HowToRead, mappingOf, readInvoices } from "../../../../src/features/invoice/read-file.ts";
import { seed, times } from "../../../support/drawn.ts";
import { PICTURE_LINES, PICTURE_TOTAL, pictureCsv, shortLines } from "../../../support/invoices.ts";

const HEAD = "number,issuer,currency,text,kind,quantity,unit_price,amount";

async function read(text: string | Uint8Array, how: Partial<HowToRead> = {}, name = "invoice.csv") {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  return readInvoices({ name, bytes }, { fields: {}, workspaces: [], ...how });
}

const one = async (...given: Parameters<typeof read>): Promise<Reading> => {
  const [reading, ...others] = (await read(...given)).readings;
  expect(others).toEqual([]);
  return reading as Reading;
};

/** What the message of a refusal says beneath its first line. */
async function problemsOf(...given: Parameters<typeof read>): Promise<string[]> {
  const error = (await read(...given).then(
    ({ readings }) => new Error(`it was read: ${JSON.stringify(readings.map(shownReading))}`),
    (failure: unknown) => failure,
  )) as Error;
  expect(error).toMatchObject({ code: "file_invalid" });
  return error.message.split("\n  ").slice(1);
}

const shownReading = ({ invoice }: Reading) => shortLines(invoice);

test("our columns are read: sums, tiers, tax, subtotal and total", async () => {
  const { invoice, differences, notes, fields } = await one(pictureCsv());
  expect(shortLines(invoice)).toEqual(PICTURE_LINES);
  expect(invoice).toMatchObject({
    number: "INV-1",
    issuer: "LangChain, Inc.",
    status: "issued",
    currency: "USD",
    account: "Acme",
  });
  expect([invoice.issuedOn, invoice.dueOn, invoice.total, invoice.subtotal]).toEqual([
    "2026-11-01",
    "2026-12-01",
    PICTURE_TOTAL,
    amountOf("203.60"),
  ]);
  expect([differences, notes]).toEqual([[], []]);
  expect(fields.map(({ field, place }) => `${field}: ${place}`)).toContain('number: line 2, column "number"');
});

test("the same figures with a byte order mark, in UTF-16, and as a spreadsheet of a country with decimal commas", async () => {
  const csv = pictureCsv();
  const commas = csv
    .replaceAll('"LangChain, Inc."', "LangChain")
    .replaceAll(",", ";")
    .replace(/(?<=;)(\d+)\.(\d+)(?=;)/g, "$1,$2")
    .replace("108963", "108.963");
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(csv, "utf16le")]);
  for (const given of [`\uFEFF${csv}`, utf16, commas])
    expect(shortLines((await one(given)).invoice)).toEqual(PICTURE_LINES);
});

test("an invoice in JSON keeps each digit, quoted or not, and parts are in their line", async () => {
  const json = `{"number": 7, "issuer": "L", "currency": "USD", "corrects": "6", "lines": [
    {"text": "LangSmith Traces", "amount": 54.48, "unit": "trace", "period_start": "2026-10-01", "period_end": "2026-11-01", "parts": [
      {"text": "Tier 1", "quantity": 123456789012345678, "unit_price": 5e-10, "amount": "54.48"}]},
    {"text": "Goodwill", "kind": "credit", "amount": -4.4800000001}, {"text": "Rounding", "amount": 0.0000000001}], "total": 50.00}`;
  const { invoice, differences } = await one(json);
  expect(shortLines(invoice)).toEqual([
    "sum | usage | LangSmith Traces | - | - | 54.48 | 2026-10-01 | 2026-11-01 | -",
    "part of 0 | usage | Tier 1 | 123456789012345678 | 0.0000000005 | 54.48 | 2026-10-01 | 2026-11-01 | -",
    "line | credit | Goodwill | - | - | -4.4800000001 | - | - | -",
    "line | adjustment | Rounding | - | - | 0.0000000001 | - | - | -",
  ]);
  expect([invoice.number, invoice.corrects, differences]).toEqual(["7", "6", []]);
  expect(await problemsOf('{"number": "1", "lines": [{"text": "a", "amount": true}], "totl": "1"}')).toEqual([
    "lines.0.amount must be a text",
    "total is missing",
    "it must not hold totl",
  ]);
});

test("FOCUS InvoiceDetail holds several invoices, and an invoice that corrects nothing names itself", async () => {
  const csv = `InvoiceId,InvoiceIssuerName,InvoiceIssueStatus,InvoiceIssueDate,PaymentTerms,BillingAccountId,BillingCurrency,ReferenceInvoiceId,ChargeCategory,InvoiceDetailId,InvoiceDetailDescription,BilledCost,BillingPeriodStart,BillingPeriodEnd,InvoiceDetailGrain
A,L,Issued,2026-11-01T09:12:00Z,Net 30,acct,USD,A,Usage,1,LangSmith Traces,54.4815,2026-10-01T00:00:00Z,2026-11-01T00:00:00Z,"{""SubAccountId"":""w1""}"
A,L,Issued,2026-11-01T09:12:00Z,Net 30,acct,USD,A,Tax,2,VAT,10,2026-10-01T00:00:00Z,2026-11-01T00:00:00Z,
B,L,Voided,2026-11-02T00:00:00Z,Net 30,acct,USD,A,Purchase,3,Plus seats,-39,2026-11-01T00:00:00Z,2026-12-01T00:00:00Z,NULL
`;
  const { form, readings } = await read(csv);
  expect(form).toBe("focus");
  expect(
    readings.map(({ invoice }) => [
      invoice.number,
      invoice.status,
      invoice.issuedOn,
      invoice.corrects,
      amountText(invoice.total),
    ]),
  ).toEqual([
    ["A", "issued", "2026-11-01", null, "64.4815"],
    ["B", "voided", "2026-11-02", "A", "-39"],
  ]);
  expect(readings.flatMap(({ invoice }) => shortLines(invoice))).toEqual([
    "line | usage | LangSmith Traces | - | - | 54.4815 | 2026-10-01 | 2026-11-01 | w1",
    "line | tax | VAT | - | - | 10 | 2026-10-01 | 2026-11-01 | -",
    "line | seat | Plus seats | - | - | -39 | 2026-11-01 | 2026-12-01 | -",
  ]);
});

test("a mapping names the columns of another file, and each of its columns is named or ignored", async () => {
  const csv = "Rechnung;Firma;Text;Netto EUR;Intern\n9;L;Spuren;1.234,50;x\n";
  const mapping = (more: string) =>
    mappingOf("m.yaml", `number: Rechnung\nissuer: Firma\ntext: Text\namount: Netto EUR\n${more}`);
  const { invoice } = await one(csv, { mapping: mapping("ignore: [Intern]"), fields: { currency: "EUR" } });
  expect([invoice.number, amountText(invoice.total), invoice.currency]).toEqual(["9", "1234.5", "EUR"]);
  expect((await problemsOf(csv, { mapping: mapping("") }))[0]).toMatch(
    /^line 1: there is no column "intern"/,
  );
  expect(() => mapping("amonut: Netto")).toThrow("amonut is not one of our columns");
});

describe("refused, with the place", () => {
  const row = (amount: string, more = "") =>
    `${HEAD}${more && `,${more.split("=")[0]}`}\n1,L,USD,Traces,,,,${amount}${more && `,${more.split("=")[1]}`}\n`;

  test.each([
    ["=1+1", '"=1+1" is not a number'],
    ["1234567890123456789012345678901", "has more than 18 digits before the point"],
    ["0.12345678901", "has more than 10 digits after the point"],
    ["", '"" is no amount'],
    ["1 2", '"1 2" is not a number'],
    ["--1", '"--1" is not a number'],
    ["(-1)", '"(-1)" is not a number'],
    ["NaN", '"NaN" is not a number'],
  ])("the amount %s", async (amount, why) => {
    expect((await problemsOf(row(amount))).join("; ")).toContain(why);
    expect((await problemsOf(row(amount)))[0]).toMatch(/^line 2: /);
  });

  test("a number that is more than a thousand or less, unless the file or an option shows it", async () => {
    const semicolons = (amounts: readonly string[]) =>
      `number;issuer;currency;text;amount\n${amounts.map((amount) => `1;L;USD;t;${amount}`).join("\n")}\n`;
    expect(await problemsOf(semicolons(["1.234"]))).toEqual([
      'line 2: "1.234" may be more than a thousand or less. Say which with --decimal-sign . or ,',
    ]);
    const amounts = async (...given: Parameters<typeof read>) =>
      (await one(...given)).invoice.lines.map(({ amount }) => amountText(amount));
    expect(await amounts(semicolons(["1.234"]), { decimalSign: "," })).toEqual(["1234"]);
    expect(await amounts(semicolons(["1.234"]), { decimalSign: "." })).toEqual(["1.234"]);
    expect(await amounts(semicolons(["1.234", "0,5"]))).toEqual(["1234", "0.5"]);
    expect(await amounts(semicolons(["1.234", "0.5"]))).toEqual(["1.234", "0.5"]);
    expect(await amounts(semicolons(["1'234.50", "1 234.50", "(5.00)"]))).toEqual(["1234.5", "1234.5", "-5"]);
    expect(await problemsOf(semicolons(["1.234,50", "1,234.50"]))).toEqual([
      'line 2: "1.234,50" has a comma before its decimals, and "1,234.50" (line 3) has a point',
    ]);
    // Yen have no decimals, dinars have three.
    expect(await amounts(semicolons(["1.234"]).replace("USD", "JPY"))).toEqual(["1234"]);
    expect((await problemsOf(semicolons(["1.234"]).replace("USD", "KWD")))[0]).toContain(
      "may be more than a thousand",
    );
    expect(await amounts(semicolons(["1.234", "0.500"]).replaceAll("USD", "KWD"))).toEqual(["1.234", "0.5"]);
  });

  test("a total with more decimals than its currency", async () => {
    const total = (currency: string, amount: string) =>
      `number;issuer;currency;kind;text;amount\n1;L;${currency};;t;${amount}\n;;;total;;${amount}\n`;
    expect(await problemsOf(total("JPY", "12.5"))).toEqual(['line 3: "12.5" has more decimals than JPY']);
    expect((await one(total("KWD", "0.125"))).differences).toEqual([]);
  });

  test("two billing currencies, in fields and amounts", async () => {
    expect(await problemsOf(`${HEAD}\n1,L,USD,a,,,,1\n1,L,EUR,b,,,,1\n`)).toEqual([
      'line 3, column "currency": "EUR", but "USD" in line 2, column "currency"',
    ]);
    expect(await problemsOf(row("€5.00"))).toEqual([
      'line 2: the currency is EUR, and USD in line 2, column "currency". An invoice has one billing currency',
    ]);
    expect((await one(row("$5.00"))).invoice.currency).toBe("USD");
    expect(await problemsOf(row("₹5.00"))).toEqual([
      'line 2: ₹ is not USD, the currency in line 2, column "currency". An invoice has one billing currency',
    ]);
    expect(await problemsOf("number,issuer,text,amount\n1,L,a,$5.00\n")).toEqual([
      "line 2: $ stands for several currencies. Give the currency, such as --field currency=USD",
    ]);
  });

  test("an ambiguous date, unless another date or an option shows the order", async () => {
    const dated = (issued: string, due: string) =>
      `number,issuer,currency,text,amount,issued_on,due_on\n1,L,USD,a,1,${issued},${due}\n`;
    const days = async (...given: Parameters<typeof read>) => {
      const { invoice } = await one(...given);
      return [invoice.issuedOn, invoice.dueOn];
    };
    expect(await problemsOf(dated("03/04/2026", ""))).toEqual([
      'line 2, column "issued_on": "03/04/2026" may be 2026-04-03 or 2026-03-04. Say which with --date-order dmy or mdy',
    ]);
    expect(await days(dated("03/04/2026", "13/04/2026"))).toEqual(["2026-04-03", "2026-04-13"]);
    expect(await days(dated("03/04/2026", "04/13/2026"))).toEqual(["2026-03-04", "2026-04-13"]);
    expect(await days(dated("03/04/2026", ""), { dateOrder: "mdy" })).toEqual(["2026-03-04", null]);
    expect(await problemsOf(dated("13/04/2026", "04/14/2026"))).toEqual([
      'line 2, column "due_on": "04/14/2026" begins with the month, and "13/04/2026" (line 2, column "issued_on") with the day',
    ]);
    expect(await problemsOf(dated("31/02/2026", "1/1/26"))).toEqual([
      'line 2, column "issued_on": "31/02/2026" is not a date such as 2026-10-31',
      'line 2, column "due_on": "1/1/26" is not a date such as 2026-10-31',
    ]);
  });

  test("what is no invoice of a form that is read", async () => {
    expect(await problemsOf("<html><table><tr><td>1</td></tr></table></html>")).toEqual([
      "it is a page in HTML or XML, whatever its name says. Copy its table, or save it as CSV",
    ]);
    expect(await problemsOf("\uFEFF \n")).toEqual(["it is empty"]);
    expect(await problemsOf(Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 1]))).toEqual([
      "it is a workbook of an old Excel. Save it as .xlsx",
    ]);
    expect((await problemsOf(Buffer.from([0, 1, 2, 255])))[0]).toContain("not text");
    expect(await problemsOf(`${HEAD}\n`)).toEqual(["it has no invoice"]);
    expect((await problemsOf("[".repeat(100_000)))[0]).toContain("nested");
    expect((await problemsOf("number,issuer,currency,text,amount\n,L,USD,a,1\n"))[0]).toContain(
      "no number is written",
    );
  });
});

test("sums that do not add up are named: parts, quantities, subtotal, total", async () => {
  const wrong = pictureCsv()
    .replace("54.48,2026", "54.49,2026")
    .replace("total,,,,,242.28", "total,,,,,242.30");
  expect((await one(wrong)).differences).toEqual([
    'line 2, "LangSmith Traces": 54.49 is written, and its parts add up to 54.48 (difference 0.01)',
    "line 9, subtotal: 203.60 is written, and its parts add up to 203.61 (difference -0.01)",
    "line 10, total: 242.30 is written, and its parts add up to 242.29 (difference 0.01)",
  ]);
});

test("text stays text: formulas and markup are neither run nor changed", async () => {
  const { invoice } = await one(`${HEAD}\n1,"=HYPERLINK(""x"")",USD,<b>@SUM(A1)</b>,,,,1\n`);
  expect([invoice.issuer, invoice.lines[0]?.text]).toEqual(['=HYPERLINK("x")', "<b>@SUM(A1)</b>"]);
});

test("any amount is read to the last digit, as any country writes it", async () => {
  const amount = fc.bigInt({ min: -(10n ** 27n) + 1n, max: 10n ** 27n - 1n });
  const style = fc.constantFrom(
    { group: ",", point: "." },
    { group: ".", point: "," },
    { group: " ", point: "," },
    { group: "’", point: "." },
    { group: "", point: "." },
  );
  await fc.assert(
    fc.asyncProperty(
      amount,
      style,
      fc.constantFrom("", "$", "USD "),
      async (value, { group, point }, mark) => {
        const [whole = "", fraction = "0"] = amountText(value < 0n ? -value : value).split(".");
        // Two decimals at least, so that the sign of decimals shows.
        const written = `${whole.replace(/\B(?=(\d{3})+$)/g, group)}${point}${fraction.padEnd(4, "0")}`;
        const text = `${value < 0n ? "-" : ""}${mark}${written}`;
        const { invoice } = await one(`number;issuer;currency;text;amount\n1;L;USD;a;${text}\n`);
        expect(amountText(invoice.total), text).toBe(amountText(value));
      },
    ),
    { seed: seed(), numRuns: times(200) },
  );
});
