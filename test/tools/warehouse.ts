import { readdir, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import type { Manifest } from "../../src/pipeline/export/manifest.ts";
import type { Place } from "../../src/warehouse/place.ts";
import { connectPlain } from "../support/reporting.ts";
import { inSchema } from "../support/views.ts";

/** Rows as texts, null as null, in an order of their own. */
type Rows = (string | null)[][];

/** Every dataset of a manifest as DuckDB reads it from its files in a folder, by the query of docs/warehouse.md. */
export async function readWithDuckDb(folder: string, manifest: Manifest): Promise<Map<string, Rows>> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  try {
    await connection.run("SET TimeZone = 'UTC'");
    const found = new Map<string, Rows>();
    for (const [name, { files, columns, partitioned_by }] of Object.entries(manifest.datasets)) {
      const wanted = [...partitioned_by, ...columns.map((column) => column.name)];
      if (files.length === 0) {
        found.set(name, []);
        continue;
      }
      await connection.run(
        `SET VARIABLE files = (
           SELECT list('${folder}/' || file.path)
           FROM (SELECT unnest(datasets.${name}.files) AS file FROM read_json('${folder}/manifest/${manifest.source_id}.json'))
         )`,
      );
      const result = await connection.runAndReadAll(
        `SELECT ${wanted.map((column) => `"${column}"::VARCHAR`).join(", ")}
         FROM read_parquet(getvariable('files'), hive_partitioning = true)`,
      );
      found.set(name, sorted(result.getRows() as Rows));
    }
    return found;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** The same datasets as the views show them now. */
export async function readViews(url: string, manifest: Manifest): Promise<Map<string, Rows>> {
  const client = await connectPlain(url);
  const found = new Map<string, Rows>();
  for (const [name, { columns, partitioned_by }] of Object.entries(manifest.datasets)) {
    const wanted = [...partitioned_by, ...columns.map((column) => column.name)];
    const { rows } = await client.query<(string | null)[]>({
      text: `SELECT ${wanted.map((column) => `"${column}"::text`).join(", ")} FROM ${inSchema(name)} WHERE source_id = $1`,
      values: [manifest.source_id],
      rowMode: "array",
    });
    found.set(name, sorted(rows));
  }
  return found;
}

function sorted(rows: Rows): Rows {
  const keyed = rows.map((row) => [JSON.stringify(row), row] as const);
  return keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, row]) => row);
}

/** Files below a folder that this process holds open. Linux alone says so. */
export async function openFilesOf(folder: string): Promise<string[]> {
  if (process.platform !== "linux") return [];
  const links = (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
  return (await Promise.all(links)).filter((path) => path.startsWith(`${folder}/`));
}

/** A place whose process is killed before its `at`th change: nothing after it happens. It is the folder that has this address. */
export function killedBefore(place: Place, at: number): Place {
  let changes = 0;
  const live = () => {
    if (++changes > at) throw new Error("killed");
  };
  return {
    ...place,
    async create(name) {
      live();
      const file = await place.create(name);
      return {
        async write(chunk) {
          live();
          await file.write(chunk);
        },
        async commit() {
          live();
          await file.commit();
        },
        // Linux closes the file of a killed process. Nobody deletes it.
        async abandon() {
          await file.abandon();
          await writeFile(`${join(place.address, name)}.0badc0de.part`, "cut");
        },
      };
    },
    async remove(name) {
      live();
      await place.remove(name);
    },
  };
}

/** A place where something happens right before the manifest is created, or when it has been written but is not in its place. */
export function atManifest(place: Place, moment: "create" | "write", happen: () => Promise<void>): Place {
  return {
    ...place,
    async create(name) {
      const isManifest = name.startsWith("manifest/");
      if (isManifest && moment === "create") await happen();
      const file = await place.create(name);
      return {
        ...file,
        async write(chunk) {
          await file.write(chunk);
          if (isManifest && moment === "write") await happen();
        },
      };
    },
  };
}

/** Ends the connection of the process that writes files of a database, and with it its lock. */
export async function endWriter(url: string): Promise<void> {
  const client = await connectPlain(url);
  const { rows } = await client.query<{ ended: string }>(
    `SELECT pg_terminate_backend(pid, 10000) AS ended FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'usage-etl export'`,
  );
  if (rows.length !== 1 || rows[0]?.ended !== "t") throw new Error(`${rows.length} writers, not 1`);
}
