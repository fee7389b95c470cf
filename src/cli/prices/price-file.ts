import { readFile } from "node:fs/promises";
import { CsvError, parse } from "csv-parse/sync";
import { nearest } from "../../config/spelling.ts";
import { isDay, parseUnitPrice } from "../../domain/price.ts";
import { UsageError } from "../../errors.ts";
import { type PriceLine, refuse } from "../../pipeline/import-prices.ts";

const REQUIRED = ["sku", "unit_price", "currency", "valid_from"] as const;
const OPTIONAL = ["valid_to", "source", "workspace"] as const;
type Column = (typeof REQUIRED)[number] | (typeof OPTIONAL)[number];
const COLUMNS: readonly string[] = [...REQUIRED, ...OPTIONAL];

const CURRENCIES = Intl.supportedValuesOf("currency");

/** One price as texts; empty where nothing was given. */
interface RawPrice {
  /** `line 3` of a CSV file, `item 2` of a JSON array. */
  readonly where: string;
  readonly cells: Readonly<Record<string, string>>;
}

/**
 * Prices of a CSV file with a header, or of a JSON array of objects (`.json`), under the names `sku`, `unit_price`,
 * `currency`, `valid_from`, `valid_to`, `source` and `workspace`. Errors: `price_file_unreadable`,
 * `price_file_invalid` with every problem by line and column.
 */
export async function readPriceFile(file: string): Promise<PriceLine[]> {
  const text = await readText(file);
  const raw = /\.json$/i.test(file) ? fromJson(file, text) : fromCsv(file, text);
  const read = raw.map(fromRawPrice);
  refuse(
    file,
    read.flatMap(({ problems }) => problems),
  );
  return read.map(({ line }) => line);
}

async function readText(file: string): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await readFile(file));
  } catch (cause) {
    throw new UsageError({
      code: "price_file_unreadable",
      message: `${file} cannot be read: ${cause instanceof TypeError ? "it is not UTF-8" : cause instanceof Error ? cause.message : String(cause)}.`,
      next: "Give a CSV or JSON file in UTF-8.",
      cause,
    });
  }
}

function fromCsv(file: string, text: string): RawPrice[] {
  const rows = csvRows(file, text);
  if (rows.length === 0) refuse(file, ["line 1: the file is empty"]);
  const header = (rows[0]?.cells ?? []).map((name) => name.toLowerCase().replaceAll(/[ -]/g, "_"));
  const twice = header.find((name, at) => header.indexOf(name) !== at);
  refuse(file, [
    ...unknownNames(header).map((why) => `line 1: ${why}`),
    ...REQUIRED.filter((name) => !header.includes(name)).map(
      (name) => `line 1: there is no column "${name}"`,
    ),
    ...(twice === undefined ? [] : [`line 1: there are two columns "${twice}"`]),
  ]);
  return rows.slice(1).map(({ line, cells }) => {
    if (cells.length !== header.length) {
      refuse(file, [
        `line ${line}: there are ${cells.length} cells, and ${header.length} columns in the header`,
      ]);
    }
    return {
      where: `line ${line}`,
      cells: Object.fromEntries(header.map((name, at) => [name, cells[at] ?? ""])),
    };
  });
}

function csvRows(file: string, text: string): { line: number; cells: string[] }[] {
  try {
    const records = parse(text, {
      bom: true,
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
    });
    return (records as unknown as { record: string[]; info: { lines: number } }[]).map(
      ({ record, info }) => ({
        line: info.lines,
        cells: record,
      }),
    );
  } catch (error) {
    if (error instanceof CsvError) refuse(file, [`line ${Number(error.lines ?? 1)}: ${error.message}`]);
    throw error;
  }
}

/** Numbers keep the text that stands in the file: as floats they would not be what was written. */
function fromJson(file: string, text: string): RawPrice[] {
  let items: unknown;
  try {
    const keepSource = (_: string, value: unknown, context?: { source?: string }) =>
      typeof value === "number" ? (context?.source ?? String(value)) : value;
    items = JSON.parse(text.replace(/^\uFEFF/, ""), keepSource);
  } catch (error) {
    refuse(file, [
      `${placeOf(error, text)}: it is no JSON (${error instanceof Error ? error.message : error})`,
    ]);
  }
  if (!Array.isArray(items)) {
    refuse(file, ["it holds no array of prices"]);
    return [];
  }
  return items.map((item, at) => {
    const where = `item ${at + 1}`;
    if (item === null || typeof item !== "object" || Array.isArray(item))
      refuse(file, [`${where} is no object`]);
    refuse(
      file,
      unknownNames(Object.keys(item)).map((why) => `${where}: ${why}`),
    );
    const cells = Object.entries(item).map(([name, value]) => {
      if (value !== null && typeof value !== "string")
        refuse(file, [`${where}, column "${name}": it is no text`]);
      return [name, value === null ? "" : String(value).trim()];
    });
    return { where, cells: Object.fromEntries(cells) };
  });
}

/** Line and column of a syntax error, from the position that V8 tells. */
function placeOf(error: unknown, text: string): string {
  const position = /position (\d+)/.exec(String(error))?.[1];
  if (position === undefined) return "at its end";
  const before = text.slice(0, Number(position)).split("\n");
  return `line ${before.length}, character ${(before.at(-1)?.length ?? 0) + 1}`;
}

function unknownNames(names: readonly string[]): string[] {
  return names
    .filter((name) => !COLUMNS.includes(name))
    .map((name) => {
      const near = nearest(name, COLUMNS);
      return `there is no column ${JSON.stringify(name)}; ${near === undefined ? `columns are ${COLUMNS.join(", ")}` : `did you mean ${near}?`}`;
    });
}

function fromRawPrice({ where, cells }: RawPrice): { line: PriceLine; problems: string[] } {
  const problems: string[] = [];
  const cell = (column: Column) => cells[column] ?? "";
  const check = (column: Column, why: string | undefined) => {
    if (why !== undefined)
      problems.push(`${where}, column "${column}": ${JSON.stringify(cell(column))} ${why}`);
  };
  const day = (column: Column) => (isDay(cell(column)) ? undefined : "is no day such as 2026-03-01");
  const parsed = parseUnitPrice(cell("unit_price"));
  const sku = cell("sku");
  check("sku", skuProblem(sku));
  check("unit_price", "why" in parsed ? parsed.why : undefined);
  check("currency", currencyProblem(cell("currency")));
  check("valid_from", day("valid_from"));
  if (cell("valid_to") !== "") {
    const isReversed = cell("valid_to") <= cell("valid_from");
    check(
      "valid_to",
      day("valid_to") ?? (isReversed ? "is not after valid_from; it is not included" : undefined),
    );
  }
  const orNull = (text: string) => (text === "" ? null : text);
  const price = {
    sku,
    unitPrice: "price" in parsed ? parsed.price : "",
    currency: cell("currency"),
    validFrom: cell("valid_from"),
    validTo: orNull(cell("valid_to")),
    source: orNull(cell("source")),
    workspace: orNull(cell("workspace").toLowerCase()),
  };
  return { line: { where, price }, problems };
}

function skuProblem(sku: string): string | undefined {
  if (sku === "") return "is no SKU";
  if (/\p{Cc}/u.test(sku)) return "has a control character";
  return sku.length > 200 ? "has more than 200 characters" : undefined;
}

function currencyProblem(code: string): string | undefined {
  if (CURRENCIES.includes(code)) return undefined;
  const upper = code.toUpperCase();
  const near = CURRENCIES.includes(upper)
    ? upper
    : nearest(upper, upper.length > 3 ? [upper.slice(0, 3)] : []);
  const hint = near !== undefined && CURRENCIES.includes(near) ? `; did you mean ${near}?` : "";
  return `is no currency of ISO 4217${hint}`;
}
