import { open } from "node:fs/promises";
import { parse } from "yaml";
import { UsageError } from "../../core/base/errors.ts";
import { refuseGiven, textOf } from "../../core/base/given-file.ts";
import type { Drafts } from "./draft.ts";
import { finishInvoices, type Reading, type Told } from "./finish-invoice.ts";
import { pdfRows } from "./pdf-rows.ts";
import { readLayout } from "./read-layout.ts";
import {
  COLUMNS,
  isFocus,
  isTable,
  type Mapping,
  readFocus,
  readJson,
  readTable,
} from "./read-table-file.ts";
import { textRows } from "./text-row.ts";
import { xlsxAsCsv } from "./xlsx-csv.ts";

export type FileForm = "pdf" | "csv" | "xlsx" | "json" | "focus" | "text";

/** Most bytes of an invoice. A PDF of thousands of lines has one or two MB. */
const LARGEST_FILE = 20 * 1024 * 1024;

export interface GivenFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface HowToRead extends Told {
  readonly mapping?: Mapping | undefined;
  /** Ids and names of the source's workspaces, by which a heading is recognized. */
  readonly workspaces: readonly string[];
}

export interface ReadFile {
  readonly form: FileForm;
  readonly readings: readonly Reading[];
}

/** `-` is the standard input. Errors: `file_unreadable`, `file_invalid` if it is too large. */
export async function givenFile(name: string): Promise<GivenFile> {
  if (name === "-") {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > LARGEST_FILE) refuseSize("The standard input");
      chunks.push(chunk);
    }
    return { name: "standard input", bytes: Buffer.concat(chunks) };
  }
  try {
    const file = await open(name);
    try {
      const { size } = await file.stat();
      if (size > LARGEST_FILE) refuseSize(name);
      return { name, bytes: await file.readFile() };
    } finally {
      await file.close();
    }
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    throw new UsageError({
      code: "file_unreadable",
      message: `${name} cannot be read: ${(cause as Error).message}.`,
      next: "Give a PDF, CSV, XLSX, JSON or text file, or - for the standard input.",
      cause,
    });
  }
}

function refuseSize(name: string, most = LARGEST_FILE): never {
  refuseGiven(name, [`it has more than ${most / 1024 / 1024} MB, which no invoice has`]);
  throw new Error("refused");
}

/** Reads a file whole, or refuses it. Its content decides its form, not its name. Error: `file_invalid`. */
export async function readInvoices(given: GivenFile, how: HowToRead): Promise<ReadFile> {
  const { form, drafts } = await draftsIn(given, how);
  return { form, readings: finishInvoices(given.name, drafts, how) };
}

const PDF = Buffer.from("%PDF").toString("hex");
const ZIP = "504b0304";
const OLD_EXCEL = "d0cf11e0";

async function draftsIn(
  { name, bytes }: GivenFile,
  how: HowToRead,
): Promise<{ form: FileForm; drafts: Drafts }> {
  const refuse = (why: string): never => {
    refuseGiven(name, [why]);
    throw new Error("refused");
  };
  const start = Buffer.from(bytes.subarray(0, 4)).toString("hex");
  if (start === PDF)
    return { form: "pdf", drafts: readLayout(name, await pdfRows(name, bytes), how.workspaces) };
  if (start === ZIP) {
    const named = (line: number) => `row ${line}`;
    const table = readTable(name, await xlsxAsCsv(name, bytes), { mapping: how.mapping, named });
    return { form: "xlsx", drafts: table };
  }
  if (start === OLD_EXCEL) return refuse("it is a workbook of an old Excel. Save it as .xlsx");
  const content = textOf(bytes)?.replace(/^\uFEFF/, "");
  if (content === undefined) {
    return refuse(
      "it is not a PDF or an XLSX file, and not text in UTF-8, or in UTF-16 with a byte order mark",
    );
  }
  if (content.trim() === "") return refuse("it is empty");
  if (/^\s*<(?:!doctype|html|table|head|body|\?xml|div|meta)/i.test(content)) {
    return refuse("it is a page in HTML or XML, whatever its name says. Copy its table, or save it as CSV");
  }
  if (/^\s*[[{]/.test(content)) return { form: "json", drafts: readJson(name, content) };
  if (how.mapping === undefined && isFocus(content))
    return { form: "focus", drafts: readFocus(name, content) };
  if (how.mapping === undefined && !isTable(content)) {
    return { form: "text", drafts: readLayout(name, textRows(content), how.workspaces) };
  }
  return { form: "csv", drafts: readTable(name, content, { mapping: how.mapping }) };
}

/** Reads a mapping file: our columns and the names of another file, and the names to ignore. Error: `file_invalid`. */
export function mappingOf(file: string, content: string): Mapping {
  const problems: string[] = [];
  const { ignore = [], ...columns } = readYaml(file, content);
  for (const [ours, theirs] of Object.entries(columns)) {
    if (!COLUMNS.includes(ours)) problems.push(`${ours} is not one of our columns: ${COLUMNS.join(", ")}`);
    if (typeof theirs !== "string") problems.push(`${ours} must be the name of a column of the other file`);
  }
  for (const ours of ["text", "amount"]) if (!(ours in columns)) problems.push(`${ours} is missing`);
  const isList = Array.isArray(ignore) && ignore.every((name) => typeof name === "string");
  if (!isList) problems.push("ignore must be a list of names");
  refuseGiven(file, problems);
  return { columns: columns as Record<string, string>, ignore: ignore as string[] };
}

function readYaml(file: string, content: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parse(content, { maxAliasCount: 0 });
  } catch (error) {
    refuseGiven(file, [(error as Error).message]);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    refuseGiven(file, ["it is not a list of `ours: theirs`"]);
  return value as Record<string, unknown>;
}
