import type pg from "pg";
import { EtlError, UsageError } from "../../core/base/errors.ts";
import { monthsOfDays } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { asRun } from "../../core/pipeline/as-run.ts";
import type { OnProgress } from "../../core/pipeline/extract/sequentially.ts";
import type { Store } from "../../core/store/db/database.ts";
import { keyOf, listViews, type View } from "../../core/store/db/views.ts";
import type { RunEnd } from "../../core/store/work/runs.ts";
import { nameOfDatabase } from "./database-name.store.ts";
import {
  FORMAT,
  foreignFiles,
  isForeign,
  type Manifest,
  type ManifestFile,
  readManifest,
  writeManifest,
} from "./manifest.ts";
import {
  countRows,
  type Dataset,
  daysOfSource,
  lockFiles,
  NO_ROWS,
  orderOf,
  type Range,
} from "./month-rows.store.ts";
import { openPlace, type Place } from "./place.ts";
import { onReadingConnection, type ReadingAccess } from "./reading-connection.store.ts";
import { interrupted, type PlannedFile, pathOf, sourceOfPath, writeMonths } from "./write-months.ts";

export interface FilesSettings {
  readonly address: string;
  readonly views: readonly string[];
  readonly source: string;
  readonly release: string;
  /** True: replaces a set of another database. Default: refuse. */
  readonly takeOver?: boolean;
}

/** Files of earlier sets stay for a week, longer than any query of a warehouse. */
const KEEP_MS = 7 * DAY_MS;

interface Wanted extends ReadingAccess, Omit<FilesSettings, "address"> {
  readonly place: Place;
  readonly keepMs?: number;
}

export interface FilesWritten {
  readonly asOf: string;
  readonly files: number;
  readonly rows: number;
  readonly written: number;
  readonly bytes: number;
  readonly removed: number;
}

/**
 * Writes the figures of a source as Parquet files, one for each view and month, as of one instant. A file never changes under its
 * name. The manifest is written last and in one step, so a reader always sees one whole set. Files of earlier sets are deleted
 * `keepMs` after they were replaced. Returns undefined if another process writes them. Errors: those of a place,
 * `files_manifest_invalid`, `files_of_another_database`, `files_view_unusable`, `files_interrupted`.
 */
export async function writeFiles(
  wanted: Wanted,
  onProgress: OnProgress = () => {},
): Promise<FilesWritten | undefined> {
  const { place, source } = wanted;
  const datasets = datasetsOf(await listViews(wanted.store.db), wanted.views);
  const database = await nameOfDatabase(wanted.store.db);
  return onReadingConnection(
    { ...wanted, isolation: "REPEATABLE READ", errorOf: interrupted },
    async (client) => {
      if (!(await lockFiles(client, source))) return undefined;
      const days = await daysOfSource(client, source);
      if (days === undefined) throw sourceUnknown(source);
      const { asOf } = days;
      const before = await readManifest(place, source);
      if (isForeign(before, database) && wanted.takeOver !== true) throw foreignFiles(place, before);
      const there = await filesThere(place, source, datasets);
      const written: ManifestFile[] = [];
      const sets: Manifest["datasets"] = {};
      for (const [at, dataset] of datasets.entries()) {
        const { kept, added } = await writeDataset(client, wanted, { dataset, days, before, there });
        written.push(...added);
        sets[dataset.view.name] = {
          key: [...keyOf(dataset.view)],
          columns: dataset.columns.map(({ name, type, precision, scale }) => ({
            name,
            type,
            precision,
            scale,
          })),
          sorted_by: orderOf(dataset),
          files: [...kept, ...added].sort((a, b) => a.path.localeCompare(b.path)),
        };
        onProgress({ done: at + 1, total: datasets.length });
      }
      const { replaced, old } = replacedBy({ sets, there, before, asOf, keepMs: wanted.keepMs ?? KEEP_MS });
      const manifest: Manifest = {
        format: FORMAT,
        source_id: source,
        database,
        release: wanted.release,
        as_of: asOf,
        datasets: sets,
        replaced,
      };
      // If the connection was lost, so was the lock: another process may have written a newer set.
      const mustHoldLock = async () => void (await client.query("select"));
      await writeManifest(place, manifest, async () => {
        const now = await readManifest(place, source);
        if (now?.as_of !== before?.as_of) {
          if (isForeign(now, database)) throw foreignFiles(place, now);
          throw interrupted(new Error("another process has written a newer set"));
        }
        await mustHoldLock();
      });
      for (const path of old) {
        await mustHoldLock();
        await place.remove(path);
      }
      const all = Object.values(sets).flatMap(({ files }) => files);
      return {
        asOf,
        files: all.length,
        rows: all.reduce((sum, { rows }) => sum + rows, 0),
        written: written.length,
        bytes: written.reduce((sum, { bytes }) => sum + bytes, 0),
        removed: old.length,
      };
    },
  );
}

async function filesThere(
  place: Place,
  source: string,
  datasets: readonly Dataset[],
): Promise<Map<string, number>> {
  const there = new Map<string, number>();
  for (const { view } of datasets) {
    for (const [path, bytes] of await place.list(`${view.name}/${source}`)) there.set(path, bytes);
  }
  return there;
}

async function writeDataset(
  client: pg.Client,
  wanted: Wanted,
  given: {
    dataset: Dataset;
    days: { from: string; to: string; asOf: string };
    before: Manifest | undefined;
    there: ReadonlyMap<string, number>;
  },
): Promise<{ kept: ManifestFile[]; added: ManifestFile[] }> {
  const { dataset, days, before, there } = given;
  const { source } = wanted;
  const known = new Map(before?.datasets[dataset.view.name]?.files.map((file) => [file.path, file]));
  const planned: PlannedFile[] = [];
  const plan = (file: Omit<PlannedFile, "path">) =>
    void planned.push({ ...file, path: pathOf(dataset, source, file) });
  // One statement reads a month, so that none runs for long.
  for (const { month, range } of dataset.day === undefined ? [{ month: null, range: {} }] : monthsOf(days)) {
    const found = await countRows(client, dataset, { source, range });
    if (found.rows > 0) plan({ ...found, month, range });
  }
  // Readers learn the columns and types of a view without rows from a file without rows.
  if (planned.length === 0) plan({ ...NO_ROWS, month: null, range: {} });
  const kept = planned.flatMap(({ path }) => {
    const file = known.get(path);
    return file !== undefined && there.get(path) === file.bytes ? file : [];
  });
  const keptPaths = new Set(kept.map(({ path }) => path));
  const changed = planned.filter(({ path }) => !keptPaths.has(path));
  return { kept, added: await writeMonths(client, wanted, { dataset, changed, asOf: days.asOf }) };
}

/** The first and the last month are open, so that no row is left out. */
function monthsOf(days: { from: string; to: string }): { month: string; range: Range }[] {
  const months = monthsOfDays(days);
  return months.map(({ from, to }, at) => ({
    month: from.slice(0, 7),
    range: { ...(at > 0 && { from }), ...(at < months.length - 1 && { to }) },
  }));
}

function replacedBy(given: {
  sets: Manifest["datasets"];
  there: ReadonlyMap<string, number>;
  before: Manifest | undefined;
  asOf: string;
  keepMs: number;
}) {
  const { sets, there, before, asOf, keepMs } = given;
  const current = new Set(Object.values(sets).flatMap(({ files }) => files.map(({ path }) => path)));
  const since = new Map(before?.replaced.map((one) => [one.path, one.since]));
  // `there` lacks the files of views that are no longer written.
  const earlier = Object.values(before?.datasets ?? {}).flatMap(({ files }) => files.map(({ path }) => path));
  const paths = [...new Set([...there.keys(), ...since.keys(), ...earlier])]
    .filter((path) => sourceOfPath(path) !== undefined && !current.has(path))
    .sort();
  const all = paths.map((path) => ({ path, since: since.get(path) ?? asOf }));
  const isOld = (one: { since: string }) => Date.parse(one.since) <= Date.parse(asOf) - keepMs;
  return { replaced: all.filter((one) => !isOld(one)), old: all.filter(isOld).map(({ path }) => path) };
}

function sourceUnknown(source: string): EtlError {
  return new EtlError({
    code: "source_unknown",
    message: `There is no source ${source} in this database.`,
    next: "`usage-etl source list` shows those that are stored.",
  });
}

const ENDED_ELSEWHERE: RunEnd = {
  outcome: "skipped",
  code: "files_being_written",
  message: "Another process is writing the files of this source.",
};

export function writeSourceFiles(
  { store, sourceId }: { store: Store; sourceId: number },
  { address, ...settings }: FilesSettings,
  signal: AbortSignal,
  onProgress?: OnProgress,
): Promise<FilesWritten | undefined> {
  return asRun(
    { store, sourceId },
    "files",
    async () => {
      const place = await openPlace(address, { signal });
      return writeFiles({ store, signal, place, ...settings }, onProgress);
    },
    (written) => (written === undefined ? ENDED_ELSEWHERE : { outcome: "done" }),
  );
}

/** These times change every night for weeks while the figures stay. The files still have `is_reconciled`. */
const TIMES_OF_WORK = ["fetched_at", "proved_at", "reconciled_at", "totals_matched_at", "sum_confirmed_at"];
/** With the daily facts, these answer the questions of docs/bi.md that are not about hours, later changes or closes. */
const OTHER_FACTS = [
  "dim_workspace",
  "dim_project",
  "dim_user",
  "dim_api_key",
  "dim_resource",
  "dim_tag",
  "fct_usage_monthly",
  "usage_bill_monthly",
  "usage_coverage_daily",
  "usage_unattributed_daily",
  "usage_unpriced_daily",
  "usage_upgrade_project_monthly",
];

/** The named views, or by default all daily facts with their dimensions, and `OTHER_FACTS`. */
function datasetsOf(views: readonly View[], named: readonly string[]): Dataset[] {
  const isDefault = ({ name }: View) => /^fct_.*_daily$/.test(name) || OTHER_FACTS.includes(name);
  if (named.length === 0) return views.filter(isDefault).flatMap((view) => datasetOf(view) ?? []);
  return named.map((name) => {
    const view = views.find((one) => one.name === name);
    const dataset = view && datasetOf(view);
    if (dataset !== undefined) return dataset;
    throw new UsageError({
      code: "files_view_unusable",
      message:
        view === undefined
          ? `USAGE_EXPORT_VIEWS names ${JSON.stringify(name)}, which is not a view of this database.`
          : `USAGE_EXPORT_VIEWS names ${name}, which has no source, or is by hour or period.`,
      next: `Name views by day or month and dimensions, such as ${views
        .filter(isDefault)
        .slice(0, 3)
        .map((one) => one.name)
        .join(", ")}. Use \`usage-etl export\` for other views.`,
    });
  });
}

/** Undefined: no source, or a time that is neither day nor month. One file has all months: a question for one reads all of them. */
function datasetOf(view: View): Dataset | undefined {
  const column = (name: string) => view.columns.find((one) => one.name === name);
  const day = column("usage_date");
  const isByTime = ["usage_hour", "period_start"].some((name) => column(name) !== undefined);
  if (column("source_id") === undefined || (day === undefined && isByTime)) return undefined;
  return { view, columns: view.columns.filter(({ name }) => !TIMES_OF_WORK.includes(name)), day };
}
