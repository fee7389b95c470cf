import { type Command, Option } from "commander";
import { requireDatabaseUrl } from "../../config/config.ts";
import { nearest } from "../../config/spelling.ts";
import { UsageError } from "../../errors.ts";
import { readView } from "../../store/report/view-rows.ts";
import { listViews, timeColumnOf, type View, type ViewColumn } from "../../store/report/views.ts";
import { csvFormat } from "../export/csv.ts";
import type { Format } from "../export/format.ts";
import { jsonFormat } from "../export/json.ts";
import { parquetFormat } from "../export/parquet.ts";
import { openFileTarget, openStdoutTarget } from "../export/target.ts";
import type { Update } from "../report/progress.ts";
import { type RangeOptions, rangeOf, withRange } from "../session/options.ts";
import { inSession, type Session } from "../session/session.ts";

const FORMATS = { csv: csvFormat, json: jsonFormat, parquet: parquetFormat } satisfies Record<string, Format>;

interface ExportOptions extends RangeOptions {
  readonly view: string;
  readonly columns?: string;
  readonly format: keyof typeof FORMATS;
  readonly out?: string;
}

export function define(command: Command): void {
  withRange(
    command.requiredOption("--view <view>", "view of schema reporting, such as fct_usage_workspace_daily"),
  )
    .option("--columns <names>", "only these columns, comma-separated, in this order")
    .addOption(
      new Option("--format <format>", "json writes one object per line")
        .choices(Object.keys(FORMATS))
        .default("csv"),
    )
    .option("--out <file>", "file, written completely or not at all; default: standard output")
    .action(inSession(run));
}

async function run(session: Session, options: ExportOptions): Promise<undefined> {
  const { output, signal } = session;
  refuseRowsAsDocument(options, output.json);
  const store = await session.migratedStore();
  const view = viewOf(await listViews(store.db), options.view);
  const columns = columnsOf(view, options.columns);
  checkRange(view, options);
  if (options.format === "parquet" && options.out === undefined && process.stdout.isTTY) {
    throw new UsageError({
      code: "export_to_terminal",
      message: "Parquet is binary and cannot be shown on a terminal.",
      next: "Write it to a file with --out, or pipe it.",
    });
  }
  const startedAt = performance.now();
  const target =
    options.out === undefined ? openStdoutTarget(process.stdout) : await openFileTarget(options.out);
  let bytes = 0;
  const count = async (chunk: Uint8Array) => {
    await target.write(chunk);
    bytes += chunk.length;
  };
  const writer = FORMATS[options.format](columns, { ...target, write: count });
  const names = columns.map(({ name }) => name);
  const url = requireDatabaseUrl(session.config);
  let rows = 0;
  const write = async (update: Update) => {
    for await (const batch of readView({ store, url, view, columns: names, range: options, signal })) {
      await writer.write(batch);
      rows += batch.length;
      update({ done: rows });
    }
    await writer.end();
    await target.commit();
  };
  await output.progress({ label: view.name, unit: "rows" }, write).finally(() => target.abandon());
  const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
  output.note(`${rows.toLocaleString("en-US")} rows of ${view.name} in ${seconds} s.`);
  if (rows === 0) {
    const isWhole = options.from === undefined && options.to === undefined;
    output.note(
      isWhole
        ? `${view.name} is empty.`
        : "There are no rows in that range. `usage-etl coverage` shows what is loaded.",
    );
  }
  if (options.out === undefined || !output.json) return;
  output.data({ view: view.name, rows, bytes, seconds, file: options.out }, () => "");
}

/** `--json` promises JSON on stdout. */
function refuseRowsAsDocument({ out, format }: ExportOptions, json: boolean): void {
  if (!json || out !== undefined || format === "json") return;
  throw new UsageError({
    code: "export_not_json",
    message: `With --json, ${format === "csv" ? "CSV" : "Parquet"} rows are not printed.`,
    next: "Use --format json for one object a line, or name a file with --out: --json then says what was written.",
  });
}

function viewOf(views: readonly View[], asked: string): View {
  const name = asked.replace(/^reporting\./, "");
  const found = views.find((view) => view.name === name);
  if (found !== undefined) return found;
  throw unknown({ code: "view_unknown", what: "view", name, known: views.map((view) => view.name) });
}

function columnsOf(view: View, asked: string | undefined): readonly ViewColumn[] {
  if (asked === undefined) return view.columns;
  const names = asked.split(",").map((text) => text.trim());
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) {
    throw new UsageError({
      code: "column_twice",
      message: `${JSON.stringify(twice)} is named twice.`,
      next: "Name each column once in --columns.",
    });
  }
  return names.map((name) => {
    const found = view.columns.find((column) => column.name === name);
    if (found !== undefined) return found;
    const known = view.columns.map((column) => column.name);
    throw unknown({ code: "column_unknown", what: `column of ${view.name}`, name, known });
  });
}

function unknown(given: { code: string; what: string; name: string; known: readonly string[] }): UsageError {
  const near = nearest(given.name, given.known);
  return new UsageError({
    code: given.code,
    message: `${JSON.stringify(given.name)} is not a ${given.what}.${near === undefined ? "" : ` Did you mean ${near}?`}`,
    next: `Choose one of: ${given.known.join(", ")}.`,
  });
}

function checkRange(view: View, { from, to }: RangeOptions): void {
  if (from === undefined && to === undefined) return;
  if (timeColumnOf(view) === undefined) {
    throw new UsageError({
      code: "view_without_time",
      message: `${view.name} has no time column for --from and --to.`,
      next: "Export the view without them.",
    });
  }
  if (from !== undefined && to !== undefined) rangeOf({ from, to });
}
