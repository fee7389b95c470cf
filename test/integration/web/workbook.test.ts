import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { request } from "undici";
import { expect, test } from "vitest";
import { addDays, dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { createPrices } from "../../support/charges.ts";
import { type PagesBench, refusalOf, setupPages, setupViewer } from "../../support/pages.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import { setupUsage, shareUsage } from "../../support/usage-bench.ts";
import { readWorkbook, type Sheet, type SheetCell } from "../../support/workbook.ts";

/** The workbook of usage, as a spreadsheet reads what HTTP gave. */

const DAYS = 6;
/** Names that a spreadsheet, XML or JavaScript could take for something else. */
const NAMES = [
  "=1+1",
  `=HYPERLINK("http://evil.example")`,
  "+1",
  "-2026-01-01",
  "@sum",
  "\t=1",
  "00012",
  "1E5",
  "TRUE",
  "2026-03-01",
  "constructor",
  "__proto__",
  "_x0041_",
  "line\r\nbreak \u001b\u0085\uFFFD\uFDD0",
  " <t>&amp;]]></t> ",
];

async function workbook(pages: PagesBench, query: string): Promise<Sheet[]> {
  const response = await request(`${pages.url}/usage.xlsx?${query}`);
  expect(response.statusCode).toBe(200);
  expect(response.headers["content-type"]).toBe(
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  );
  return readWorkbook(await response.body.bytes());
}

const DATE_FORMATS: Readonly<Record<string, string>> = {
  month: "yyyy-mm",
  hour: "yyyy-mm-dd hh:mm",
  ...Object.fromEntries(
    ["day", "from", "to", "before_from", "before_to"].map((column) => [column, "yyyy-mm-dd"]),
  ),
};
const TEXTS = ["source_id", "by", "id", "name", "state", "currency"];

/** What CSV has in the place of a cell. */
function inCsv(cell: SheetCell | undefined, column: string): string {
  if (cell === undefined) return "";
  const { type, value, format } = cell;
  const date = DATE_FORMATS[column];
  if (date !== undefined) {
    expect([column, type, format]).toEqual([column, "date", date]);
    return value.replace("T", " ").slice(0, date.length);
  }
  if (TEXTS.includes(column)) {
    expect([column, type]).toEqual([column, "text"]);
    return /^[=+\-@\t\r＝＋－＠]/.test(value) ? `'${value}` : value;
  }
  // JavaScript writes small numbers with an exponent. A text stands only where a double would lose a digit.
  const decimal = value.includes("e") ? Number(value).toFixed(10).replace(/0+$/, "") : value;
  const digits = decimal.replace(/\D/g, "").replace(/^0+|0+$/g, "");
  expect([column, decimal, type]).toEqual([column, decimal, digits.length > 15 ? "text" : "number"]);
  return decimal;
}

/** Checks that a sheet has the lines of a CSV file, but for its total: a pivot table or a sum over the column would count it twice. */
function expectLines(sheet: Sheet | undefined, csv: string) {
  const [header = [], ...all]: string[][] = parse(csv);
  const lines = all.filter((line) => line[header.indexOf("name")] !== "Total");
  const [head = [], ...rows] = sheet?.rows ?? [];
  expect(head).toMatchObject(header.map((value) => ({ type: "text", value })));
  expect(rows.map((row) => header.map((column, n) => inCsv(row[n], column)))).toEqual(lines);
}

const fieldsOf = (sheet: Sheet | undefined) =>
  (sheet?.rows ?? []).slice(1).map(([field, value]) => [field?.value, value?.value]);

test("the workbook has the lines of both files, with numbers as numbers, times as dates and names as texts", async () => {
  const bench = await setupUsage({ days: DAYS, gapAgo: 3 });
  const pages = await setupPages(bench);
  const change = dayOf(bench.today - 2 * DAY_MS);
  await createPrices(bench.store, [
    { unitPrice: "0.0000000007", from: bench.from, to: change },
    { unitPrice: "12345678.0123456789", from: change },
  ]);
  const drawn = fc.sample(fc.string({ unit: "binary", minLength: 1, maxLength: 20 }), {
    numRuns: 60,
    seed: 1,
  });
  const given = drawn.filter((name) => !name.includes("\0")).slice(0, 20 - NAMES.length);
  const names = [...NAMES, ...given];
  const workspaceId = bench.standin.organisation.workspaces[0]?.id ?? "";
  await loadRows(bench.store, {
    sourceId: 1,
    groupBy: "project",
    workspaceId,
    window: windowOf("day", bench.gap, addDays(bench.gap, 1)),
    rows: names.map((name, n) => {
      const id = `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
      return [bench.gap, id, 1_000_000 + n, name] as const;
    }),
  });
  const range = `from=${bench.from}&to=${bench.to}`;
  for (const [title, query] of [
    ["Usage", `by=project&per=day&${range}`],
    ["Usage", `by=user&per=month&${range}`],
    ["Usage", `by=workspace&per=hour&from=${addDays(bench.to, -2)}&to=${bench.to}`],
    ["Usage", "from=2999-01-01&to=2999-02-01"],
    ["Estimated costs", `by=workspace&measure=cost&${range}`],
  ] as const) {
    const sheets = await workbook(pages, query);
    expect(sheets.map(({ name }) => name)).toEqual([title, "Trend", "About"]);
    expectLines(sheets[0], (await pages.get(`/usage.csv?${query}`)).text);
    expectLines(sheets[1], (await pages.get(`/usage.csv?${query}&table=time`)).text);
  }
  const month = bench.from.slice(0, 7);
  const whole = await workbook(pages, `month=${month}`);
  expect(whole.map(({ name }) => name)).toEqual(["Usage", "Trend", "Bill", "About"]);
  const bill = await bench.sql<{ cells: (string | null)[] }>(
    `SELECT ARRAY[trim_scale(quantity)::text, trim_scale(unit_price)::text, currency, trim_scale(estimated_cost)::text] AS cells
     FROM reporting.usage_bill_monthly WHERE month_start = $1::date ORDER BY line_number`,
    [`${month}-01`],
  );
  const columns = ["quantity", "unit_price", "currency", "estimated_cost"];
  const header = whole[2]?.rows[0]?.map((cell) => cell?.value) ?? [];
  const lines = whole[2]?.rows.slice(1).filter((row) => row[header.indexOf("row")]?.value === "line");
  expect(lines?.map((row) => columns.map((column) => inCsv(row[header.indexOf(column)], column)))).toEqual(
    bill.map(({ cells }) => cells.map((cell) => cell ?? "")),
  );
  expect(bill.some(({ cells }) => cells[3] !== null)).toBe(true);
  const [byProject] = await workbook(pages, `by=project&per=day&${range}`);
  const shown = byProject?.rows.map((row) => row[5]?.value);
  expect(names.filter((name) => shown?.includes(name) !== true)).toEqual([]);
  const costs = await workbook(pages, `by=workspace&measure=cost&per=day&${range}`);
  const types = new Set(costs.flatMap(({ rows }) => rows.slice(1)).map((row) => row[6]?.type));
  // Some costs have more digits than a double.
  expect(types).toEqual(new Set(["number", "text", undefined]));
});

const shared = shareUsage({ days: DAYS, gapAgo: 3 });

test("a workbook masks users for those who only look, and refuses what the page refuses", async () => {
  const bench = shared();
  const viewer = await setupViewer(bench);
  const cookie = (await viewer.post("/login", { token: "viewers-token-4712" })).headers["set-cookie"];
  const response = await request(`${viewer.url}/usage.xlsx?by=user`, {
    headers: { cookie: String(cookie).split(";")[0] ?? "" },
  });
  const sheets = readWorkbook(await response.body.bytes());
  const cells = sheets.flatMap(({ rows }) => rows.flat().map((cell) => cell?.value ?? ""));
  expect(cells.filter((value) => value.includes("@"))).toEqual([]);
  expect(cells.some((value) => /^user [0-9a-f]{8}/.test(value))).toBe(true);
  expect(fieldsOf(sheets[2])).toContainEqual(["Note", "Addresses of users are masked."]);
  for (const query of ["source=other", "by=team", "measure=cost", "measure=agent_runs"])
    expect([query, await refusalOf(viewer, `/usage.xlsx?${query}`)]).toEqual([
      query,
      await refusalOf(viewer, `/usage.csv?${query}`),
    ]);
});
