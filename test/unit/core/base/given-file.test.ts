import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readConfig } from "../../../../src/core/base/config.ts";
import { withEnvFile } from "../../../../src/core/base/env-file.ts";
import { readPriceFile } from "../../../../src/features/costs/price-file.ts";
import { readOwnerFile } from "../../../../src/features/owners/owner-file.ts";
import { temporaryFolder } from "../../../support/temporary.ts";

const folder = () => {
  const path = temporaryFolder();
  return (name: string, bytes: Uint8Array) => {
    writeFileSync(join(path, name), bytes);
    return join(path, name);
  };
};

const PRICES = "sku,unit_price,currency,valid_from\r\ntraces,0.5,USD,2026-01-01\r\n";
const YAML = "rules:\n  - owner: Sales é\n    workspace: w\n";
const CSV = "owner,workspace\r\nSales é,w\r\n";
const SOURCES = JSON.stringify([{ slug: "eu", baseUrl: "https://eu.example.com", apiKey: "a-key" }]);

test.each([
  ["UTF-8", (text: string) => Buffer.from(text)],
  ["UTF-8 with a mark", (text: string) => Buffer.from(`\ufeff${text}`)],
  ["UTF-16LE with a mark", (text: string) => Buffer.from(`\ufeff${text}`, "utf16le")],
  ["UTF-16BE with a mark", (text: string) => Buffer.from(`\ufeff${text}`, "utf16le").swap16()],
])("prices, owners, sources, settings and secrets are read in %s", async (_, encode) => {
  const write = folder();
  expect(await readPriceFile(write("prices.csv", encode(PRICES)))).toMatchObject([
    { price: { sku: "traces" } },
  ]);
  for (const [name, text] of [
    ["owners.yaml", YAML],
    ["owners.csv", CSV],
  ] as const)
    expect((await readOwnerFile(write(name, encode(text)))).rules, name).toMatchObject([
      { shares: [{ owner: "Sales é" }] },
    ]);
  const sources = readConfig({ USAGE_SOURCES_FILE: write("sources.json", encode(SOURCES)) }).sources;
  expect(sources.map(({ slug, apiKey }) => [slug, apiKey.reveal()])).toEqual([["eu", "a-key"]]);
  const token = write("token", encode("tökens-of-sixteen-characters\r\n"));
  const env = write("usage.env", encode(`USAGE_USER_EMAIL=drop\r\nUSAGE_WEB_TOKEN_FILE=${token}\r\n`));
  const { userEmail, webToken } = readConfig(withEnvFile({ USAGE_ENV_FILE: env }));
  expect([userEmail, webToken?.reveal()]).toEqual(["drop", "tökens-of-sixteen-characters"]);
});

test.each([
  ["Latin-1", (text: string) => Buffer.from(text.replace("w", "é"), "latin1")],
  ["UTF-16 without a mark", (text: string) => Buffer.from(text, "utf16le")],
  ["UTF-16 that is cut", (text: string) => Buffer.from(`\ufeff${text}`, "utf16le").subarray(0, -1)],
])("a file in %s is refused by name", async (_, encode) => {
  const write = folder();
  const isNoText = /\/[\w.]+ cannot be read: it is not text in UTF-8, or in UTF-16 with a byte order mark/;
  await expect(readPriceFile(write("prices.csv", encode(PRICES.replace("traces", "w"))))).rejects.toThrow(
    isNoText,
  );
  await expect(readOwnerFile(write("owners.yaml", encode(YAML)))).rejects.toThrow(isNoText);
  const sources = write("sources.json", encode(SOURCES.replace("eu.example", "w.example")));
  expect(() => readConfig({ USAGE_SOURCES_FILE: sources })).toThrow(isNoText);
  const env = write("usage.env", encode("USAGE_USER_EMAIL=drop # w\n"));
  expect(() => withEnvFile({ USAGE_ENV_FILE: env })).toThrow(isNoText);
  expect(() => readConfig({ USAGE_API_KEY_FILE: env })).toThrow(isNoText);
});

const saved = (rows: readonly (readonly string[])[], separator: string, everywhere = false) =>
  rows
    .map((cells) =>
      cells
        .map((cell) =>
          everywhere || cell.includes(separator) || cell.includes('"')
            ? `"${cell.replaceAll('"', '""')}"`
            : cell,
        )
        .join(separator),
    )
    .map((line) => `${line}\r\n`)
    .join("");

const PRICE_ROWS = (decimal: (english: string) => string) => [
  ["SKU", "Unit Price", "currency", "valid_from", "valid_to", "from_quantity"],
  ["traces", decimal("0.0005"), "USD", "2026-01-01", "", ""],
  ["traces", decimal("1234.5"), "USD", "2026-01-01", "", decimal("1000000")],
  ['lcu; "big", all', decimal("5E-4"), "EUR", "2026-02-01", "2026-03-01", "0"],
];
const BUDGET_ROWS = (decimal: (english: string) => string) => [
  ["owner", "workspace", "share", "amount", "currency", "warn_at"],
  ["search", "w", decimal("0.6"), "", "", ""],
  ["ads", "w", decimal("0.4"), "", "", ""],
  ["search", "", "", decimal("2500.5"), "USD", "80;100"],
];
const english = (number: string) => number;
const german = (number: string) =>
  number === "1234.5" ? "1.234,5" : number === "1000000" ? "1.000.000" : number.replace(".", ",");
const french = (number: string) =>
  number === "1234.5" ? "1\u202f234,5" : number === "1000000" ? "1\u00a0000 000" : number.replace(".", ",");
const american = (number: string) =>
  number === "1234.5" ? "1,234.50" : number === "1000000" ? "1,000,000" : number;
const EMPTY_ROWS = [...Array(20)].map(() => ["", "", "", "", "", ""]);
const mark = "\ufeff";
const NO_END = /(,+)\r\n/g;

test.each<[string, (rows: (decimal: typeof english) => string[][]) => Buffer]>([
  ["English Excel, CSV", (rows) => Buffer.from(saved(rows(english), ","))],
  ["American Excel with thousands separators", (rows) => Buffer.from(saved(rows(american), ","))],
  ["English Excel with cleared rows", (rows) => Buffer.from(saved([...rows(english), ...EMPTY_ROWS], ","))],
  [
    "English Excel with cleared columns",
    (rows) =>
      Buffer.from(
        saved(
          rows(english).map((row) => [...row, "", ""]),
          ",",
        ),
      ),
  ],
  [
    "Excel that leaves out separators",
    (rows) => Buffer.from(saved(rows(english), ",").replaceAll(NO_END, "\r\n")),
  ],
  ["German Excel, CSV", (rows) => Buffer.from(saved(rows(german), ";"), "latin1")],
  [
    "German Excel, CSV UTF-8, with cleared rows",
    (rows) => Buffer.from(mark + saved([...rows(german), ...EMPTY_ROWS], ";")),
  ],
  ["French Excel, CSV UTF-8", (rows) => Buffer.from(mark + saved(rows(french), ";"))],
  ["German Excel, Unicode Text", (rows) => Buffer.from(mark + saved(rows(german), "\t"), "utf16le")],
  [
    "English Excel, Unicode Text, big endian",
    (rows) => Buffer.from(mark + saved(rows(american), "\t"), "utf16le").swap16(),
  ],
  ["Excel of a Mac, CSV", (rows) => Buffer.from(saved(rows(german), ";").replaceAll("\r\n", "\r"))],
  ["LibreOffice with quotes everywhere", (rows) => Buffer.from(saved(rows(german), ",", true))],
])("prices and owners are read as they are saved by %s", async (_, bytesOf) => {
  const write = folder();
  const prices = await readPriceFile(write("prices.csv", bytesOf(PRICE_ROWS)));
  expect(prices.map(({ where, price }) => [where, price])).toMatchObject([
    ["line 2", { sku: "traces", unitPrice: "0.0005", validTo: null, fromQuantity: 0 }],
    ["line 3", { unitPrice: "1234.5", currency: "USD", validFrom: "2026-01-01", fromQuantity: 1_000_000 }],
    ["line 4", { sku: 'lcu; "big", all', unitPrice: "0.0005", currency: "EUR", validTo: "2026-03-01" }],
  ]);
  const { rules, budgets } = await readOwnerFile(write("owners.csv", bytesOf(BUDGET_ROWS)));
  expect(rules).toMatchObject([{ line: 2, shares: [{ share: 6000 }, { owner: "ads", share: 4000 }] }]);
  expect(budgets).toMatchObject([{ line: 4, amount: expect.stringMatching(/^2500\.5$/), warnAt: [80, 100] }]);
});

test.each([
  ["a decimal comma of another row", "A;1,125\nB;0,5", ["1.125", "0.5"]],
  ["a decimal point of another row", "A;1,125\nB;0.5", ["1125", "0.5"]],
  ["thousands of another row", "A;1,125\nB;1.234.567", ["1.125", "1234567"]],
  ["both signs of another row", "A;1.125\nB;1,234.5", ["1.125", "1234.5"]],
])("a number that may be read in two ways is read by %s", async (_, rows, expected) => {
  const text = rows.replaceAll(/$/gm, ";USD;2026-01-01");
  const bytes = Buffer.from(`sku;unit_price;currency;valid_from\n${text}\n`);
  const prices = await readPriceFile(folder()("prices.csv", bytes));
  expect(prices.map(({ price }) => price.unitPrice)).toEqual(expected);
});

test.each([
  [
    "sku;unit_price\nA;1,125\n",
    'line 2, column "unit_price": "1,125" may be 1125 or 1.125. Write 1125 or 1.1250',
  ],
  ["sku\tunit_price\nA\t1.125\n", 'line 2, column "unit_price": "1.125" may be 1125 or 1.125'],
  ['sku,unit_price\nA,"1,125"\n', 'line 2, column "unit_price": "1,125" may be'],
  ["sku;unit_price\nA;0,5\nB;0.5\nC;1,125\n", 'line 4, column "unit_price": "1,125" may be'],
  ["sku,unit_price\nA,0,0005\n", 'line 2: cell 5 \\("2026-01-01"\\) has no column'],
  ["sku,unit_price\nA,1.234,56\n", 'line 2: cell 5 \\("2026-01-01"\\) has no column'],
  ["sku;unit_price\nA;1.2.3\n", 'line 2, column "unit_price": "1.2.3" is not a decimal number'],
  ["sku;unit_price\nA;12,34,567\n", 'line 2, column "unit_price": "12,34,567" is not a decimal number'],
  ["sku;unit_price\nA;1 2345\n", 'line 2, column "unit_price": "1 2345" is not a decimal number'],
  ["sku;unit_price\nA;0,5 €\n", 'line 2, column "unit_price": "0,5 €" is not a decimal number'],
])("a number is refused by line and column in %j", async (content, problem) => {
  const separator = /[,;\t]/.exec(content)?.[0] ?? "";
  const more = ["currency", "valid_from"].join(separator);
  const row = ["USD", "2026-01-01"].join(separator);
  const whole = content
    .split("\n")
    .map((line, at) => (line === "" ? "" : `${line}${separator}${at === 0 ? more : row}`))
    .join("\n");
  await expect(readPriceFile(folder()("prices.csv", Buffer.from(whole)))).rejects.toThrow(
    new RegExp(`was refused:\\n  ${problem}`),
  );
});
