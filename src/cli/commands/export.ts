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
import { openFileTarget, openStdoutTarget, type Target } from "../export/target.ts";
import { type RangeOptions, rangeOf, withRange } from "../session/options.ts";
import { inSession, requireSchema, type Session } from "../session/session.ts";

const FORMATS = { csv: csvFormat, json: jsonFormat, parquet: parquetFormat } satisfies Record<string, Format>;

interface ExportOptions extends RangeOptions {
  readonly view: string;
  readonly columns?: string;
  readonly format: keyof typeof FORMATS;
  readonly out?: string;
}

export function addExportCommand(program: Command): void {
  withRange(
    program
      .command("export")
      .description("the rows of a view of the schema reporting as a file; constant memory, however many")
      .requiredOption("--view <view>", "such as fct_usage_workspace_daily"),
  )
    .option("--columns <names>", "only these, comma-separated, in this order")
    .addOption(
      new Option("--format <format>", "json is one object a line")
        .choices(Object.keys(FORMATS))
        .default("csv"),
    )
    .option("--out <file>", "written whole or not at all; without it, standard output")
    .action(inSession(run));
}

async function run({ output, signal, ...session }: Session, options: ExportOptions): Promise<undefined> {
  const store = await session.store();
  await requireSchema(store);
  const view = viewOf(await listViews(store.db), options.view);
  const columns = columnsOf(view, options.columns);
  const range = checkedRange(view, options);
  if (options.format === "parquet" && options.out === undefined && process.stdout.isTTY) {
    throw new UsageError({
      code: "export_to_terminal",
      message: "Parquet is no text for a terminal.",
      next: "Give a file with --out, or pipe it.",
    });
  }
  const startedAt = performance.now();
  const progress = output.counter(`rows of ${view.name}`);
  const target =
    options.out === undefined ? openStdoutTarget(process.stdout) : await openFileTarget(options.out);
  const counted = counting(target);
  let rows = 0;
  try {
    const writer = FORMATS[options.format](columns, counted);
    const names = columns.map(({ name }) => name);
    const url = requireDatabaseUrl(session.config);
    for await (const batch of readView({ store, url, view, columns: names, range, signal })) {
      await writer.write(batch);
      rows += batch.length;
      progress.update(rows);
    }
    await writer.end();
    await target.commit();
  } finally {
    progress.stop();
    await target.abandon();
  }
  const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
  const said = { view: view.name, rows, bytes: counted.bytes(), seconds };
  output.note(`${rows.toLocaleString("en-US")} rows of ${view.name} in ${seconds} s.`);
  if (rows === 0) {
    const isWhole = options.from === undefined && options.to === undefined;
    output.note(
      isWhole
        ? `${view.name} is empty.`
        : "Nothing is there in that range; `usage-etl coverage` says what is loaded.",
    );
  }
  if (options.out !== undefined && output.json) output.data({ ...said, file: options.out }, () => "");
}

function counting(target: Target): Target & { bytes(): number } {
  let bytes = 0;
  return {
    ...target,
    write: async (chunk) => {
      await target.write(chunk);
      bytes += chunk.length;
    },
    bytes: () => bytes,
  };
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
    message: `${JSON.stringify(given.name)} is no ${given.what}.${near === undefined ? "" : ` Did you mean ${near}?`}`,
    next: `There are: ${given.known.join(", ")}.`,
  });
}

function checkedRange(view: View, { from, to }: ExportOptions): RangeOptions {
  if (from === undefined && to === undefined) return {};
  if (timeColumnOf(view) === undefined) {
    throw new UsageError({
      code: "view_without_time",
      message: `${view.name} has no column of time that --from and --to could cut.`,
      next: "Leave them out to export all of it.",
    });
  }
  if (from !== undefined && to !== undefined) rangeOf({ from, to });
  return { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
}
