import "../../core/base/validation.ts";
import { z } from "zod";
import { refuseGiven } from "../../core/base/given-file.ts";
import { isTooDeep } from "../../core/base/json.ts";
import { type CsvRow, csvRows, delimiterOf } from "../../terminal/csv-rows.ts";
import { type Draft, type DraftLine, type Drafts, FIELDS, type Field, type Written } from "./draft.ts";

/** Our columns of CSV and XLSX. Fields of the invoice are on any of its rows. */
const LINE_COLUMNS = [
  ...["text", "is_part", "kind", "quantity", "unit", "unit_price", "amount"],
  ...["period_start", "period_end", "workspace"],
];
export const COLUMNS: readonly string[] = [...FIELDS, ...LINE_COLUMNS];
/** Words of the column `kind` that are no lines. */
const SUMS = ["subtotal", "total"] as const;

/** Names the columns of another file: `amount: Net amount`. Columns that mean nothing to us are listed under `ignore`. */
export interface Mapping {
  readonly columns: Readonly<Record<string, string>>;
  readonly ignore: readonly string[];
}

const normalized = (name: string) => name.trim().toLowerCase().replaceAll(/[ -]/g, "_");

/** Reads CSV. `named` turns the line of a row into its place. Error: `file_invalid`. */
export function readTable(
  file: string,
  content: string,
  {
    mapping,
    named = (line) => `line ${line}`,
  }: { mapping?: Mapping | undefined; named?: (line: number) => string },
): Drafts {
  const theirs = (column: string) => normalized(mapping?.columns[column] ?? column);
  const columns = mapping === undefined ? COLUMNS : Object.keys(mapping.columns);
  const known = [...columns.map(theirs), ...(mapping?.ignore ?? []).map(normalized)];
  const required = mapping === undefined ? ["text", "amount"] : columns.map(theirs);
  const rows = csvRows(file, content, { columns: known, required, numbers: [], trim: true });
  const cellOf = ({ cells }: CsvRow, column: string) =>
    columns.includes(column) ? (cells[theirs(column)] ?? "") : "";
  return {
    drafts: draftsOf(file, rows, { cellOf, named }),
    ...(delimiterOf(content) === "," ? { decimalSign: { sign: ".", isSure: false } } : {}),
  };
}

interface Cells {
  readonly cellOf: (row: CsvRow, column: string) => string;
  readonly named: (line: number) => string;
}

function draftsOf(file: string, rows: readonly CsvRow[], { cellOf, named }: Cells): Draft[] {
  const problems: string[] = [];
  // A row without a number belongs to the invoice of the row above it.
  let number = rows.map((row) => cellOf(row, "number")).find((text) => text !== "") ?? "";
  let issuer = "";
  const byInvoice = Map.groupBy(rows, (row) => {
    number = cellOf(row, "number") || number;
    issuer = cellOf(row, "issuer") || issuer;
    return JSON.stringify([issuer, number]);
  });
  const drafts = [...byInvoice.values()].map((rowsOfOne): Draft => {
    const fields: Partial<Record<Field, Written>> = {};
    const sums: Partial<Record<(typeof SUMS)[number], Written>> = {};
    const lines: DraftLine[] = [];
    for (const row of rowsOfOne) {
      const [place, text] = [named(row.line), (column: string) => cellOf(row, column)];
      const shown = Object.values(row.cells)
        .filter((cell) => cell !== "")
        .join(" | ");
      for (const field of FIELDS) {
        if (text(field) === "") continue;
        const written = { text: text(field), place: `${place}, column "${field}"`, row: shown };
        const before = fields[field];
        if (before !== undefined && before.text !== written.text) {
          problems.push(
            `${written.place}: ${JSON.stringify(written.text)}, but ${JSON.stringify(before.text)} in ${before.place}`,
          );
        }
        fields[field] ??= written;
      }
      const sum = SUMS.find((one) => one === text("kind").toLowerCase());
      if (sum === undefined) lines.push(lineOf(text, { place, row: shown }));
      else if (sums[sum] !== undefined) problems.push(`${place}: there are two rows of kind ${sum}`);
      else sums[sum] = { text: text("amount"), place, row: shown };
    }
    return { fields, lines, ...sums };
  });
  refuseGiven(file, problems);
  return drafts;
}

function lineOf(text: (column: string) => string, at: { place: string; row: string }): DraftLine {
  const [start, end] = [text("period_start"), text("period_end")];
  return {
    ...at,
    text: text("text"),
    kind: text("kind") || undefined,
    quantity: text("quantity") || undefined,
    unit: text("unit") || undefined,
    unitPrice: text("unit_price") || undefined,
    amount: text("amount"),
    period: start === "" && end === "" ? undefined : { start, end },
    workspace: text("workspace") || undefined,
    isPart: /^(?:yes|true|1|x)$/i.test(text("is_part")),
  };
}

const FOCUS_REQUIRED = ["InvoiceId", "InvoiceIssuerName", "BilledCost", "BillingCurrency", "InvoiceDetailId"];
const FOCUS_OF: Readonly<Record<Field, string>> = {
  issuer: "InvoiceIssuerName",
  number: "InvoiceId",
  status: "InvoiceIssueStatus",
  issued_on: "InvoiceIssueDate",
  due_on: "PaymentDueDate",
  terms: "PaymentTerms",
  account: "BillingAccountId",
  purchase_order: "PurchaseOrderNumber",
  currency: "BillingCurrency",
  corrects: "ReferenceInvoiceId",
};
const FOCUS_OTHERS = [
  ...[
    "BillingPeriodStart",
    "BillingPeriodEnd",
    "ChargeCategory",
    "InvoiceDetailCreated",
    "InvoiceDetailGrain",
  ],
  ...["InvoiceDetailDescription", "InvoiceDetailLastUpdated", "PaymentCurrency", "PaymentCurrencyBilledCost"],
  "PaymentCurrencyInvoiceDetailId",
];

export function isFocus(content: string): boolean {
  return hasColumns(content, ["InvoiceDetailId", "BilledCost"]);
}

/** A table with our columns. Other text is a copied table. */
export function isTable(content: string): boolean {
  return hasColumns(content, ["text", "amount"]);
}

function hasColumns(content: string, columns: readonly string[]): boolean {
  const names = (/.*\S.*/.exec(content)?.[0] ?? "")
    .replaceAll('"', "")
    .split(/[,;\t]/)
    .map(normalized);
  return columns.every((name) => names.includes(normalized(name)));
}

/** Reads FOCUS 1.4 InvoiceDetail. Its columns are those of working drafts of 2026, and other columns are refused. */
export function readFocus(file: string, content: string): Drafts {
  const columns = [...FOCUS_REQUIRED, ...Object.values(FOCUS_OF), ...FOCUS_OTHERS].map(normalized);
  const rows = csvRows(file, content, {
    columns,
    required: FOCUS_REQUIRED.map(normalized),
    numbers: [],
    trim: true,
  });
  const cell = ({ cells }: CsvRow, name: string) => {
    const text = cells[normalized(name)] ?? "";
    return text === "NULL" ? "" : text;
  };
  const cellOf = (row: CsvRow, column: string) => {
    if (column in FOCUS_OF) return cell(row, FOCUS_OF[column as Field]);
    if (column === "text") return cell(row, "InvoiceDetailDescription") || cell(row, "InvoiceDetailId");
    if (column === "amount") return cell(row, "BilledCost");
    if (column === "period_start") return cell(row, "BillingPeriodStart");
    if (column === "period_end") return cell(row, "BillingPeriodEnd");
    if (column === "workspace") return workspaceIn(cell(row, "InvoiceDetailGrain"));
    const category = cell(row, "ChargeCategory").toLowerCase();
    // The text of a purchase says whether it is seats or a commitment.
    return column === "kind" && category !== "purchase" ? category : "";
  };
  return {
    drafts: draftsOf(file, rows, { cellOf, named: (line) => `line ${line}` }),
    decimalSign: { sign: ".", isSure: true },
  };
}

/** FOCUS leaves the keys of a grain to the issuer. */
function workspaceIn(grain: string): string {
  try {
    const { SubAccountId } = JSON.parse(grain || "{}") as { SubAccountId?: unknown };
    return typeof SubAccountId === "string" ? SubAccountId : "";
  } catch {
    return "";
  }
}

const text = z.string().optional();
const part = z.strictObject({
  text: z.string(),
  kind: text,
  quantity: text,
  unit: text,
  unit_price: text,
  amount: z.string(),
  period_start: text,
  period_end: text,
  workspace: text,
});
const invoiceSchema = z.strictObject({
  ...Object.fromEntries(FIELDS.map((field) => [field, text])),
  lines: z.array(part.extend({ parts: z.array(part).optional() })),
  subtotal: text,
  total: z.string(),
}) as unknown as z.ZodType<
  Partial<Record<Field, string>> & { lines: JsonLine[]; subtotal?: string; total: string }
>;
type JsonLine = z.output<typeof part> & { readonly parts?: readonly z.output<typeof part>[] };

/** Reads our JSON: one invoice or an array of them. Numbers keep all their digits, whether they are quoted or not. */
export function readJson(file: string, content: string): Drafts {
  const given = [parsed(file, content)].flat();
  const { data = [], error } = z.array(invoiceSchema).safeParse(given);
  const pathOf = (path: readonly PropertyKey[]) =>
    (given.length === 1 ? path.slice(1) : path).join(".") || "it";
  refuseGiven(
    file,
    (error?.issues ?? []).map(({ path, message }) => `${pathOf(path)} ${message}`),
  );
  return {
    drafts: data.map(({ lines, subtotal, total, ...fields }, at, { length }): Draft => {
      const within = length === 1 ? "" : `[${at}].`;
      const written = (name: string, value: string) => ({
        text: value,
        place: `${within}${name}`,
        row: `${name}: ${value}`,
      });
      return {
        fields: Object.fromEntries(
          Object.entries(fields).flatMap(([name, value]) => (value ? [[name, written(name, value)]] : [])),
        ),
        lines: lines.flatMap(({ parts = [], ...line }, n) => [
          ofJson(line, `${within}lines[${n}]`, false),
          ...parts.map((one, p) => ofJson(one, `${within}lines[${n}].parts[${p}]`, true)),
        ]),
        ...(subtotal === undefined ? {} : { subtotal: written("subtotal", subtotal) }),
        total: written("total", total),
      };
    }),
    decimalSign: { sign: ".", isSure: true },
  };
}

function ofJson(line: z.output<typeof part>, place: string, isPart: boolean): DraftLine {
  const cells = Object.entries(line).filter(([, value]) => value !== undefined && value !== "");
  const row = cells.map(([name, value]) => `${name}: ${value}`).join(", ");
  const cellOf = (column: string) => line[column as keyof typeof line] ?? "";
  return { ...lineOf(cellOf, { place, row }), isPart };
}

function parsed(file: string, content: string): unknown {
  try {
    if (isTooDeep(content)) throw new SyntaxError("it is nested too deep");
    // A number keeps its text, because a float would lose digits.
    const asWritten = (_: string, value: unknown, context?: { source?: string }) =>
      typeof value === "number" ? (context?.source ?? String(value)) : value === null ? undefined : value;
    return JSON.parse(content, asWritten as (key: string, value: unknown) => unknown);
  } catch (error) {
    refuseGiven(file, [(error as Error).message]);
    throw error;
  }
}
