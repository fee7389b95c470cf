import { Argument, type Command } from "commander";
import { UsageError } from "../../core/base/errors.ts";
import { releaseOf } from "../../core/base/root.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import { listViews } from "../../core/store/db/views.ts";
import { EXIT } from "../../terminal/exit.ts";
import { count, linesOf, table } from "../../terminal/output.ts";
import { inSession, type Session } from "../../terminal/session.ts";
import { storedSources } from "../catalog/named.ts";
import { nameOfDatabase } from "./database-name.store.ts";
import { ENGINES, type Engine, viewsFor } from "./engine-views.ts";
import { type CheckedFiles, checkFiles, type Manifest, manifestName, readManifest } from "./manifest.ts";
import { openPlace, type Place } from "./place.ts";
import { type UnknownFiles, unknownFiles } from "./source-files.ts";
import { type FilesWritten, writeSourceFiles } from "./write-files.ts";

interface FilesOptions {
  readonly to?: string;
  readonly source?: string;
  readonly takeOver?: boolean;
}

const MOST_LISTED = 20;

export const examples = [
  ["files write --to s3://bucket/usage", "Parquet files of every day that changed"],
  ["files check", "compare them with the manifest"],
  ["files views duckdb > views.sql", "the same views, in DuckDB"],
] as const;

export function define(files: Command): void {
  withPlace(files.command("write"))
    .description("write the days that changed, then the manifest")
    .option("--take-over", "replace the files of another database, which this one has replaced")
    .action(inSession(write));
  withPlace(files.command("check"))
    .description("compare every file with the manifest; exit code 4 if one is missing or differs")
    .action(inSession(check));
  withPlace(files.command("views"))
    .description("print SQL that shows the files as views, with the names and comments of Postgres")
    .addArgument(new Argument("<engine>", "what reads the files").choices([...ENGINES]))
    .action(inSession(views));
}

function withPlace(command: Command): Command {
  return command
    .option("--to <folder-or-s3>", "folder or s3://bucket/prefix; default: USAGE_EXPORT_DIR")
    .option("--source <slug>", "only this source");
}

type Wrote = { readonly source: string } & (FilesWritten | { readonly skipped: string });

async function write(session: Session, options: FilesOptions): Promise<number> {
  const { config, output, signal } = session;
  const address = addressOf(session, options);
  const store = await session.migratedStore();
  const wrote: Wrote[] = [];
  for (const { source, sourceId } of await sourcesOf(session, options)) {
    const settings = {
      views: config.files.views,
      source,
      address,
      release: releaseOf(),
      takeOver: options.takeOver ?? false,
    };
    const written = await output.progress({ label: `files of ${source}`, unit: "views" }, (update) =>
      writeSourceFiles({ store, sourceId }, settings, signal, update),
    );
    wrote.push({ source, ...(written ?? { skipped: "another process writes these files" }) });
  }
  output.data(wrote, () =>
    table(
      ["source", "as of", "files", "rows", "written now", "MB", "removed"],
      wrote.map((one) =>
        "skipped" in one
          ? [one.source, one.skipped]
          : [
              ...[one.source, one.asOf, one.files, one.rows, one.written],
              ...[(one.bytes / 1e6).toFixed(1), one.removed],
            ],
      ),
    ),
  );
  return wrote.some((one) => "skipped" in one) ? EXIT.partlyFailed : EXIT.done;
}

async function check(session: Session, options: FilesOptions): Promise<number> {
  const { output, signal } = session;
  const place = await openPlace(addressOf(session, options), { signal });
  const checked: ({ source: string; asOf: string } & CheckedFiles)[] = [];
  const { sources, unknown } = await sourcesThere(session, place, options);
  for (const source of sources) {
    const manifest = await manifestOf(place, source);
    const found = await output.progress({ label: `files of ${source}`, unit: "files" }, (onProgress) =>
      checkFiles(place, manifest, { signal, onProgress }),
    );
    checked.push({ source, asOf: manifest.as_of, ...found });
  }
  output.data([...checked, ...unknown.map((one) => ({ ...one, isKnown: false }))], () =>
    linesOf([
      ...checked.flatMap(({ source, asOf, files, rows, wrong }) => {
        const result =
          wrong.length === 0 ? "all match the manifest." : `${wrong.length} differ from the manifest:`;
        return [
          `${source}: ${files} files with ${count(rows)} rows, as of ${asOf}: ${result}`,
          ...wrong.slice(0, MOST_LISTED).map(({ path, problem }) => `  ${problem} ${path}`),
          wrong.length > MOST_LISTED && `  and ${wrong.length - MOST_LISTED} more`,
        ];
      }),
      ...unknown.map((one) => describeUnknown(place, one)),
    ]),
  );
  return unknown.length > 0 || checked.some(({ wrong }) => wrong.length > 0) ? EXIT.mismatch : EXIT.done;
}

async function views(session: Session, options: FilesOptions, engine = ""): Promise<undefined> {
  const { output, signal } = session;
  const place = await openPlace(addressOf(session, options), { signal });
  const manifests: Manifest[] = [];
  const { sources, unknown } = await sourcesThere(session, place, options);
  for (const source of sources) manifests.push(await manifestOf(place, source));
  for (const one of unknown) output.note(describeUnknown(place, one));
  if (sources.length === 0) storedSources([], options.source);
  const all = await listViews((await session.store()).db);
  const text = viewsFor(engine as Engine, { address: place.address, manifests, views: all });
  output.data({ text }, () => text);
}

async function manifestOf(place: Place, source: string): Promise<Manifest> {
  const manifest = await readManifest(place, source);
  if (manifest !== undefined) return manifest;
  throw new UsageError({
    code: "files_manifest_missing",
    message: `${place.address} has no ${manifestName(source)}.`,
    next: "Run `usage-etl files write` first.",
  });
}

function addressOf({ config }: Session, { to }: FilesOptions): string {
  const address = to ?? config.files.address;
  if (address !== undefined) return address;
  throw new UsageError({
    code: "files_place_missing",
    message: "USAGE_EXPORT_DIR is not set.",
    next: "Set USAGE_EXPORT_DIR to a folder or to s3://bucket/prefix, or name a folder: `usage-etl files write --to ./files`",
  });
}

/** Without `--source`, also the sources that only have files. */
async function sourcesThere(session: Session, place: Place, { source }: FilesOptions) {
  const { db } = await session.migratedStore();
  const stored = (await listSources(db)).map((one) => one.source);
  const unknown =
    source === undefined ? await unknownFiles(place, { stored, database: await nameOfDatabase(db) }) : [];
  const isOnlyUnknown = stored.length === 0 && unknown.length > 0;
  const named = isOnlyUnknown
    ? []
    : storedSources(
        stored.map((slug) => ({ source: slug })),
        source,
      );
  return { sources: named.map((one) => one.source), unknown };
}

function describeUnknown({ address }: Place, { source, files }: UnknownFiles): string {
  return `${source}: ${count(files)} files of a source that the database does not know. To remove them: \`USAGE_EXPORT_DIR=${address} usage-etl source forget ${source}\``;
}

async function sourcesOf(session: Session, { source }: FilesOptions) {
  return storedSources(await listSources((await session.migratedStore()).db), source);
}
