import { createHash } from "node:crypto";
import PQueue from "p-queue";
import type pg from "pg";
import { EtlError } from "../../errors.ts";
import { onReadingConnection, type ReadingAccess } from "../../store/db/reading-connection.ts";
import {
  type Dataset,
  daysOfSource,
  lockFiles,
  type RowsOfDay,
  readDays,
  rowsByDay,
} from "../../store/report/day-rows.ts";
import { keyOf, listViews } from "../../store/report/views.ts";
import type { Place, PlaceFile } from "../../warehouse/place.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import { datasetsOf } from "./datasets.ts";
import { FORMAT, type Manifest, type ManifestFile, readManifest, writeManifest } from "./manifest.ts";

const ENDING_AT_ONCE = 8;

interface Wanted extends ReadingAccess {
  /** Its slug. */
  readonly source: string;
  readonly place: Place;
  /** Names of views; empty: the daily facts and their dimensions. */
  readonly views: readonly string[];
  /** How long files of earlier sets stay. */
  readonly keepMs: number;
  readonly release: string;
}

export interface FilesWritten {
  /** What Postgres showed at this instant is what the set holds, ISO 8601. */
  readonly asOf: string;
  /** Files of the set. */
  readonly files: number;
  readonly rows: number;
  /** Of them, those that were written now. */
  readonly written: number;
  readonly bytes: number;
  /** Files of earlier sets that were deleted. */
  readonly removed: number;
}

/**
 * Writes the figures of a source as Parquet files, one for each view and day, all as of one instant. Files whose rows are the same as
 * before stay. A file never changes under its name; the manifest, written last and in one step, says which belong together. So
 * whoever reads by a manifest sees one whole set, wherever a writer stopped. Files of earlier sets are deleted `keepMs` after they
 * were replaced.
 *
 * Undefined: another process writes the files of this source. Errors: those of a place, `files_manifest_invalid`,
 * `files_view_unusable`, `files_interrupted`.
 */
export async function writeFiles(
  wanted: Wanted,
  onProgress: OnProgress = () => {},
): Promise<FilesWritten | undefined> {
  const { place, source } = wanted;
  const datasets = datasetsOf(await listViews(wanted.store.db), wanted.views);
  return onReadingConnection(
    { ...wanted, isolation: "REPEATABLE READ", errorOf: interrupted },
    async (client) => {
      if (!(await lockFiles(client, source))) return undefined;
      const days = await daysOfSource(client, source);
      if (days === undefined) throw sourceUnknown(source);
      const before = await readManifest(place, source);
      const there = new Map<string, number>();
      for (const { view } of datasets) {
        for (const [name, bytes] of await place.list(`${view.name}/source_id=${source}`))
          there.set(name, bytes);
      }
      const written: ManifestFile[] = [];
      const sets: Manifest["datasets"] = {};
      let done = 0;
      for (const dataset of datasets) {
        const files: ManifestFile[] = [];
        const known = new Map(before?.datasets[dataset.view.name]?.files.map((file) => [file.path, file]));
        for (const range of dataset.day === undefined ? [undefined] : monthsOf(days)) {
          const found = await rowsByDay(client, dataset, {
            source,
            ...(range === undefined ? {} : { range }),
          });
          const planned = found.map((one) => ({ ...one, path: pathOf(dataset, source, one) }));
          const kept = planned.flatMap(({ path }) => {
            const file = known.get(path);
            return file !== undefined && there.get(path) === file.bytes ? [file] : [];
          });
          const keptPaths = new Set(kept.map(({ path }) => path));
          const changed = planned.filter(({ path }) => !keptPaths.has(path));
          const now = await writeDays(client, wanted, { dataset, changed, asOf: days.asOf });
          files.push(...kept, ...now);
          written.push(...now);
        }
        sets[dataset.view.name] = {
          key: [...keyOf(dataset.view)],
          columns: dataset.columns.map(({ name, type }) => ({ name, type })),
          partitioned_by: ["source_id", ...(dataset.day === undefined ? [] : [dataset.day.name])],
          files: files.sort((a, b) => a.path.localeCompare(b.path)),
        };
        onProgress({ done: ++done, total: datasets.length });
      }
      const { replaced, old } = replacedBy({ sets, there, before, asOf: days.asOf, keepMs: wanted.keepMs });
      // A lost connection has lost the lock too: another process may have written a newer set.
      await client.query("select");
      await writeManifest(place, {
        ...{ format: FORMAT, source_id: source, release: wanted.release, as_of: days.asOf },
        ...{ datasets: sets, replaced },
      });
      for (const path of old) await place.remove(path);
      const all = Object.values(sets).flatMap(({ files }) => files);
      return {
        asOf: days.asOf,
        files: all.length,
        rows: all.reduce((sum, { rows }) => sum + rows, 0),
        written: written.length,
        bytes: written.reduce((sum, { bytes }) => sum + bytes, 0),
        removed: old.length,
      };
    },
  );
}

type PlannedFile = RowsOfDay & { readonly path: string };

/** Named by what it holds, so that a name never stands for other rows. */
function pathOf({ view, columns, day }: Dataset, source: string, rows: RowsOfDay): string {
  const shape = [FORMAT, columns.map(({ name, type }) => [name, type]), rows.rows, rows.digest];
  const name = createHash("sha256").update(JSON.stringify(shape)).digest("hex").slice(0, 32);
  const partition = day === undefined ? "" : `/${day.name}=${rows.day}`;
  return `${view.name}/source_id=${source}${partition}/${name}.parquet`;
}

async function writeDays(
  client: pg.Client,
  { place, source, signal }: Wanted,
  { dataset, changed, asOf }: { dataset: Dataset; changed: readonly PlannedFile[]; asOf: string },
): Promise<ManifestFile[]> {
  if (changed.length === 0) return [];
  // Its library is loaded for files only.
  const { createParquet } = await import("../../warehouse/parquet.ts");
  const files: ManifestFile[] = [];
  // A bucket takes tens of milliseconds for a file, however small.
  const ending = new PQueue({ concurrency: ENDING_AT_ONCE });
  const failures: unknown[] = [];
  const commit = async (file: PlaceFile) => {
    await ending.onSizeLessThan(1);
    if (failures.length > 0) throw failures[0];
    void ending.add(async () => {
      try {
        await file.commit();
      } catch (error) {
        failures.push(error);
        await file.abandon();
      }
    });
  };
  let open:
    | { planned: PlannedFile; file: PlaceFile; rows: ReturnType<typeof createParquet>; facts: Counted }
    | undefined;
  const finish = async () => {
    if (open === undefined) return;
    const { planned, file, rows, facts } = open;
    const { path, day, digest, sums, isFinal, coverage } = planned;
    // Both statements see one instant.
    if ((await rows.end()) !== planned.rows)
      throw interrupted(new Error(`${path} has other rows than were counted`));
    // Handed over. Until then it is abandoned here if something fails.
    await commit(file);
    open = undefined;
    files.push({
      ...{ path, usage_date: day, rows: planned.rows, bytes: facts.bytes, sha256: facts.hash.digest("hex") },
      ...{ digest, sums, is_final: isFinal, coverage, written_at: asOf },
    });
  };
  try {
    const days = changed.map(({ day }) => day);
    await readDays(client, dataset, { source, days, signal }, async (day, rows) => {
      if (open === undefined || open.planned.day !== day) {
        await finish();
        const planned = changed.find((one) => one.day === day);
        if (planned === undefined) throw interrupted(new Error(`rows of ${day} were not asked for`));
        const file = await place.create(planned.path);
        const facts: Counted = { bytes: 0, hash: createHash("sha256") };
        const write = async (chunk: Uint8Array) => {
          facts.bytes += chunk.length;
          facts.hash.update(chunk);
          await file.write(chunk);
        };
        open = { planned, file, facts, rows: createParquet(dataset.columns, { write }) };
      }
      await open.rows.add(rows);
    });
    await finish();
    await ending.onIdle();
    if (failures.length > 0) throw failures[0];
    return files;
  } finally {
    await open?.file.abandon();
    await ending.onIdle();
  }
}

interface Counted {
  bytes: number;
  readonly hash: ReturnType<typeof createHash>;
}

/** Our files that are not of the new set, since when, and which of them were replaced long enough ago. */
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
  // A view that is no longer written is not listed.
  const earlier = Object.values(before?.datasets ?? {}).flatMap(({ files }) => files.map(({ path }) => path));
  const paths = [...new Set([...there.keys(), ...since.keys(), ...earlier])]
    .filter((path) => OURS.test(path) && !current.has(path))
    .sort();
  const all = paths.map((path) => ({ path, since: since.get(path) ?? asOf }));
  const isOld = (one: { since: string }) => Date.parse(one.since) <= Date.parse(asOf) - keepMs;
  return { replaced: all.filter((one) => !isOld(one)), old: all.filter(isOld).map(({ path }) => path) };
}

const OURS = /^[a-z0-9_]+\/source_id=[^/]+\/(?:usage_date=[0-9-]{10}\/)?[0-9a-f]{32}\.parquet$/;

/** Calendar months that cover the days, half-open. One statement reads a month, so that none runs for long. */
function monthsOf({ from, to }: { from: string; to: string }): { from: string; to: string }[] {
  const months: { from: string; to: string }[] = [];
  for (let start = `${from.slice(0, 7)}-01`; start < to; ) {
    const [year, month] = [Number(start.slice(0, 4)), Number(start.slice(5, 7))];
    const next = new Date(Date.UTC(year, month, 1)).toISOString().slice(0, 10);
    months.push({ from: start, to: next });
    start = next;
  }
  return months;
}

function interrupted(cause: unknown): EtlError {
  return new EtlError({
    code: "files_interrupted",
    message: `Writing the files was interrupted: ${cause instanceof Error ? cause.message : String(cause)}. The last manifest stays true.`,
    next: "Nothing: the next run writes what is missing.",
    retryable: true,
    cause,
  });
}

function sourceUnknown(source: string): EtlError {
  return new EtlError({
    code: "source_unknown",
    message: `There is no source ${source} in this database.`,
    next: "`usage-etl source list` shows those that are stored.",
  });
}
