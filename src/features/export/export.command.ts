import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../../core/base/errors.ts";
import { loadOptional } from "../../core/base/optional.ts";
import { parseInstant, withRange } from "../../terminal/options.ts";
import { count } from "../../terminal/output.ts";
import type { Update } from "../../terminal/progress.ts";
import { inSession, type Session } from "../../terminal/session.ts";
import { type SelectionOptions, selectionOf, type WhereOption } from "./selection.ts";
import { BYTE_ORDER_MARK, bomOption } from "./table-file.ts";
import { openFileTarget, openStdoutTarget, ReaderLeftError, type Target } from "./target.ts";
import { copyRows, csvForm, jsonForm, type RowsWanted, readRows } from "./view-rows.store.ts";

interface ExportOptions extends SelectionOptions {
  readonly format: keyof typeof FORMATS;
  readonly formulaGuard: boolean;
  readonly bom?: boolean;
  readonly out?: string;
}

type Format = (wanted: RowsWanted, target: Target, options: ExportOptions) => Promise<number>;

const FORMATS = {
  // Programs read files of FOCUS, and an added character would alter their data.
  csv: async (wanted, { write }, { formulaGuard }) =>
    copyRows(
      wanted,
      csvForm(wanted, { guard: formulaGuard && !wanted.view.name.startsWith("focus_") }),
      write,
    ),
  json: async (wanted, { write }) => copyRows(wanted, jsonForm(wanted), write),
  parquet: async (wanted, { write }) => {
    const { createParquet } = await loadOptional(() => import("./parquet.ts"));
    const file = createParquet(wanted.columns, write);
    await readRows(wanted, file.add);
    return file.end();
  },
} satisfies Record<string, Format>;

export const examples = [
  [
    "export --view fct_usage_workspace_daily --from 2026-10-01 --to 2026-11-01 --out october.csv",
    "a month as CSV",
  ],
  ["export --view fct_usage_project_daily --format json --workspace Research", "one JSON object a line"],
] as const;

export function define(command: Command): void {
  withRange(command.requiredOption("--view <view>", "view, such as fct_usage_workspace_daily"))
    .option("--columns <names>", "only these columns, comma-separated, in this order")
    .option(
      "--where <column=value>",
      "only rows with this value; again for another value or column",
      parseWhere,
    )
    .option("--workspace <id-or-name...>", "only these workspaces")
    .option("--as-of <time>", "instant of a view that ends in _as_of, UTC", parseInstant)
    .addOption(
      new Option("--format <format>", "json writes one object per line")
        .choices(Object.keys(FORMATS))
        .default("csv"),
    )
    .addOption(bomOption({ format: "csv" }))
    .option("--no-formula-guard", "do not change CSV cells that a spreadsheet would run as a formula")
    .option("--out <file>", "file, written completely or not at all; default: standard output")
    .action(inSession(run));
}

async function run(session: Session, options: ExportOptions): Promise<undefined> {
  await write(session, options).catch((error) => {
    if (!(error instanceof ReaderLeftError)) throw error;
  });
}

async function write(session: Session, options: ExportOptions): Promise<undefined> {
  const { output, signal } = session;
  refuseForm(options, output.json);
  const store = await session.store();
  const selection = await selectionOf(store.db, options);
  if (options.format === "parquet" && options.out === undefined && process.stdout.isTTY) {
    throw new UsageError({
      code: "export_to_terminal",
      message: "Parquet is binary and cannot be shown on a terminal.",
      next: "Write the export to a file with --out, or pipe it to a program.",
    });
  }
  const startedAt = performance.now();
  const target =
    options.out === undefined ? openStdoutTarget(process.stdout) : await openFileTarget(options.out);
  const wanted = { ...selection, store, signal };
  let bytes = 0;
  const writeAll = async (update: Update) => {
    const writeCounted = async (piece: Uint8Array) => {
      // A query that fails at once writes nothing, not even the mark.
      const isFirst = options.bom === true && bytes === 0;
      const chunk = isFirst ? Buffer.concat([Buffer.from(BYTE_ORDER_MARK), piece]) : piece;
      await target.write(chunk);
      bytes += chunk.length;
      update({ done: Math.floor(bytes / 1e6) });
    };
    const written = await FORMATS[options.format](wanted, { ...target, write: writeCounted }, options);
    await target.commit();
    return written;
  };
  const { name } = selection.view;
  const rows = await output.progress({ label: name, unit: "MB" }, writeAll).finally(() => target.abandon());
  const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
  output.note(`${count(rows)} rows of ${name} in ${seconds} s.`);
  if (rows === 0) output.note(nothingOf(name, options));
  if (options.out === undefined || !output.json) return;
  output.data({ view: name, rows, bytes, seconds, file: options.out }, () => "");
}

function nothingOf(name: string, { from, to, where, workspace }: ExportOptions): string {
  const isWhole = from === undefined && to === undefined;
  if (where !== undefined || workspace !== undefined)
    return `No row${isWhole ? "" : " in that range"} has these values.`;
  if (isWhole) return `${name} is empty.`;
  return "There are no rows in that range. `usage-etl coverage` shows what is loaded.";
}

function parseWhere(text: string, before: readonly WhereOption[] = []): readonly WhereOption[] {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It is not COLUMN=VALUE, such as group_by=project.");
  // An unset shell variable gives no value, and would select other rows.
  if (at === text.length - 1) throw new InvalidArgumentError("It has no value after the =.");
  return [...before, [text.slice(0, at), text.slice(at + 1)]];
}

function refuseForm({ out, format, bom }: ExportOptions, json: boolean): void {
  if (bom && format !== "csv")
    throw new InvalidArgumentError(`--bom is for CSV, and the format is ${format}.`);
  // With `--json`, stdout has only JSON.
  if (!json || out !== undefined || format === "json") return;
  throw new UsageError({
    code: "export_not_json",
    message: `With --json, ${format === "csv" ? "CSV" : "Parquet"} rows are not printed.`,
    next: "Use --format json to print one object a line, or name a file with --out to print a summary.",
  });
}
